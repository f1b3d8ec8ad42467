"""
The whole job in plain processes, without Spark.

The stages, and the data between them, are the same as on Spark.
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
from dissector.engine.reading.packet_files import FileNames
from pipeline.split import connection_index
from pipeline.split.byte_ranges import (
    RANGE_BYTES,
    Range,
    misplaced,
    numbered_ranges,
    placed_ranges,
    ranges_of,
)
from pipeline.split.collection import Collection
from pipeline.split.connection_index import (
    RangeIndex,
    crossing_keys,
    index_range,
    index_reassembled,
)
from pipeline.split.split_fragments import add_reassembled
from pipeline.split.time_slices import slices_among, with_slices
from pipeline.tables.dissect_task import SHARDS, dissect_again, dissect_range, dissect_shards
from pipeline.tables.finalize import RowFinisher
from pipeline.tables.incremental import FIRST_PACKETS
from pipeline.tables.shared_facts import merge_facts
from pipeline.tables.table_builder import FACTS, Batch, TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from pipeline.tables.whole_tables import WHOLE, whole_tables

PARTS = 8


@dataclass(slots=True)
class Plan:
    """
    The ranges and parts of a collection.

    Attributes:
        ranges: All, with their proven starts and first packets.
        crossing: Keys of the connections that are in more than one, in order.
        index: Rows of `connection_index.SCHEMA` for these connections.
        times: The first and last time of the packets of ranges, by their numbers.
    """

    ranges: list[Range]
    crossing: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    index: pa.Table = field(default_factory=connection_index.SCHEMA.empty_table)
    times: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def files(self) -> FileNames:
        """The file of each packet."""
        names = FileNames()
        for each, after in zip(self.ranges, [*self.ranges[1:], None], strict=True):
            # Skip ranges without packets.
            if after is None or after.first_packet > each.first_packet:
                names.add(each.first_packet, each.path)
        return names


def dissect(
    paths: Iterable[str],
    options: TableOptions | None = None,
    *,
    range_bytes: int = RANGE_BYTES,
    parts: int = PARTS,
    processes: int = 1,
) -> dict[str, pa.Table]:
    """
    Return the tables of a collection.

    Args:
        paths: Files, folders, patterns.
        options: Tables to make, and options of dissection.
        range_bytes: Approximate bytes of a file read together.
        parts: Number of parts for connections across ranges.
        processes: Number of parallel processes.
    """
    options = options or TableOptions()
    ranges = ranges_of(Collection.of(paths), range_bytes, options.decode_as, options.timezone)
    if processes == 1:
        return dissect_ranges(ranges, options, parts)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        return dissect_ranges(ranges, options, parts, pool.map)


def dissect_ranges(
    ranges: Sequence[Range], options: TableOptions, parts: int = PARTS, run: Any = map
) -> dict[str, pa.Table]:
    """
    Return the tables of ranges of a collection.

    `run` is `map` or an equivalent. With no parts connections across ranges are read again.
    """
    return _dissect_plan(plan_ranges(ranges, run), options, parts, run)


def plan_ranges(ranges: Sequence[Range], run: Any = map) -> Plan:
    """Read the headers of all ranges, some again, until all starts are proven."""
    if len(ranges) == 1:
        return Plan(list(ranges))
    found: dict[int, RangeIndex] = {}
    to_scan = list(ranges)
    while to_scan:
        found.update((each.scan.number, each) for each in run(index_range, to_scan))
        scans = {number: each.scan for number, each in found.items()}
        to_scan = misplaced(ranges, scans)
    placed = with_slices(placed_ranges(ranges, scans), scans)
    found.update((each.scan.number, each) for each in run(index_range, slices_among(placed)))
    scans = {number: each.scan for number, each in found.items()}
    placed = add_reassembled(numbered_ranges(placed, scans), scans)
    rows = [found[each.number].rows for each in placed if not each.is_empty]
    rows += index_reassembled(placed)
    crossing = crossing_keys(rows)
    index = pa.Table.from_batches(rows, connection_index.SCHEMA)
    is_crossing = np.isin(index.column("key").to_numpy(), crossing)
    times = {number: each.times for number, each in scans.items() if each.times is not None}
    return Plan(placed, crossing, index.filter(pa.array(is_crossing)), times)


def _dissect_plan(plan: Plan, options: TableOptions, parts: int, run: Any) -> dict[str, pa.Table]:
    tables: dict[str, list[pa.RecordBatch]] = defaultdict(list)
    jobs = [_Task(each, plan, parts, options) for each in plan.ranges]
    for name, batch in _flattened(run(_Task.dissect_range, jobs)):
        tables[name].append(batch)
    shards = sorted(tables.pop(SHARDS, []), key=_destination)
    jobs = [
        replace(jobs[0], shards=[each for each in shards if _destination(each)[0] == part])
        for part in sorted({_destination(each)[0] for each in shards})
    ]
    for name, batch in _flattened(run(_Task.dissect_shards, jobs)):
        tables[name].append(batch)
    if not parts:
        for name, batch in dissect_again(plan.ranges, plan.crossing, options):
            tables[name].append(batch)
    if WHOLE & options.tables:
        for name, batch in whole_tables(plan.ranges, options):
            tables[name].append(batch)
    columns = [np.asarray(each.column("connection")) for each in tables.pop(FIRST_PACKETS, [])]
    first_packets = np.sort(np.concatenate([np.zeros(0, np.int64), *columns]))
    facts = merge_facts(tables.pop(FACTS, []))
    finish = RowFinisher(first_packets, facts, options.show_secrets, values=options.values)
    return {
        name: pa.Table.from_batches([finish(name, each) for each in tables[name]], SCHEMAS[name])
        for name in sorted(options.tables)
    }


def _flattened(results: Iterable[list[Batch]]) -> Iterable[Batch]:
    return (batch for result in results for batch in result)


def _destination(shard: pa.RecordBatch) -> tuple[int, int, int]:
    part, number, order = (shard.column(name)[0].as_py() for name in ("part", "range", "number"))
    return part, number, order


@dataclass(slots=True)
class _Task:
    """The work of one process."""

    byte_range: Range
    plan: Plan
    parts: int
    options: TableOptions
    shards: list[pa.RecordBatch] = field(default_factory=list)

    def dissect_range(self) -> list[Batch]:
        return list(dissect_range(self.byte_range, self.plan.crossing, self.parts, self.options))

    def dissect_shards(self) -> list[Batch]:
        return list(dissect_shards(self.shards, self.plan.files, self.options))
