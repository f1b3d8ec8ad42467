"""
Tables that only the whole collection gives: events, findings, lag.

Their rows may follow from any exchange before them, so one task reads all ranges in order, once for
all of these tables, as one process does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol

from dissector.engine.reading.capture import Capture, Window
from dissector.protocol.context import iterate_under
from pipeline.split.byte_ranges import Range
from pipeline.split.segment_sources import CollectionSource
from pipeline.tables.table_builder import Batch, TableOptions
from pipeline.tables.table_schemas import EVENTS, FINDINGS, LAGS, PARTITION_LAGS

WHOLE = frozenset((EVENTS, FINDINGS, LAGS, PARTITION_LAGS))
"""The tables."""


class WholeMaker(Protocol):
    """Makes tables of a collection, window by window."""

    def add(self, window: Window) -> Iterable[Batch]:
        """Read a window; return the rows that it completes."""

    def finish(self) -> Iterable[Batch]:
        """Return the rows that the end of the collection completes."""


def whole_tables(ranges: Sequence[Range], options: TableOptions) -> Iterator[Batch]:
    """Yield the rows of those of the tables that are to be made."""
    capture = Capture([], options.reading)
    capture.make_source = partial(CollectionSource, ranges, options.window_bytes)
    makers = list(_makers(capture, options))
    return iterate_under(options.schemas, _rows(capture, makers, options))


def _rows(capture: Capture, makers: Sequence[WholeMaker], options: TableOptions) -> Iterator[Batch]:
    def chosen(batches: Iterable[Batch]) -> Iterator[Batch]:
        return (each for each in batches if each[0] in options.tables)

    for window in capture.windows(gleaning=True):
        for maker in makers:
            yield from chosen(maker.add(window))
        del window
    for maker in makers:
        yield from chosen(maker.finish())


def _makers(capture: Capture, options: TableOptions) -> Iterator[WholeMaker]:
    """Yield the makers of the chosen tables; the others are not loaded."""
    if EVENTS in options.tables:
        from pipeline.tables.event_table import EventMaker

        yield EventMaker(capture, options)
    if {LAGS, PARTITION_LAGS} & options.tables:
        from pipeline.tables.lag_table import LagMaker

        yield LagMaker(capture, options)
    if FINDINGS in options.tables:
        from pipeline.tables.finding_table import FindingMaker

        yield FindingMaker(capture, options)
