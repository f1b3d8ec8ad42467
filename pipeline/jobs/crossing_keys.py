"""Results of reading headers: scans of ranges, and the connections that are in several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dissector.capture.columns import Int64s, unique
from pipeline.jobs.worker import begin_task
from pipeline.split.byte_ranges import RANGE_BYTES, RangeScan
from pipeline.split.connection_index import RangeIndex

PART_BYTES = RANGE_BYTES
"""Approximate bytes of range-crossing connections that are dissected together."""

PART_CONNECTIONS = 1 << 16
"""Most connections of a part, on average; its memory does not grow with their bytes."""

CORE_PARTS = 4
"""Parts for each core, which are enough to keep all busy."""

AGAIN = 4
"""Headers of so many bytes are read in the time that a byte takes on the way through a shard."""


@dataclass(frozen=True, slots=True)
class RangeKeys:
    """
    Connections of one range.

    Attributes:
        range: Number of the range.
        keys: Keys of the connections; see `connection_keys`.
        bytes: Number of bytes of each connection in the range.
    """

    range: int
    keys: Int64s
    bytes: Int64s


@dataclass(frozen=True, slots=True)
class Carried:
    """
    What is dissected in parts.

    Attributes:
        connections: Number of connections in more than one range.
        bytes: The bytes they carry.
    """

    connections: int = 0
    bytes: int = 0

    def __add__(self, other: Carried) -> Carried:
        return Carried(self.connections + other.connections, self.bytes + other.bytes)

    def parts_to_read_again(self, cores: int, size: int) -> int:
        """
        Return the number of parts that read their connections from the captures; 0 for shards.

        Each part reads all packet headers. Its memory is bounded by the number of connections.

        Args:
            cores: The number of cores, of which the number of parts is a multiple.
            size: Size of the captures in bytes.
        """
        parts = -(-self.connections // (cores * PART_CONNECTIONS)) * cores
        return parts if parts * size <= AGAIN * self.bytes else 0

    def parts_of_shards(self, cores: int) -> int:
        """
        Return the number of parts for shards, a multiple of the number of cores.

        Each range reports to each part: if there were as many parts as ranges, what Spark keeps of
        these reports would grow with the square of the captures.
        """
        by_bytes = -(-self.bytes // (cores * PART_BYTES))
        by_connections = -(-self.connections // (cores * PART_CONNECTIONS))
        return max(1, min(by_bytes, max(CORE_PARTS, by_connections))) * cores


def index_results(indexed: RangeIndex, tasks: int) -> Iterator[tuple[int, RangeScan | RangeKeys]]:
    """Yield the scan of a range, and its connections, divided among this many tasks."""
    yield indexed.scan.number % tasks, indexed.scan
    yield from split_keys(indexed.rows, tasks)


def split_keys(rows: pa.RecordBatch, tasks: int) -> Iterator[tuple[int, RangeKeys]]:
    """Yield the connections of a range, given as rows of the index, divided among tasks."""
    number, key, carried = (rows.column(name) for name in ("range", "key", "bytes"))
    keys, carried = np.asarray(key), np.asarray(carried)
    to = keys % tasks
    for task in unique(to).tolist():
        is_of_task = to == task
        yield task, RangeKeys(number[0].as_py(), keys[is_of_task], carried[is_of_task])


def range_of(result: tuple[int, RangeScan | RangeKeys]) -> int:
    """Return the range that a result is about."""
    each = result[1]
    return each.number if isinstance(each, RangeScan) else each.range


def scans_in(results: Iterable[tuple[int, RangeScan | RangeKeys]]) -> Iterator[RangeScan]:
    """Yield the scans of ranges."""
    begin_task()
    return (each for _, each in results if isinstance(each, RangeScan))


def crossing_among(
    results: Iterable[tuple[int, RangeScan | RangeKeys]],
) -> Iterator[tuple[int, RangeKeys]]:
    """Yield the connections that are in more than one range, by their ranges."""
    begin_task()
    ranges = [each for _, each in results if isinstance(each, RangeKeys)]
    keys = np.concatenate([np.zeros(0, np.int64), *(each.keys for each in ranges)])
    found, count = np.unique(keys, return_counts=True)
    crossing_keys = found[count > 1]
    for each in ranges:
        is_crossing = np.isin(each.keys, crossing_keys)
        if is_crossing.any():
            yield each.range, RangeKeys(each.range, each.keys[is_crossing], each.bytes[is_crossing])


def carried_by(crossing: Iterable[tuple[int, RangeKeys]]) -> Iterator[Carried]:
    """Yield what some connections carry; all ranges of each are here."""
    begin_task()
    ranges = [each for _, each in crossing]
    keys = np.concatenate([np.zeros(0, np.int64), *(each.keys for each in ranges)])
    yield Carried(len(unique(keys)), sum(int(each.bytes.sum()) for each in ranges))
