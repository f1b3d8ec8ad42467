"""A part continues unchanged from its saved state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline.jobs.local_job import Plan, plan_ranges
from pipeline.split.byte_ranges import ranges_of
from pipeline.split.collection import Collection
from pipeline.split.connection_index import index_range
from pipeline.split.shards import unpack_shards
from pipeline.tables.dissect_task import SHARDS, dissect_range
from pipeline.tables.finalize import RowFinisher
from pipeline.tables.incremental import FIRST_PACKETS, IncrementalDissection
from pipeline.tables.shared_facts import merge_facts
from pipeline.tables.table_builder import FACTS, Batch, TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from tests.corpus import fast_and_long
from tests.dissector.engine.reading.test_capture import beat, heartbeat
from tests.pipeline.command_tables import assert_same, tables_of
from tests.pipeline.split_captures import TURN_NS, imperfect_packets, short_connections
from tests.tcp_captures import Wire, write

CAPTURES = Path(__file__).parents[3] / "captures"
ALL = TableOptions(tables=frozenset(SCHEMAS))


def parcels_of(plan: Plan) -> list[pa.RecordBatch]:
    """Return all connections as parcels, in one part."""
    rows = [index_range(each).rows for each in plan.ranges]
    keys = np.unique(np.concatenate([np.asarray(each.column("key")) for each in rows]))
    return [
        batch
        for each in plan.ranges
        for name, batch in dissect_range(each, keys, 1, ALL)
        if name == SHARDS
    ]


def finished(batches: list[Batch]) -> dict[str, pa.Table]:
    tables: dict[str, list[pa.RecordBatch]] = {
        name: [] for name in (*SCHEMAS, FACTS, FIRST_PACKETS)
    }
    for name, batch in batches:
        tables[name].append(batch)
    begun = [np.asarray(each.column("connection")) for each in tables.pop(FIRST_PACKETS)]
    finish = RowFinisher(np.concatenate(begun), merge_facts(tables.pop(FACTS)))
    assert (np.diff(finish.first_packets) > 0).all()
    return {
        name: pa.Table.from_batches([finish(name, each) for each in found], SCHEMAS[name])
        for name, found in tables.items()
    }


def expected_of(path: str, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the tables of the commands without the events, which are computed elsewhere."""
    tables = tables_of([path], folder)
    del tables["events"]
    return tables


@pytest.mark.long
@pytest.mark.parametrize("capture", ["demo.pcap", "seed 3", "seed 5", "kafka4-franz-go.pcap"])
def test_a_state_saved_and_loaded_after_each_parcel(capture: str, tmp_path: Path) -> None:
    path = str(CAPTURES / capture)
    if capture.startswith("seed"):
        path = write(tmp_path / "a.pcap", imperfect_packets(int(capture[5:])))
    plan = plan_ranges(ranges_of(Collection.of([path]), 9000))
    out: list[Batch] = []
    state = IncrementalDissection(plan.files, ALL).save()
    parcels = parcels_of(plan)
    assert len(parcels) > 1
    for parcel in parcels:
        fold = IncrementalDissection.load(state, plan.files, ALL)
        out += fold.feed([parcel])
        state = fold.save()
    out += IncrementalDissection.load(state, plan.files, ALL).finish()
    assert_same(finished(out), expected_of(path, tmp_path))


@pytest.mark.long
def test_one_connection_with_most_bytes_is_streamed(tmp_path: Path) -> None:
    """Its parcels are read one by one, with rows in between."""
    wire = Wire()
    connection = wire.connect().syn()
    for number in range(300):
        connection.client(heartbeat(number, group_instance_id="i" * 1400)).broker(beat(number))
    path = write(tmp_path / "a.pcap", wire.packets)
    options = TableOptions(tables=frozenset(("exchanges", "connections")), window_bytes=20_000)
    plan = plan_ranges(ranges_of(Collection.of([path]), 10_000))
    parcels = parcels_of(plan)
    assert len(parcels) > 40
    taken = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        for parcel in parcels:
            taken += 1
            yield parcel

    fold = IncrementalDissection(plan.files, options)
    rows = after = 0
    for name, batch in fold.feed(counted()):
        if name == "exchanges":
            # At most one window is held back.
            assert taken - after <= 4
            rows, after = rows + batch.num_rows, taken
    assert (rows, taken) == (300, len(parcels))


@pytest.mark.long
@pytest.mark.parametrize("seed", fast_and_long([0], range(1, 8)))
def test_expired_state_gives_the_final_rows(seed: int, tmp_path: Path) -> None:
    path = write(tmp_path / "a.pcap", short_connections(seed))
    plan = plan_ranges(ranges_of(Collection.of([path]), 3000))
    state, out = IncrementalDissection(plan.files, ALL).save(), list[Batch]()
    known = []
    for parcel in parcels_of(plan):
        fold = IncrementalDissection.load(state, plan.files, ALL)
        out += fold.feed([parcel])
        now_ns = max(int(each.time_ns.max()) for each in unpack_shards(parcel, {}))
        out += fold.forget(now_ns - TURN_NS, now_ns - TURN_NS)
        known.append(len(fold.tables.reading.streams.connections))
        state = fold.save()
    out += IncrementalDissection.load(state, plan.files, ALL).finish()
    expected = expected_of(path, tmp_path)
    assert_same(finished(out), expected)
    assert max(known) <= 2 * len(expected["connections"]) // 3


@pytest.mark.long
def test_the_state_does_not_grow_with_processed_parcels(tmp_path: Path) -> None:
    path = str(CAPTURES / "demo.pcap")
    plan = plan_ranges(ranges_of(Collection.of([path]), 9000))
    fold = IncrementalDissection(plan.files, ALL)
    sizes = []
    for parcel in parcels_of(plan):
        for _ in fold.feed([parcel]):
            pass
        sizes.append(len(fold.save()))
    assert max(sizes) < 2 * Path(path).stat().st_size
