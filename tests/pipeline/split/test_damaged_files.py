"""Damage, and joined files, in one of several ranges give the rows of the commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.jobs.local_job import dissect, plan_ranges
from pipeline.split.byte_ranges import ranges_of
from pipeline.split.collection import Collection
from pipeline.tables.table_builder import TableOptions
from tests.pipeline.command_tables import assert_same, tables_of
from tests.pipeline.split_captures import imperfect_packets, record_starts
from tests.tcp_captures import write

FEW = TableOptions(tables=frozenset(("connections", "exchanges", "problems")))
RANGE_BYTES = 30_000


@pytest.mark.long
@pytest.mark.parametrize("kind", ["zeros", "ones", "another file", "length"])
def test_tables_of_a_damaged_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    write(path, imperfect_packets(3, rounds=40))
    file, starts = path.read_bytes(), record_starts(path)
    at = starts[len(starts) // 2]
    between = {
        "zeros": bytes(40_000),
        "ones": b"\xff" * 700,
        "another file": file[:24],
        "length": file[at : at + 8] + b"\xff" * 8 + bytes(50),
    }[kind]
    path.write_bytes(file[:at] + between + file[at:])
    ranges = ranges_of(Collection.of([str(path)]), RANGE_BYTES)
    assert len(ranges) > 4
    placed = plan_ranges(ranges).ranges
    assert any(each.is_empty for each in placed)
    expected = tables_of([str(path)], tmp_path)
    got = dissect([str(path)], FEW, range_bytes=RANGE_BYTES)
    assert_same(got, {name: expected[name] for name in ("connections", "exchanges")})
