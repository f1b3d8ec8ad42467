"""The tasks that make tables: dissecting a range, and connections across ranges, in two ways."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from dissector.capture.columns import Int64s
from dissector.engine.reading.packet_files import FileNames
from pipeline.split.byte_ranges import Range
from pipeline.split.segment_sources import CollectionSource, RangeSource
from pipeline.tables.incremental import IncrementalDissection, first_packet_rows
from pipeline.tables.table_builder import Batch, TableBuilder, TableOptions

SHARDS = "shards"
"""The table of shards, in addition to `SCHEMAS`."""

UNREAD = "unread"
"""The table of files of which no packet of the range could be read, with the reasons."""


def dissect_range(
    byte_range: Range, crossing: Int64s, parts: int, options: TableOptions
) -> Iterator[Batch]:
    """
    Dissect the connections of one range; pack connections that cross its borders into shards.

    Args:
        byte_range: The range.
        crossing: Keys of the connections that are in other ranges too, in order.
        parts: Number of parts for these connections; 0: they are left to `dissect_again`.
        options: Tables to make, and options of dissection.
    """
    source = RangeSource(byte_range, crossing, parts, options.window_bytes)
    tables = TableBuilder(source, options)
    for window in tables.reading.windows():
        yield from tables.rows_of(window)
        for shard in source.packer.full_shards():
            yield SHARDS, shard
        del window
    yield from tables.connections()
    yield first_packet_rows(tables.reading.streams.connections)
    if source.unread:
        rows = {"path": list(source.unread), "reason": list(source.unread.values())}
        yield UNREAD, pa.RecordBatch.from_pydict(rows)
    for shard in source.packer.finish():
        yield SHARDS, shard


def dissect_again(
    ranges: Sequence[Range], crossing: Int64s, options: TableOptions
) -> Iterator[Batch]:
    """
    Dissect connections across ranges from the captures, without shards.

    Args:
        ranges: Those that have packets of the connections, in order.
        crossing: Keys of the connections, in order.
        options: Tables to make, and options of dissection.
    """
    tables = TableBuilder(CollectionSource(ranges, options.window_bytes, crossing), options)
    for window in tables.reading.windows():
        yield from tables.rows_of(window)
        del window
    yield from tables.connections()
    yield first_packet_rows(tables.reading.streams.connections)


def dissect_shards(
    shards: Iterable[pa.RecordBatch], files: FileNames, options: TableOptions
) -> Iterator[Batch]:
    """
    Dissect the connections of one part.

    Args:
        shards: The values of this part, in the order of ranges and numbers.
        files: The file of each packet of the collection.
        options: Tables to make, and options of dissection.
    """
    dissection = IncrementalDissection(files, options)
    yield from dissection.feed(shards)
    yield from dissection.finish()
