"""Events of a collection read in steps equal those of one process."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.jobs.local_job import plan_ranges
from pipeline.split.byte_ranges import ranges_of
from pipeline.split.collection import Collection
from pipeline.split.shards import unpack_shards
from pipeline.tables.event_table import IncrementalEvents
from pipeline.tables.table_builder import Batch, TableOptions
from pipeline.tables.table_schemas import EVENTS, SCHEMAS
from pipeline.tables.whole_tables import whole_tables
from tests.pipeline.split_captures import TURN_NS, short_connections
from tests.pipeline.tables.test_incremental import CAPTURES, parcels_of
from tests.tcp_captures import write
from timeline.public import timeline

ONLY = TableOptions(tables=frozenset((EVENTS,)))


def rows_of(batches: list[Batch]) -> list[dict[str, object]]:
    """Return events in time order."""
    table = pa.Table.from_batches([each for _, each in batches], SCHEMAS[EVENTS])
    return sorted(table.to_pylist(), key=repr)


def expected_of(path: str) -> list[dict[str, object]]:
    """Return the events of one process."""
    return sorted((each.row() for each in timeline(path)), key=repr)


def in_steps(path: str, range_bytes: int, idle_ns: int = 1 << 62) -> list[Batch]:
    """Return the events of a state saved and loaded after each parcel."""
    plan = plan_ranges(ranges_of(Collection.of([path]), range_bytes))
    state, out = IncrementalEvents(plan.files, ONLY).save(), list[Batch]()
    for parcel in parcels_of(plan):
        events = IncrementalEvents.load(state, plan.files, ONLY)
        packets = max(int(each.packet.max()) for each in unpack_shards(parcel, {})) + 1
        now_ns = max(int(each.time_ns.max()) for each in unpack_shards(parcel, {}))
        out += events.feed([parcel], packets)
        out += events.forget(now_ns - idle_ns, now_ns - idle_ns)
        state = events.save()
    out += IncrementalEvents.load(state, plan.files, ONLY).finish()
    return out


@pytest.mark.long
@pytest.mark.parametrize(
    "capture",
    [
        "demo.pcap",
        "kafka4-static-members.pcap",
        "kafka4-leader-change.pcap",
        "kafka4-librdkafka-group-848.pcap",
        "kafka39-librdkafka-transactions.pcap",
    ],
)
def test_states_continue_across_ranges_and_files(capture: str) -> None:
    path = str(CAPTURES / capture)
    expected = expected_of(path)
    assert rows_of(in_steps(path, 20_000)) == expected
    ranges = plan_ranges(ranges_of(Collection.of([path]), 20_000)).ranges
    assert len(ranges) > 1
    assert rows_of(list(whole_tables(ranges, ONLY))) == expected


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 5])
def test_forgetting_connections_keeps_the_numbers_of_others(seed: int, tmp_path: Path) -> None:
    path = write(tmp_path / "a.pcap", short_connections(seed))
    expected = expected_of(path)
    assert expected
    assert rows_of(in_steps(path, 3000, TURN_NS)) == expected
