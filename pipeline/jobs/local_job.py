"""
The whole job in plain processes: what Spark does, without it.

The stages, and what travels between them, are the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import pyarrow as pa

from dissector.capture.columns import Int64s
from dissector.engine.reading.segment_source import FileNames
from pipeline.split.byte_ranges import RANGE_BYTES, Range, misplaced, placed_ranges, ranges_of
from pipeline.split.collection import Collection
from pipeline.split.connection_index import (
    RangeIndex,
    crossing_keys,
    index_range,
    index_reassembled,
)
from pipeline.split.split_fragments import add_reassembled
from pipeline.tables.dissect_task import SHARDS, dissect_range, dissect_shards
from pipeline.tables.finalize import RowFinisher
from pipeline.tables.incremental import FIRST_PACKETS
from pipeline.tables.shared_facts import merge_facts
from pipeline.tables.table_builder import FACTS, Batch, Wanted
from pipeline.tables.table_schemas import SCHEMAS

PARTS = 8


@dataclass(slots=True)
class Plan:
    """
    How a collection is read.

    Attributes:
        ranges: All, with their proven starts and first packets.
        crossing: Keys of the connections that are in more than one, in order.
    """

    ranges: list[Range]
    crossing: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def files(self) -> FileNames:
        """Which file holds a packet."""
        names = FileNames()
        for each, after in zip(self.ranges, [*self.ranges[1:], None], strict=True):
            # What has no packets holds none.
            if after is None or after.first_packet > each.first_packet:
                names.add(each.first_packet, each.path)
        return names


def dissect(
    paths: Iterable[str],
    wanted: Wanted | None = None,
    *,
    range_bytes: int = RANGE_BYTES,
    parts: int = PARTS,
    processes: int = 1,
) -> dict[str, pa.Table]:
    """
    Return the tables of a collection.

    Args:
        paths: Files, folders, patterns.
        wanted: What is wanted of it.
        range_bytes: About how many bytes of a file are read together.
        parts: In how many parts connections are dissected that cross ranges.
        processes: How many may work side by side.
    """
    wanted = wanted or Wanted()
    ranges = ranges_of(Collection.of(paths), range_bytes)
    if processes == 1:
        return dissect_ranges(ranges, wanted, parts)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        return dissect_ranges(ranges, wanted, parts, pool.map)


def dissect_ranges(
    ranges: Sequence[Range], wanted: Wanted, parts: int = PARTS, run: Any = map
) -> dict[str, pa.Table]:
    """Return the tables of ranges, which are a collection; `run` is `map`, or works like it."""
    return _dissected(plan_ranges(ranges, run), wanted, parts, run)


def plan_ranges(ranges: Sequence[Range], run: Any = map) -> Plan:
    """Read the headers of all ranges, some again, until all are proven."""
    if len(ranges) == 1:
        return Plan(list(ranges))
    found: dict[int, RangeIndex] = {}
    again = list(ranges)
    while again:
        found.update((each.seen.number, each) for each in run(index_range, again))
        seen = {number: each.scan for number, each in found.items()}
        again = misplaced(ranges, seen)
    placed = add_reassembled(placed_ranges(ranges, seen), seen)
    rows = [found[each.number].rows for each in placed if not each.is_empty]
    return Plan(placed, crossing_keys([*rows, *index_reassembled(placed)]))


def _dissected(plan: Plan, wanted: Wanted, parts: int, run: Any) -> dict[str, pa.Table]:
    tables: dict[str, list[pa.RecordBatch]] = defaultdict(list)
    jobs = [_Job(each, plan, parts, wanted) for each in plan.ranges]
    for name, batch in _all(run(_Job.of_range, jobs)):
        tables[name].append(batch)
    parcels = sorted(tables.pop(SHARDS, []), key=_place)
    jobs = [
        replace(jobs[0], parcels=[each for each in parcels if _place(each)[0] == part])
        for part in sorted({_place(each)[0] for each in parcels})
    ]
    for name, batch in _all(run(_Job.of_parcels, jobs)):
        tables[name].append(batch)
    columns = [np.asarray(each.column("connection")) for each in tables.pop(FIRST_PACKETS, [])]
    firsts = np.sort(np.concatenate([np.zeros(0, np.int64), *columns]))
    finish = RowFinisher(firsts, merge_facts(tables.pop(FACTS, [])), wanted.show_secrets)
    return {
        name: pa.Table.from_batches([finish(name, each) for each in tables[name]], SCHEMAS[name])
        for name in sorted(wanted.tables)
    }


def _all(results: Iterable[list[Batch]]) -> Iterable[Batch]:
    return (batch for result in results for batch in result)


def _place(parcel: pa.RecordBatch) -> tuple[int, int, int]:
    part, number, order = (parcel.column(name)[0].as_py() for name in ("part", "range", "number"))
    return part, number, order


@dataclass(slots=True)
class _Job:
    """What one process is given to do."""

    each: Range
    plan: Plan
    parts: int
    wanted: Wanted
    parcels: list[pa.RecordBatch] = field(default_factory=list)

    def of_range(self) -> list[Batch]:
        return list(dissect_range(self.each, self.plan.crossing, self.parts, self.wanted))

    def of_parcels(self) -> list[Batch]:
        return list(dissect_shards(self.parcels, self.plan.files, self.wanted))
