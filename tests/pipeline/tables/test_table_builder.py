"""Secrets and problems in tables, and selection of tables."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.jobs.local_job import dissect
from pipeline.tables.problem_rows import LIMITS
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from tests.dissector.cli.test_secrets import SALT, SCENES, SECRET
from tests.dissector.engine.reading.test_capture import heartbeat
from tests.pipeline.command_tables import assert_same, tables_of
from tests.pipeline.split.test_split_fragments import fragmented
from tests.pipeline.split_captures import delayed, imperfect_packets
from tests.pipeline.test_broker_recognition import single_responses
from tests.tcp_captures import Wire, WireConnection, retimed, write

CAPTURES = Path(__file__).parents[3] / "captures"
ALL = TableOptions(tables=frozenset(SCHEMAS))


@pytest.mark.thinned(10)
@pytest.mark.parametrize("play", SCENES)
def test_no_table_has_secrets(play: Callable[[WireConnection], None], tmp_path: Path) -> None:
    wire = Wire()
    play(wire.connect())
    name = write(tmp_path / "a.pcap", wire.packets)
    expected = tables_of([name], tmp_path)
    for size in (150, 1 << 20):
        got = dissect([name], ALL, range_bytes=size)
        assert_same(got, expected)
        for table in got.values():
            text = repr(table.to_pylist())
            for secret in (SECRET.decode(), SECRET.hex(), SALT.decode()):
                assert secret not in text


def test_each_problem_has_a_row(tmp_path: Path) -> None:
    name = write(tmp_path / "a.pcap", imperfect_packets(3))
    got = dissect([name], ALL, range_bytes=5000)
    said = got["problems"].to_pylist()
    assert len(said) > 3
    messages = {
        (row["connection"], row["packet"], row["kind"], row["correlation_id"]): row["problems"]
        for row in got["messages"].to_pylist()
        if row["problems"]
    }
    for row in said:
        key = row["connection"], row["packet"], row["kind"], row["correlation_id"]
        assert any(row["problem"] in text for text in messages[key])
    assert len(said) == sum(map(len, messages.values()))


@cache
def _whole(path: str) -> dict[str, pa.Table]:
    return dissect([path], ALL, range_bytes=9000)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("tables", [{"fields"}, {"records"}, {"messages", "problems"}])
def test_only_requested_tables_are_built(tables: set[str]) -> None:
    files = [str(CAPTURES / "kafka4-franz-go.pcap")]
    whole = _whole(*files)
    got = dissect(files, TableOptions(tables=frozenset(tables)), range_bytes=9000)
    assert got.keys() == tables
    for name, table in got.items():
        assert in_order(table) == in_order(whole[name])


def test_only_requested_fields_are_returned() -> None:
    files = [str(CAPTURES / "kafka4-franz-go.pcap")]
    path = "topic_data.partition_data.index"
    whole = dissect(files, ALL)["fields"]
    options = TableOptions(tables=frozenset(("fields",)), fields=frozenset((path,)))
    some = dissect(files, options)["fields"].to_pylist()
    assert some == [row for row in whole.to_pylist() if row["path"] == path]
    assert some


def in_order(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def _limits(tables: dict[str, pa.Table]) -> set[str]:
    return {row["problem"] for row in tables["problems"].to_pylist() if row["kind"] == "limit"}


def _two_with_holes(tmp_path: Path) -> list[str]:
    """Return two files with two connections waiting for lost packets, one of them in both files."""
    wire = Wire()
    for port in (50000, 50001):
        connection = wire.connect(port).syn()
        for number in range(10):  # within the 50 ms after which a hole is given up
            connection.client(heartbeat(number))
    packets = [[each for each in wire.packets if each.connection == number] for number in (0, 1)]
    lost = [mine.pop(next(n for n, each in enumerate(mine) if each.payload)) for mine in packets]
    files = packets[0], retimed([*packets[0], *packets[1], *lost])[len(packets[0]) :]
    return [write(tmp_path / f"{number}.pcap", part) for number, part in enumerate(files)]


def test_reached_limits_are_reported_and_lower_loads_equal_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task counts its own connections, one process all of them."""
    files = _two_with_holes(tmp_path)
    expected = tables_of(files, tmp_path)
    assert sum(row["gaps_a"] + row["gaps_b"] for row in expected["connections"]) == 0
    waiting = 9 * len(heartbeat(1))
    monkeypatch.setattr("dissector.capture.tcp.reassembly.MAX_BUFFERED_BYTES", 3 * waiting // 2)
    assert tables_of(files, tmp_path)["connections"] != expected["connections"]
    got = dissect(files, ALL)
    assert_same(got, expected)
    assert _limits(got) == set()
    monkeypatch.setattr("dissector.capture.tcp.reassembly.MAX_BUFFERED_BYTES", waiting // 2)
    got = dissect(files, ALL)
    assert _limits(got) == {LIMITS[0]}
    assert got["connections"].to_pylist() != expected["connections"]


@pytest.mark.parametrize(
    ("limit", "reported"),
    [
        ("dissector.engine.correlation.state_tables.MAX_DOUBTFUL_BYTES", LIMITS[1]),
        ("dissector.capture.packets.ip_fragments.MAX_INCOMPLETE", LIMITS[2]),
    ],
)
def test_each_reached_limit_is_reported(
    limit: str, reported: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packets = single_responses(known=True, closed=True).packets
    packets += delayed(
        fragmented(random.Random(2), imperfect_packets(2, connections=2)), len(packets)
    )
    name = write(tmp_path / "a.pcap", packets)
    assert _limits(dissect([name], ALL)) == set()
    monkeypatch.setattr(limit, 1)
    assert _limits(dissect([name], ALL)) == {reported}
