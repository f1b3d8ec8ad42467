"""The index pass: the ranges in which each connection has packets, from packet headers alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from dissector.capture.columns import Int64s
from dissector.capture.formats.capture_reader import WINDOW_BYTES
from dissector.capture.packets.layers import Layers
from pipeline.split.byte_ranges import Range, RangeScan
from pipeline.split.connection_keys import ConnectionCounts
from pipeline.split.slice_reader import reader_of
from pipeline.split.split_fragments import FragmentCollector, reassembled_segments
from pipeline.split.time_marks import TimeMarks

SCHEMA = pa.schema(
    {"range": pa.int32(), "key": pa.int64(), "segments": pa.int64(), "bytes": pa.int64()}
)
"""The index of a connection in a range: its segments there, and the bytes they carry."""


@dataclass(frozen=True, slots=True)
class RangeIndex:
    """
    The result of the index pass for a range.

    Attributes:
        scan: Result of reading the range.
        rows: A row of `SCHEMA` for each key.
    """

    scan: RangeScan
    rows: pa.RecordBatch


def index_range(byte_range: Range, window_bytes: int = WINDOW_BYTES) -> RangeIndex:
    """Read the packet headers of a range."""
    layers = Layers(decode_as=byte_range.decode_as)
    reader, counts = reader_of(byte_range, window_bytes), ConnectionCounts()
    fragments, marks = FragmentCollector(), TimeMarks()
    times: tuple[int, int] | None = None
    for packets in reader.windows():
        if len(packets):
            found = int(packets.time_ns.min()), int(packets.time_ns.max())
            times = found if times is None else (min(times[0], found[0]), max(times[1], found[1]))
        if byte_range.time_slice is None:
            marks.add(packets, reader.scan.start)
        counts.add(layers.segments(packets))
        fragments.update(packets, layers.incomplete_packets)
        del packets
    rows = _rows(byte_range, counts)
    has_problems = reader.scan.damaged or layers.evicted or byte_range.problem
    scan = replace(
        reader.scan,
        split_fragments=fragments.serialised(),
        latest_ns=layers.clock_ns,
        times=times,
        marks=marks.serialised(),
        damaged_ns=marks.damaged_ns,
        connections=-1 if has_problems else rows.num_rows,
    )
    return RangeIndex(scan, rows)


def index_reassembled(ranges: Iterable[Range]) -> Iterator[pa.RecordBatch]:
    """Yield rows for the connections of segments that `add_reassembled` has added to ranges."""
    for byte_range in ranges:
        segments = reassembled_segments(byte_range, lambda name: 0)
        if segments is not None:
            counts = ConnectionCounts()
            counts.add(segments)
            yield _rows(byte_range, counts)


def _rows(byte_range: Range, counts: ConnectionCounts) -> pa.RecordBatch:
    keys, traffic = counts.keys_and_traffic()
    number = np.full(len(keys), byte_range.number, np.int32)
    sums = (np.ascontiguousarray(traffic[name]) for name in ("segments", "bytes"))
    columns = [number, keys, *sums]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def crossing_keys(rows: Iterable[pa.RecordBatch]) -> Int64s:
    """Return the keys that are in more than one range, in order; each with one row per range."""
    keys = [np.zeros(0, np.int64), *(np.asarray(each.column("key")) for each in rows)]
    found, ranges = np.unique(np.concatenate(keys), return_counts=True)
    crossing: Int64s = found[ranges > 1]
    return crossing
