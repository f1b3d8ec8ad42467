"""The part of a capture that passes a display filter, window by window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.exchange_columns import row_columns
from dissector.engine.exchanges.exchange_facts import is_bulk_worthwhile
from dissector.engine.exchanges.fact_columns import SUMMARY_COLUMNS, Asked, Stages
from dissector.engine.fields.column_query import ColumnQuery
from dissector.engine.reading.capture import Capture, Window
from dissector.engine.tables.column_types import Columns, Row
from dissector.engine.tables.columns_of import column_batches
from dissector.engine.tables.exchange_table import Exchanges, Ints
from dissector.errors import FilterError

if TYPE_CHECKING:
    from dissector.engine.fields.window_query import WindowQuery
    from dissector.filter import Filter
    from dissector.query.contents.decoded_values import RecordValues


@dataclass(frozen=True, slots=True)
class Selection:
    """
    The filters of a capture.

    Attributes:
        capture: The capture, which is being read.
        filter: Selects the exchanges; None: all.
        record_filter: Selects records of these exchanges; None: all.
        values: Decodes keys and values of records, if anything asks for them.
    """

    capture: Capture
    filter: Filter | None = None
    record_filter: Filter | None = None
    values: RecordValues | None = None

    @classmethod
    def of(cls, capture: Capture, text: str | None, *, records: bool = False) -> Selection:
        """
        Return the selection by the text of a filter; `records`: it may name columns of records.

        Raises:
            FilterError: The filter does not parse.
        """
        if text is None:
            return cls(capture)
        from dissector.filter import parse, parse_with_values

        parsed = (
            parse(text, records=True, hooks=True)
            if records
            else parse_with_values(text, hooks=True)
        )
        capture.options.packet_facts |= parsed.packet_facts
        if any(each.kind == "hook" for each in parsed.paths):
            from dissector.query.contents.hooked_records import use_hook_columns

            use_hook_columns(capture, parsed.paths)
        if parsed.uses_record_columns:
            values = None
            if parsed.uses_values:
                from dissector.query.contents.decoded_values import RecordValues

                values = RecordValues(capture, capture.options.values)
            weaker = parsed.exchange_filter()
            if records or values is None:
                return cls(capture, weaker, parsed, values)
            any_passes = partial(_any_passes, parsed, values)
            return cls(capture, replace(weaker, refinement=any_passes), None, values)
        return cls(capture, parsed)

    def passes(self, exchange: Exchange) -> bool:
        """Return whether an exchange passes the filter."""
        return self.filter is None or self.filter.matches(exchange)

    def exchanges(self, window: Window) -> Iterator[Exchange]:
        """Return the exchanges of a window that pass."""
        return self._objects(window, self._chosen(window))

    def stages(self, asked: Asked) -> Stages:
        """Return what the asked columns, and the filter, need of the bodies."""
        return Stages.of(asked_with(asked, self.filter))

    def parts(self, windows: Iterable[Window], asked: Asked = None) -> Iterator[Columns]:
        """Yield the rows of `pairs` that pass, with the asked columns or more, by window."""
        if self.filter is None:
            return self.capture.parts_of(windows, asked)
        return filter(None, (self.rows(window, asked) for window in windows))

    def rows(self, window: Window, asked: Asked = None) -> Columns:
        """Return the rows of `pairs`, with the asked columns or more; empty without any."""
        chosen = self._chosen(window, asked_with(asked, self.filter))
        columns = chosen[0].select(chosen[1]) if chosen else None
        return columns or row_columns([each.row() for each in self._objects(window, None)])

    def is_in_columns(self, window: Window) -> bool:
        """Return whether `table` returns all exchanges of a window in columns."""
        return self.filter is None and is_bulk_worthwhile(window.exchanges)

    def table(
        self, window: Window, asked: Asked = None
    ) -> tuple[Exchanges, Columns] | Iterator[Exchange]:
        """Return the exchanges that pass: with the asked columns of `pairs`, or as objects."""
        chosen = self._chosen(window, asked_with(asked, self.filter))
        if chosen is not None:
            return window.exchanges.rows(chosen[1]), chosen[0].select(chosen[1])
        if self.is_in_columns(window):
            columns = self.capture.columns_of(window, asked)
            if columns is not None:
                return window.exchanges, columns
        return self._objects(window, None)

    def record_parts(
        self,
        window: Window,
        is_apart: Callable[[str], bool],
        rows: Callable[[Exchange], Iterable[Row]],
        *,
        as_objects: bool = False,
    ) -> Iterator[Columns]:
        """
        Yield the records of a window that pass, in the order of packets.

        See `Capture.record_parts`.

        `as_objects` reads them one by one, each with its exchange.
        """
        if self.values is not None:
            self.values.learn(window)
        chosen, record_filter = self._chosen(window), self.record_filter
        as_objects |= record_filter is not None and not record_filter.tests_only_record_columns
        if as_objects or (self.filter and chosen is None):
            from dissector.engine.exchanges.exchange_records import KINDS

            found = chain.from_iterable(map(rows, self._objects(*_in_record_order(window, chosen))))
            yield from column_batches(found, KINDS)
            return
        if chosen is not None:
            window = replace(window, exchanges=window.exchanges.rows(chosen[1]))
        passing = None if record_filter is None else partial(self._passing, record_filter)
        yield from self.capture.record_parts(window, is_apart, rows, passing)

    def _passing(self, record_filter: Filter, columns: Columns) -> Ints:
        query = ColumnQuery(columns) if self.values is None else self.values.query(columns)
        return record_filter.passing(query)

    def records(self, exchange: Exchange) -> Iterator[dict[str, Any]]:
        """Yield the records of an exchange that pass."""
        from dissector.engine.exchanges.exchange_records import record_rows

        for row in record_rows(exchange):
            if self.record_filter is None or self.record_filter.matches(
                _Record(exchange, row, self.values)
            ):
                yield row

    def exchange_table(self, window: Window) -> Exchanges:
        """Return the exchanges of a window that pass as a table."""
        rows = self.rows_that_pass(window)
        return window.exchanges if rows is None else window.exchanges.rows(rows)

    def rows_that_pass(self, window: Window) -> Ints | None:
        """Return the numbers of the exchanges of a window that pass; None for all."""
        if self.filter is None:
            return None
        if chosen := self._chosen(window, self.filter.columns):
            return chosen[1]
        passed = map(self.passes, self.capture.exchanges_of(window))
        return np.flatnonzero(np.fromiter(passed, np.bool_, len(window.exchanges)))

    @property
    def needs_summaries(self) -> bool:
        """Whether `rows_that_pass` reads client ids, errors, topics or problems."""
        return self.filter is not None and not self.filter.columns.isdisjoint(SUMMARY_COLUMNS)

    def _objects(
        self, window: Window, chosen: tuple[WindowQuery, Ints] | None
    ) -> Iterator[Exchange]:
        if chosen is None:
            return filter(self.passes, self.capture.exchanges_of(window))
        query, rows = chosen
        return map(query.exchange, rows.tolist())

    def _chosen(self, window: Window, asked: Asked = None) -> tuple[WindowQuery, Ints] | None:
        """
        Return the rows of a window that pass; None without a filter, or for a small window.

        `asked` are the only columns of the query that will be read.
        """
        if self.values is not None and self.record_filter is None:
            self.values.learn(window)
        if self.filter is None or not is_bulk_worthwhile(window.exchanges):
            return None
        from dissector.engine.fields.window_query import WindowQuery

        query = WindowQuery(self.capture, window, asked)
        return query, self.filter.passing(query)


def asked_with(asked: Asked, filter: Filter | None) -> Asked:
    """Return the asked columns with those that a filter reads."""
    if filter is None or asked is None:
        return asked
    reads_objects = filter.refinement is not None or any(
        each.kind == "hook" for each in filter.paths
    )
    return None if reads_objects else asked | filter.columns


def may_test_problems(text: str | None) -> bool:
    """Return whether a filter may name problems of records; one of records always may."""
    if text is None:
        return False
    from dissector.filter import parse_with_values

    try:
        parsed = parse_with_values(text, hooks=True)
    except FilterError:
        return True
    return Stages.of(asked_with(frozenset(), parsed)).checking


def check_filter(text: str) -> None:
    """
    Check that a filter parses, for exchanges or for records.

    Raises:
        FilterError: It does not; the error is that of a filter of exchanges.
    """
    from dissector.filter import parse

    try:
        parse(text, hooks=True)
    except FilterError as error:
        try:
            parse(text, records=True, hooks=True)
        except FilterError:
            raise error from None


def joined_filters(first: str | None, second: str | None) -> str | None:
    """Return the text of a filter that passes what both pass; None without any."""
    given = [each for each in (first, second) if each is not None]
    return " and ".join(f"({each})" for each in given) if given[1:] else "".join(given) or None


def _any_passes(record_filter: Filter, values: RecordValues, exchange: Exchange) -> bool:
    """Return whether any record of an exchange passes a filter of records."""
    from dissector.engine.exchanges.exchange_records import record_rows

    return any(
        record_filter.matches(_Record(exchange, row, values)) for row in record_rows(exchange)
    )


def _in_record_order(
    window: Window, chosen: tuple[WindowQuery, Ints] | None
) -> tuple[Window, tuple[WindowQuery, Ints] | None]:
    """Return a window, or its chosen rows, in the order of the packets that carry records."""
    from dissector.engine.records.record_order import in_record_order, record_order

    if chosen is None:
        # Rows of its summary would be those of the other order.
        return replace(window, exchanges=in_record_order(window.exchanges), summary=None), None
    query, rows = chosen
    order = record_order(window.exchanges.rows(rows))
    return window, (query, rows if order is None else rows[order])


class _Record:
    """A record with its exchange, as the operands of a filter."""

    def __init__(self, exchange: Exchange, row: Row, values: RecordValues | None) -> None:
        self._exchange = exchange
        self._row = row
        self._decoded = None if values is None else values.record(row)

    def column(self, name: str) -> object:
        if name in self._row:
            return self._row[name]
        if self._decoded is not None and self._decoded.has(name):
            return self._decoded.column(name)
        return self._exchange.column(name)

    def body(self, kind: str) -> Mapping[str, Any] | None:
        return self._exchange.body(kind)
