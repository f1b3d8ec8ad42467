"""Request logs of a watched folder: rotated, growing, beside captures."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pipeline.jobs.query import read
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from pipeline.watch.stream_job import Watch
from tests.corpus import FOLDER
from tests.pipeline.command_tables import tables_of
from tests.pipeline.watch.test_batch_facts import watched
from tests.tcp_captures import Packet, write

LOG = FOLDER / "kafka4-request-log.log.gz"
OTHER = FOLDER / "kafka39-request-log.log.gz"
IDLE_NS = 3_600_000_000_000
LATE_NS = 1_900_000_000_000_000_000
"""A time after all logs, at which all connections have ended."""

_PLACES = ("packet", "request_packet", "response_packet", "message")
"""Numbers of packets: where a log is rotated, those of requests precede those of responses."""


def _lines(log: Path) -> list[bytes]:
    return gzip.decompress(log.read_bytes()).splitlines(keepends=True)


def _end(folder: Path) -> str:
    """Write a capture that ends all connections."""
    return write(folder / "z.pcap", [Packet(LATE_NS, b"\xff" * 12 + b"\x08\x06" + bytes(46))])


def _divided(log: Path, folder: Path, count: int) -> list[str]:
    """Write a log as rotated files, the first ones compressed."""
    lines, paths = _lines(log), []
    for number in range(count):
        text = b"".join(lines[number * len(lines) // count : (number + 1) * len(lines) // count])
        path = folder / f"kafka-request.log.2026-11-26-{number:02}"
        if number < count - 1:
            path, text = path.with_name(f"{path.name}.gz"), gzip.compress(text)
        path.write_bytes(text)
        paths.append(str(path))
    return paths


def _without(value: Any, names: Sequence[str]) -> Any:
    """Return rows without some columns, at any depth."""
    if isinstance(value, list):
        return [_without(each, names) for each in value]
    if isinstance(value, dict):
        return {name: _without(each, names) for name, each in value.items() if name not in names}
    return value


def _assert_same(
    got: Mapping[str, pa.Table],
    expected: Mapping[str, list[dict[str, Any]]],
    *more: str,
) -> None:
    """Compare tables but for numbers of packets, and for more columns."""
    for table, rows in expected.items():
        ours, theirs = (
            sorted(map(repr, _without(each, [*_PLACES, *more])))
            for each in (got[table].to_pylist(), rows)
        )
        assert ours == theirs, table


@pytest.mark.long
@pytest.mark.parametrize("together", [1, 3])
def test_rotated_logs_have_the_rows_of_one_process(together: int, tmp_path: Path) -> None:
    files = _divided(LOG, tmp_path, 5)
    files = [*files, _end(tmp_path)]
    got = watched(files, together, tmp_path / "watch", IDLE_NS)
    assert any(row["local_ms"] is not None for row in got["exchanges"].to_pylist())
    _assert_same(got, tables_of(files, tmp_path))


@pytest.mark.long
def test_logs_of_several_brokers_and_captures(tmp_path: Path) -> None:
    # In the order of their times, as files that overlap follow one another in a watch.
    files = [str(FOLDER / "demo.pcap"), str(OTHER), str(LOG)]
    got = watched([*files, _end(tmp_path)], 4, tmp_path / "watch", IDLE_NS)
    expected = tables_of([*files, _end(tmp_path)], tmp_path)
    _assert_same({"exchanges": got["exchanges"]}, {"exchanges": expected["exchanges"]})


def test_a_log_that_grows_and_is_rotated_is_read_once(tmp_path: Path) -> None:
    first, second = _divided(LOG, tmp_path, 2)
    whole = gzip.decompress(Path(first).read_bytes())
    growing = tmp_path / "kafka-request.log"
    growing.write_bytes(whole[: len(whole) * 2 // 3])
    files = [str(growing), first, second, _end(tmp_path)]
    got = watched(files, 1, tmp_path / "watch", IDLE_NS)
    expected = tables_of(files[1:], tmp_path)
    _assert_same(got, expected, "capture")
    captures = set(got["exchanges"].column("capture").to_pylist())
    assert captures == {str(growing), first, second}


def test_lines_are_problems_once_and_by_their_numbers(tmp_path: Path) -> None:
    lines = _lines(LOG)
    lines[5:5] = [b"[2026-11-26 17:23:30,434] DEBUG Completed request:{ cut off\n"]
    growing, rotated = tmp_path / "kafka-request.log", tmp_path / "kafka-request.log.1"
    growing.write_bytes(b"".join(lines[:20]))
    lines[30:30] = [lines[5]]
    rotated.write_bytes(b"".join(lines))
    got = watched([str(growing), str(rotated), _end(tmp_path)], 1, tmp_path / "watch", IDLE_NS)
    rows = got["problems"].to_pylist()
    found = [
        (row["capture"], row["problem"]) for row in rows if "cut off" in (row["problem"] or "")
    ]
    assert [(path, text.partition(":")[0]) for path, text in found] == [
        (str(growing), "line 6"),
        (str(rotated), "line 31"),
    ]


@pytest.mark.spark
def test_spark_watches_logs(spark: SparkSession, tmp_path: Path) -> None:
    incoming, out = tmp_path / "incoming", str(tmp_path / "out")
    incoming.mkdir()
    files = _divided(LOG, incoming, 3)
    options = TableOptions(tables=frozenset(SCHEMAS))
    later = [(Path(path), Path(path).read_bytes()) for path in files[1:]]
    for path, _ in later:
        path.unlink()
    watch = Watch(str(incoming), out, options, parts=2, idle_ns=IDLE_NS)
    watch.start(spark, once=True).awaitTermination()
    for path, data in later:
        path.write_bytes(data)
    end = _end(incoming)
    watch.start(spark, once=True).awaitTermination()
    assert not watch.unread
    expected = tables_of([*files, end], tmp_path)
    got = {}
    for table in expected:
        rows = read(spark, out, table).select(*SCHEMAS[table].names).toArrow()
        got[table] = pa.table(rows).cast(SCHEMAS[table])
    _assert_same(got, expected)
