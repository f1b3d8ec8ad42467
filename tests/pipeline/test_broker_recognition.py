"""Brokers are recognised from the whole collection, whichever part has the evidence."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.jobs.local_job import dissect, plan_ranges
from pipeline.jobs.stages import Job, Numbering, TaskOutput, count_by_range
from pipeline.split.byte_ranges import ranges_of
from pipeline.split.collection import Collection
from pipeline.storage.shared_folder import leave_mark
from pipeline.tables.dissect_task import dissect_range
from pipeline.tables.shared_facts import has_doubts
from pipeline.tables.table_builder import FACTS, TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from tests.dissector.engine.reading.test_capture import beat, heartbeat
from tests.pipeline.command_tables import assert_same, tables_of
from tests.tcp_captures import Wire, write

ALL = TableOptions(tables=frozenset(SCHEMAS))


def single_responses(*, known: bool, closed: bool) -> Wire:
    """Three connections with one response each, the second to another broker; then exchanges."""
    wire = Wire()
    for port, broker_port in ((50000, 9092), (50001, 9999), (50002, 9092)):
        connection = wire.connect(port, broker_port=broker_port)
        connection.broker(beat(port))
        if closed:
            connection.fin()
    if known:
        connection = wire.connect(50010).syn()
        for number in range(3):
            connection.client(heartbeat(number)).broker(beat(number))
    return wire


@pytest.mark.thinned(4)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("closed", [False, True])
def test_a_single_response_of_a_broker_known_from_elsewhere(
    known: bool, closed: bool, tmp_path: Path
) -> None:
    packets = single_responses(known=known, closed=closed).packets
    cuts = range(0, len(packets) + 4, 4)
    files = [
        write(tmp_path / f"{number:02}.pcap", packets[a:b])
        for number, (a, b) in enumerate(pairwise(cuts))
        if packets[a:b]
    ]
    expected = tables_of(files, tmp_path)
    orphans = [row for row in expected["exchanges"] if row["status"] == "orphan"]
    assert [row["correlation_id"] for row in orphans] == ([50000, 50002] if known else [])
    speaks = [row["speaks"] for row in expected["connections"]]
    assert speaks == (["kafka", "other", "kafka", "kafka"] if known else ["other"] * 3)
    assert_same(dissect(files, ALL), expected)
    for each in plan_ranges(ranges_of(Collection.of(files))).ranges:
        # Doubtful rows follow the problem that explains them.
        doubts = False
        for name, batch in dissect_range(each, np.zeros(0, np.int64), 1, ALL):
            doubts |= name == FACTS and has_doubts(batch)
            if name == "exchanges":
                assert doubts == ("orphan" in batch.column("status").to_pylist())
    assert_same(dissect(files, ALL, range_bytes=200, parts=3), expected)


@pytest.mark.parametrize("known", [False, True])
def test_the_driver_gets_nothing_of_connections_in_doubt(known: bool, tmp_path: Path) -> None:
    shared = {}
    for count in (1, 20):
        packets = [
            packet
            for _ in range(count)
            for packet in single_responses(known=known, closed=True).packets
        ]
        folder = tmp_path / str(count)
        folder.mkdir()
        path = write(folder / "a.pcap", packets)
        work = str(folder / "out")
        plan = plan_ranges(ranges_of(Collection.of([path])))
        job = Job(plan.ranges, ALL, work, work, leave_mark(work))
        results = [each for report in job.dissect(0, []) for each in job.by_range(report)]
        counted = list(count_by_range(results))
        (facts,) = (each for each in counted if isinstance(each, pa.RecordBatch))
        shared[count] = facts.to_pylist()
        job = replace(job, facts={row["topic_id"]: row["name"] for row in shared[count]})
        numbered = Numbering([0, 0]).number(results)
        rows = dict(job.finish(0, ((0, each) for each in numbered)))
        expected = tables_of([path], folder)
        assert rows["connections"] == len(expected["connections"])
        found = pq.read_table(next(Path(work, "connections").rglob("*.parquet")))
        speaks = sorted(found.column("speaks").to_pylist())
        assert speaks == sorted(row["speaks"] for row in expected["connections"])
        assert rows.get("exchanges", 0) == len(expected["exchanges"])
        assert any("doubts" in each.tables for _, each in results if isinstance(each, TaskOutput))
    assert shared[1] == shared[20]
    assert len(shared[1]) == known
