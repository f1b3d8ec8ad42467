"""The index pass: which connections have packets in which ranges, by their headers alone."""

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
from pipeline.split.range_reader import RangeReader
from pipeline.split.split_fragments import FragmentCollector, reassembled_segments

SCHEMA = pa.schema(
    {"range": pa.int32(), "key": pa.int64(), "segments": pa.int64(), "bytes": pa.int64()}
)
"""What is known of a connection in a range: its segments there, and the bytes they carry."""


@dataclass(frozen=True, slots=True)
class RangeIndex:
    """
    What the index pass found in a range.

    Attributes:
        scan: How the range was found to be.
        rows: A row of `SCHEMA` for each key.
    """

    scan: RangeScan
    rows: pa.RecordBatch


def index_range(each: Range, window_bytes: int = WINDOW_BYTES) -> RangeIndex:
    """Read the headers of a range."""
    reader, layers, tally = RangeReader(each, window_bytes), Layers(), ConnectionCounts()
    loose = FragmentCollector()
    for packets in reader.windows():
        tally.add(layers.segments(packets))
        loose.update(packets, layers.incomplete_packets)
        del packets
    seen = replace(reader.scan, split_fragments=loose.packed(), latest_ns=layers.clock_ns)
    return RangeIndex(seen, _rows(each, tally))


def index_reassembled(ranges: Iterable[Range]) -> Iterator[pa.RecordBatch]:
    """Yield rows for the connections of segments that only `made_whole` has found."""
    for each in ranges:
        segments = reassembled_segments(each, lambda name: 0)
        if segments is not None:
            tally = ConnectionCounts()
            tally.add(segments)
            yield _rows(each, tally)


def _rows(each: Range, tally: ConnectionCounts) -> pa.RecordBatch:
    counts = tally.rows()
    number = np.full(len(counts), each.number, np.int32)
    columns = [number, *(np.ascontiguousarray(column) for column in counts.T)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def crossing_keys(rows: Iterable[pa.RecordBatch]) -> Int64s:
    """Return the keys that are in more than one range, in order; each has one row a range."""
    keys = [np.zeros(0, np.int64), *(np.asarray(each.column("key")) for each in rows)]
    found, ranges = np.unique(np.concatenate(keys), return_counts=True)
    out: Int64s = found[ranges > 1]
    return out
