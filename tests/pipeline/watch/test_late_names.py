"""Names defined late are filled into earlier rows, once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from dissector.errors import PipelineError
from pipeline.split.task_spill import OutputLocation
from pipeline.storage.atomic_files import join_path
from pipeline.storage.filesystems import locate
from pipeline.storage.parquet_store import TableWriter
from pipeline.tables.finalize import RowFinisher
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from pipeline.watch.batch_facts import BatchFacts
from pipeline.watch.late_names import LateNames, files_to_name, rewrite_with_names
from pipeline.watch.stream_job import BatchWriter
from tests.corpus import fast_and_long
from tests.dissector.cli.cli_traffic import ORDERS_ID, shop
from tests.pipeline.command_tables import assert_same, tables_of
from tests.pipeline.s3_store import BUCKET, bucket
from tests.pipeline.split_captures import TURN_NS
from tests.pipeline.tables.test_finalize import batch as rows_of
from tests.pipeline.watch.test_batch_facts import batches
from tests.tcp_captures import STEP_NS, Packet, write

ALL = TableOptions(tables=frozenset(SCHEMAS))
ID = str(ORDERS_ID)


def _written(out: Path) -> dict[str, pa.Table]:
    """Return the tables in a folder."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    for path in out.rglob("[!_]*.parquet"):
        table = path.relative_to(out).parts[0]
        if table in SCHEMAS:
            found[table] += pq.ParquetFile(path).read().to_pylist()
    return {name: pa.Table.from_pylist(found[name], SCHEMAS[name]) for name in SCHEMAS}


def _write(out: Path, number: int, places: list[OutputLocation]) -> list[str]:
    """Process a batch of files; return the rewritten files."""
    known = BatchFacts.of(str(out), number, places)
    writing = BatchWriter(str(out), number, ALL, known)
    rows = [{"group": 0, "folder": a, "source": b, "tables": c} for a, b, c in places]
    list(writing.write([pa.RecordBatch.from_pylist(rows)]))
    paths = files_to_name(str(out), number, known.new_names)
    if paths:
        rows = [{"group": 0, "path": path} for path in paths]
        list(writing.name([pa.RecordBatch.from_pylist(rows)]))
    return paths


def _files(tmp_path: Path) -> list[str]:
    """Return captures with a topic's name long after its id, and packets of a much later time."""
    packets = shop().packets
    late = Packet(packets[-1].time_ns + TURN_NS + STEP_NS, b"\xff" * 12 + b"\x08\x06" + bytes(46))
    cuts = [*range(0, len(packets), 4), len(packets)]
    parts = [packets[a:b] for a, b in pairwise(cuts)]
    return [write(tmp_path / f"{n:02}.pcap", part) for n, part in enumerate([*parts, [late]])]


@pytest.mark.long
@pytest.mark.parametrize("tries", fast_and_long([2], [1]))
def test_rows_are_those_of_one_process(tries: int, tmp_path: Path) -> None:
    """Also if a batch is retried after all of it was written."""
    files, out = _files(tmp_path), tmp_path / "out"
    expected = tables_of(files, tmp_path)
    changed_paths = []
    for number, places in enumerate(batches(files, 1, tmp_path)):
        for _ in range(tries):
            changed_paths.append(_write(out, number, places))
    assert_same(_written(out), expected)
    # The name is defined once, after its exchange, messages and records were written.
    named = [paths for paths in changed_paths if paths]
    assert len(named) == tries
    assert {path.split("/")[0] for path in named[-1]} == {"exchanges", "messages", "records"}
    assert not [path for path in out.rglob("_*") if path.is_file()]


def _nameless_row(out: str) -> str:
    """Write a row with a topic id instead of a name; return its file."""
    rows = rows_of("exchanges", {"api": "Fetch", "topics": [ID], "request_time_ns": 5})
    folders = ("date", "cluster=prod")
    with TableWriter(out, "00000000-0000", folders=folders) as store:
        store.add("exchanges", rows)
    nameless = LateNames("00000000-0000", folders)
    nameless.collect("exchanges", rows, {ID, "another"})
    nameless.collect("problems", rows_of("problems", {}), ())
    nameless.save(out)
    [path] = files_to_name(out, 1, {ID})
    assert path == "exchanges/date=1970-01-01/cluster=prod/00000000-0000.parquet"
    for batch, ids in ((0, {ID}), (1, {"another"}), (1, set())):
        assert files_to_name(out, batch, ids) == []
    return path


def test_a_deleted_file_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / _nameless_row(str(tmp_path))
    path.unlink()
    rewrite_with_names(
        str(tmp_path), str(path.relative_to(tmp_path)), RowFinisher(None, {ID: "orders"})
    )
    assert list(path.parent.iterdir()) == []


def test_a_file_moved_for_replacement_is_restored(tmp_path: Path) -> None:
    """A task may end between move and replacement, if a store has no atomic rename."""
    path = tmp_path / _nameless_row(str(tmp_path))
    path.rename(path.with_name(f"_{path.name}"))
    rewrite_with_names(
        str(tmp_path), str(path.relative_to(tmp_path)), RowFinisher(None, {ID: "orders"})
    )
    assert list(path.parent.iterdir()) == [path]
    assert pq.ParquetFile(path).read()["topics"].to_pylist() == [["orders"]]


class _Full(RowFinisher):
    """Fails with half of the rows written."""

    def fill_in_names(self, name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        raise OSError("the disk is full")


@pytest.fixture(params=["folder", pytest.param("store", marks=pytest.mark.keeps_sockets)])
def out(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """A folder for tables: local, or in a store."""
    if request.param == "folder":
        yield str(tmp_path)
        return
    with bucket() as kept:
        for name, value in kept.environment.items():
            monkeypatch.setenv(name, value)
        yield f"s3://{BUCKET}/out"


@pytest.mark.long
def test_old_files_are_kept_until_all_new_ones_are_written(out: str) -> None:
    path = _nameless_row(out)
    for finish, topics in ((_Full, [[ID]]), (RowFinisher, [["orders"]])):
        with suppress(PipelineError) if finish is _Full else nullcontext():
            rewrite_with_names(out, path, finish(None, {ID: "orders"}))
        system, inside = locate(join_path(out, path))
        with system.open_input_file(inside) as file:
            assert pq.read_table(file)["topics"].to_pylist() == topics
        folder = fs.FileSelector(inside.rpartition("/")[0])
        assert [each.path for each in system.get_file_info(folder)] == [inside]
