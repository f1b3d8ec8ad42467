"""
A capture: its files read as objects, as columns, as tables.

A `Reading` is one pass over the files; a `Capture` can be read more than once, except from standard
input.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np

from dissector.capture.formats.capture_reader import is_rereadable
from dissector.capture.formats.conversions import converted_files
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.exchange_columns import exchange_columns, with_names
from dissector.engine.exchanges.exchange_facts import (
    is_bulk_worthwhile,
    read_topic_names,
    resolve_topics,
    summarise,
    summarise_facts,
)
from dissector.engine.exchanges.fact_columns import Asked, ExchangeSummaries, Stages
from dissector.engine.exchanges.topic_resolution import resolve_late_names
from dissector.engine.facts.fact_tables import WindowFacts, extract_facts
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.reading.reader import Options, Reading, Tap, Window
from dissector.engine.reading.segment_source import SegmentSource
from dissector.engine.tables import polars_tables as tables
from dissector.engine.tables.column_types import Columns, Row, select_rows
from dissector.engine.tables.columns_of import columns_of, with_inserted
from dissector.engine.tables.exchange_table import Ints
from dissector.engine.tables.logins import Logins
from dissector.protocol.context import iterate_under, using

if TYPE_CHECKING:
    import polars

__all__ = ["Capture", "Options", "Reading", "Window"]


class Capture:
    """
    One or several files of one capture.

    Attributes:
        paths: The files in order; `-` is standard input.
        names: Known names of topic ids.
        make_source: Makes the source of segments of each pass, instead of the files themselves.
        tap: Receives all stream bytes during the pass.
        untapped: Connections that it needs no more; it may add to them.
        reading: The current pass, or the last one; None before the first.
        notices: Lines that stages behind the pass have to say to its user.
    """

    def __init__(self, paths: Sequence[str | Path], options: Options | None = None) -> None:
        self.paths = [str(path) for path in paths]
        self.options = options or Options()
        self.names = self._new_names()
        self.make_source: Callable[[], SegmentSource] | None = None
        self.tap: Tap | None = None
        self.untapped: Collection[int] = ()
        self.reading: Reading | None = None
        self.notices: list[str] = []

    def __repr__(self) -> str:
        return f"<Capture {', '.join(self.paths)}>"

    @property
    def has_logs(self) -> bool:
        """Whether a file is a request log, as far as that can be seen in advance."""
        names = [name for name in self.paths if is_rereadable(name, self.options.inputs)]
        return bool(converted_files(names, self.options.inputs))

    @property
    def logins(self) -> Logins:
        """The secrets that logins showed so far in the current pass."""
        return Logins() if self.reading is None else self.reading.correlator.logins

    def read_in_step(self) -> None:
        """
        Read no window before the caller asks for it: `reading` is as that window left it.

        Otherwise it may be a window ahead, or in the middle of one. For passes that begin later.
        """
        self.options.jobs = 1

    def forget_connections(self) -> None:
        """
        Forget connections minutes after their end; they count on.

        Memory then does not depend on how many there were. For passes that begin later, which read
        in step. What passes say of single connections at their end is about the last ones.
        """
        self.read_in_step()
        self.options.forgets = True

    def windows(self, *, gleaning: bool = False, checking: bool = True) -> Iterator[Window]:
        """
        Read the capture, window by window.

        Args:
            gleaning: Extracts the summaries of exchanges.
            checking: Looks for problems of records too; else summaries lack these.
        """
        self.reading = self._new_reading(self.tap)
        extract = _extract_facts if checking else _extract_facts_alone
        windows: Iterator[Window] = (
            self.reading.map_windows(extract, _summarise) if gleaning else self.reading.windows()
        )
        lengths = self.reading.source.facts.lengths
        if lengths is None:
            yield from windows
            return
        for window in windows:
            low_watermark = window.low_watermark
            yield window
            del window
            lengths.drop_before(low_watermark)

    def __iter__(self) -> Iterator[Exchange]:
        """Read the capture, exchange by exchange, in the order of their ends."""
        for window in self.windows():
            yield from self.exchanges_of(window)

    def exchanges_of(self, window: Window) -> Iterator[Exchange]:
        """Yield the exchanges of a window as objects."""
        assert self.reading is not None
        table = window.exchanges
        summaries = self.known_of(window) if is_bulk_worthwhile(table) else None
        for row in range(len(table)):
            exchange = self.reading.exchange(table, row, self.names, summaries)
            if summaries is None:
                exchange.learn()
            yield exchange

    def known_of(self, window: Window, *, checking: bool = True) -> ExchangeSummaries:
        """
        Return the summaries of a window's exchanges; windows must be passed in order.

        Without `checking` they may lack problems of records.
        """
        with using(self.options.schemas):
            summary = window.summary or summarise(window.exchanges, checking=checking)
            return resolve_topics(summary, self.names)

    def columns_of(self, window: Window, asked: Asked = None) -> Columns | None:
        """Return the asked columns of `pairs`; None without rows."""
        return (
            with_names(self.unresolved_columns(window, asked), self.names)
            if len(window.exchanges)
            else None
        )

    def parts(self, asked: Asked = None) -> Iterator[Columns]:
        """Yield the asked columns of `pairs`, window by window."""
        return self.parts_of(self.windows(**Stages.of(asked)._asdict()), asked)

    def parts_of(self, windows: Iterable[Window], asked: Asked = None) -> Iterator[Columns]:
        """Yield the asked columns of `pairs` of all windows of the capture that have rows."""
        return resolve_late_names(self._unresolved_columns(windows, asked), self.names)

    def _unresolved_columns(self, windows: Iterable[Window], asked: Asked) -> Iterator[Columns]:
        for window in windows:
            if len(window.exchanges):
                columns = self.unresolved_columns(window, asked)
                del window
                yield columns
                del columns

    def unresolved_columns(
        self, window: Window, asked: Asked = None, summaries: ExchangeSummaries | None = None
    ) -> Columns:
        """
        Return the asked columns of `pairs` with topic ids as in the messages; see `LateNames`.

        Args:
            window: The window.
            asked: The columns.
            summaries: Its summaries, if the caller knows them.
        """
        assert self.reading is not None
        if summaries is None and Stages.of(asked).gleaning:
            summaries = self.known_of(window)
        with using(self.options.schemas):
            return exchange_columns(
                window.exchanges,
                summaries or ExchangeSummaries.unread(len(window.exchanges)),
                self.reading.files_of,
                self.reading.endpoints.of_all,
                self.reading.origins_of,
                self.reading.logs,
                asked,
            )

    def batches(self) -> Iterator[polars.DataFrame]:
        """Yield the exchanges as tables of some ten thousand rows each."""
        return tables.part_frames(self.parts(), tables.exchange_schema(logs=self.has_logs))

    def exchanges(self) -> polars.DataFrame:
        """Return all exchanges as one table, with the columns of `pairs`."""
        return _concatenate(self.batches())

    def record_parts(
        self,
        window: Window,
        is_apart: Callable[[str], bool],
        rows: Callable[[Exchange], Iterable[Row]],
        passing: Callable[[Columns], Ints] | None = None,
    ) -> Iterator[Columns]:
        """
        Yield the records of a window, in the order of the packets that carry them.

        Args:
            window: The window.
            is_apart: Returns whether the records of a topic, by name, are read one by one.
            rows: Returns the records of an exchange that are not read in bulk.
            passing: Returns the rows of the others that pass; None: all.
        """
        parts = self._record_parts(window, is_apart, rows, passing)
        return iterate_under(self.options.schemas, parts)

    def _record_parts(
        self,
        window: Window,
        is_apart: Callable[[str], bool],
        rows: Callable[[Exchange], Iterable[Row]],
        passing: Callable[[Columns], Ints] | None,
    ) -> Iterator[Columns]:
        from dissector.engine.exchanges.exchange_records import KINDS
        from dissector.engine.records.record_order import in_record_order
        from dissector.engine.records.record_windows import record_parts

        assert self.reading is not None
        table = in_record_order(window.exchanges)
        if self.names.can_read_ahead:
            self.names.learn(read_topic_names(table))
        for part in record_parts(table, self.names, is_apart):
            counts, found = [], list[Row]()
            for row in part.object_rows.tolist():
                exchange = self.reading.exchange(table, row, self.names)
                exchange.learn()
                before = len(found)
                found += rows(exchange)
                counts.append(len(found) - before)
            columns, at = part.columns, part.insert_at
            if columns and passing is not None:
                chosen = passing(columns)
                columns, at = select_rows(columns, chosen), np.searchsorted(chosen, at)
            if found:
                apart = columns_of(found, KINDS)
                columns = with_inserted(columns, np.repeat(at, counts), apart) if columns else apart
            if columns:
                yield columns

    @staticmethod
    def records_in_order(
        windows: Iterable[Window], parts_of: Callable[[Window], Iterable[Columns]]
    ) -> Iterator[Columns]:
        """
        Yield the records of windows in the order of the packets that carry them.

        A Fetch is never before the Produce that it reads. Records wait for Produces in flight, as
        far as `RecordOrder` lets them.

        Args:
            windows: The windows in order.
            parts_of: Returns the records of a window, as `record_parts` does.
        """
        from dissector.engine.records.record_order import RecordOrder

        order = RecordOrder()
        for window in windows:
            yield from order.take(parts_of(window), window.records_from, is_live=window.is_live)
            del window  # frees its memory before the next window is read
        yield from order.drain()

    def record_batches(self) -> Iterator[polars.DataFrame]:
        """Yield the records as tables of some ten thousand rows each."""
        from dissector.engine.exchanges.exchange_records import record_rows

        parts = self.records_in_order(
            self.windows(),
            lambda window: self.record_parts(window, lambda topic: False, record_rows),
        )
        return tables.part_frames(parts, tables.record_schema())

    def records(self) -> polars.DataFrame:
        """Return all records of Produce requests and Fetch responses as one table."""
        return _concatenate(self.record_batches())

    def _new_names(self) -> TopicNames:
        inputs = self.options.inputs
        can_reread = all(is_rereadable(path, inputs) for path in self.paths)
        names = TopicNames(self.read_names if can_reread else None)
        names.learn(self.options.topic_names)
        return names

    def read_names(self) -> dict[UUID, str]:
        """Read all names of topic ids in the capture, from the messages that may define them."""
        names: dict[UUID, str] = {}
        for window_names in self._new_reading().map_windows(_read_window_names):
            names = window_names | names
        return names

    def _new_reading(self, tap: Tap | None = None) -> Reading:
        source = None if self.make_source is None else self.make_source()
        return Reading(self.paths, self.options, tap, source, self.untapped)


def _extract_facts(window: Window) -> tuple[Window, WindowFacts]:
    return window, extract_facts(window.exchanges)


def _extract_facts_alone(window: Window) -> tuple[Window, WindowFacts]:
    return window, extract_facts(window.exchanges, records=False)


def _summarise(extracted: tuple[Window, WindowFacts]) -> Window:
    window, facts = extracted
    return replace(window, summary=summarise_facts(window.exchanges, facts))


def _read_window_names(window: Window) -> dict[UUID, str]:
    return read_topic_names(window.exchanges)


def _concatenate(parts: Iterator[polars.DataFrame]) -> polars.DataFrame:
    from dissector.polars_extra import polars

    return polars.concat(list(parts))
