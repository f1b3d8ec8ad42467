"""The two ways in which a part of a collection becomes tables: where it lies, and from parcels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from dissector.capture.columns import Int64s
from dissector.engine.reading.segment_source import FileNames
from pipeline.split.byte_ranges import Range
from pipeline.split.segment_sources import RangeSource
from pipeline.tables.incremental import IncrementalDissection, first_packet_rows
from pipeline.tables.table_builder import Batch, TableBuilder, Wanted

SHARDS = "parcels"
"""The table of parcels, beside those of `SCHEMAS`."""


def dissect_range(each: Range, crossing: Int64s, parts: int, wanted: Wanted) -> Iterator[Batch]:
    """
    Dissect the connections that lie in one range; those that cross its borders become parcels.

    Args:
        each: The range.
        crossing: Keys of the connections that are in other ranges too, in order.
        parts: In how many parts those are dissected.
        wanted: What is wanted.
    """
    feed = RangeSource(each, crossing, parts, wanted.window_bytes)
    tables = TableBuilder(feed, wanted)
    for window in tables.reading.windows():
        yield from tables.rows_of(window)
        for parcel in feed.packer.full_shards():
            yield SHARDS, parcel
        del window
    yield from tables.connections()
    yield first_packet_rows(tables.reading.streams.connections)
    for parcel in feed.packer.finish():
        yield SHARDS, parcel


def dissect_shards(
    parcels: Iterable[pa.RecordBatch], files: FileNames, wanted: Wanted
) -> Iterator[Batch]:
    """
    Dissect the connections of one part.

    Args:
        parcels: Of this part, in the order of ranges and numbers.
        files: Tells which file of the collection holds a packet.
        wanted: What is wanted.
    """
    fold = IncrementalDissection(files, wanted)
    yield from fold.feed(parcels)
    yield from fold.finish()
