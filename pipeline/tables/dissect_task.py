"""The two ways in which a part of a collection becomes tables: where it lies, and from parcels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from dissector.capture.columns import Int64s
from dissector.engine.reading.segment_source import FileNames
from pipeline.split.byte_ranges import Range
from pipeline.split.segment_sources import RangeFeed
from pipeline.tables.incremental import Fold, begun
from pipeline.tables.table_builder import Batch, Tables, Wanted

PARCELS = "parcels"
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
    feed = RangeFeed(each, crossing, parts, wanted.window_bytes)
    tables = Tables(feed, wanted)
    for window in tables.reading.windows():
        yield from tables.of(window)
        for parcel in feed.packing.take():
            yield PARCELS, parcel
        del window
    yield from tables.connections()
    yield begun(tables.reading.streams.connections)
    for parcel in feed.packing.finish():
        yield PARCELS, parcel


def dissect_parcels(
    parcels: Iterable[pa.RecordBatch], files: FileNames, wanted: Wanted
) -> Iterator[Batch]:
    """
    Dissect the connections of one part.

    Args:
        parcels: Of this part, in the order of ranges and numbers.
        files: Tells which file of the collection holds a packet.
        wanted: What is wanted.
    """
    fold = Fold(files, wanted)
    yield from fold.feed(parcels)
    yield from fold.finish()
