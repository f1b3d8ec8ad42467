"""State of the screen without widgets: lists, filters, and running passes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from browse.filtering.column_filter import column_mask, is_column_filter
from browse.filtering.filter_run import FilterRun
from browse.filtering.filter_texts import joined
from browse.listing.capture_access import CaptureAccess, Pass
from browse.listing.exchange_loading import ExchangeLoading
from browse.listing.list_columns import EXCHANGE_MODE, Mode
from browse.listing.row_info import RowInfo
from browse.rows.exchange_messages import EVIDENCE, EXCHANGE, MessageRows
from browse.rows.row_parts import RowParts
from browse.rows.shown_rows import Mask, ShownRows
from dissector.column_catalogue import CONNECTIONS
from dissector.engine.reading.connection_rows import COLUMNS as CONNECTION_COLUMNS
from dissector.engine.reading.connection_rows import connection_rows
from dissector.engine.tables.column_types import Columns, Integers
from dissector.engine.tables.columns_of import columns_of
from dissector.engine.tables.exchange_table import NONE, Ints

if TYPE_CHECKING:
    from browse.listing.mode_passes import EventPass, RecordPass
    from dissector.filter import Filter

Spawn = Callable[[Callable[[], None]], object]
"""Runs a function in a thread."""


_CONNECTION_KINDS = {each.name: Integers for each in CONNECTIONS if each.type == "int"}


def _parsed(text: str) -> Filter:
    from dissector.filter import parse_with_values  # the first rows need none

    return parse_with_values(text)


class Crumb:
    """
    A step of following.

    Attributes:
        title: Title on the screen.
        filter: Filter of the list.
    """

    def __init__(self, title: str, filter: str) -> None:
        self.title = title
        self.filter = filter


class ListSession:
    """
    Rows of the current mode, under the current filters.

    Attributes:
        access: Access to the capture.
        loading: The first pass over the capture.
        mode: Kind of rows in the list.
        text: Filter of the bar.
        crumbs: Followed values, outermost first.
        exchanges: Matching exchanges, in all modes.
        shown: Rows of the list.
        run: Running pass of a filter or mode; None without one.
    """

    def __init__(self, access: CaptureAccess, loading: ExchangeLoading, spawn: Spawn) -> None:
        self.access = access
        self.loading = loading
        self.mode: Mode = EXCHANGE_MODE
        self.text = ""
        self.crumbs: list[Crumb] = []
        # Live, rows come as exchanges end: an older place would move what the user looks at.
        self.exchanges = ShownRows(loading.parts, () if access.is_live else EXCHANGE_MODE.key)
        self.shown = self.exchanges
        self.run: Pass | None = None
        self._spawn = spawn
        self._filter_run: FilterRun | None = None
        self._messages = MessageRows(loading.parts)
        self._info = RowInfo(loading.parts, loading.finder, access.show_secrets)
        self._mode_pass: RecordPass | EventPass | None = None
        self._was_done = False
        self._given_rows = sys.maxsize
        self.exchanges.update()

    @property
    def begin_ns(self) -> int:
        """Time of the first packet."""
        return self.access.first.begin_ns

    @property
    def filter_text(self) -> str:
        """Conjunction of all current filters."""
        return joined([*(crumb.filter for crumb in self.crumbs), self.text])

    @property
    def is_filtered(self) -> bool:
        """Whether a filter is active."""
        return bool(self.filter_text)

    @property
    def is_full(self) -> bool:
        """Whether the capture has more rows than the list holds."""
        return self._mode_pass is not None and self._mode_pass.is_full

    def show_mode(self, mode: Mode) -> None:
        """Switch to another kind of rows, under the same filters."""
        self.mode = mode
        self._begin()

    def filter_by(self, text: str) -> None:
        """Apply a valid filter."""
        self.text = text.strip()
        self._begin()

    def follow(self, title: str, text: str) -> None:
        """Narrow the list further."""
        self.crumbs.append(Crumb(title, text))
        self._begin()

    def back(self, count: int = 1) -> bool:
        """Go back some steps of following; return whether any step was undone."""
        if not self.crumbs:
            return False
        del self.crumbs[-count:]
        self._begin()
        return True

    def cancel(self) -> bool:
        """Cancel the pass of a filter or mode; return whether one was running."""
        if self.run is None or self.run.is_done:
            return False
        self.run.cancel()
        return True

    def watch(self, run: Pass) -> None:
        """Show the progress of a search, unless the list itself is loading."""
        if self.run is None or self.run.is_done:
            self.run = run

    def close(self) -> None:
        """End all passes."""
        self.cancel()
        self.loading.cancel()

    def poll(self) -> bool:
        """Collect the results of threads; return whether the list has changed."""
        changed = self.exchanges.update()
        if self._filter_run is not None:
            while self._filter_run.found:
                found = self._filter_run.found.popleft()
                self.exchanges.give(found[found < self._given_rows])
                changed = True
        if self.loading.is_done and not self._was_done:
            self._was_done = changed = True
        if self.mode is EXCHANGE_MODE:
            return changed
        if self._mode_pass is not None:
            return self.shown.update()
        changed = changed and (
            self._was_done or self.access.is_live or self.mode.name == "messages"
        )
        if changed:
            self._derive()
        return changed

    def problems(self) -> list[str]:
        """Return the problems of files, and the errors of passes."""
        found = [
            f"{name}: {each.what}" + ("" if each.position is None else f" at byte {each.position}")
            for name, each in self.loading.problems
        ]
        failures = [each.failure for each in (self.loading, self.run) if each and each.failure]
        return [*found, *failures]

    def exchange_number(self, row: int) -> int | None:
        """Return the number of the exchange for a row of the list; None without one."""
        parts = self.shown.parts
        match self.mode.name:
            case "exchanges":
                return row
            case "messages":
                found = parts.value(row, EXCHANGE)
                return None if found is None else int(found)
            case "records":
                connection, packet = parts.cells(row, ("connection", "packet"))
                return self._find(connection, packet)
            case "events":
                connection, packet, correlation_id = parts.cells(row, EVIDENCE)
                return None if packet is None else self._find(connection, packet, correlation_id)
            case _:
                numbers = self.loading.parts.numbers("connection")
                rows = np.flatnonzero(numbers == parts.value(row, "connection"))
                return int(rows[0]) if len(rows) else None

    def apis_of(self, connection: int) -> dict[str, int]:
        """Return the number of exchanges on a connection by API, most first."""
        parts = self.loading.parts
        rows = np.flatnonzero(parts.numbers("connection") == connection).tolist()
        return dict(Counter(parts.value(row, "api") or "unknown" for row in rows).most_common())

    def info(self, row: int) -> str:
        """Return what a row of exchanges or messages is about."""
        number = self.exchange_number(row)
        if number is None:
            return ""
        found = self._info.of(number)
        if self.mode.name != "messages":
            return str(found)
        is_request = self.shown.parts.value(row, "kind") == "request"
        return found.request if is_request else found.response

    def _find(self, connection: int, packet: int, correlation_id: int | None = None) -> int | None:
        """Return the exchange with a request or response completed by a packet."""
        parts = self.loading.parts
        requests, responses = parts.numbers("request_packet"), parts.numbers("response_packet")
        found = (parts.numbers("connection") == connection) & (
            (requests == packet) | (responses == packet)
        )
        if correlation_id is not None:
            found &= parts.numbers("correlation_id") == correlation_id
        rows = np.flatnonzero(found)
        return int(rows[0]) if len(rows) else None

    def _begin(self) -> None:
        """Apply the filters to the rows of the mode."""
        self.cancel()
        self.run = self._filter_run = self._mode_pass = None
        text = self.filter_text
        if self.mode.name in ("records", "events"):
            from browse.listing.mode_passes import EventPass, RecordPass

            is_record = self.mode.name == "records"
            found = (RecordPass if is_record else EventPass)(self.access, text)
            self.run = self._mode_pass = found
            self.shown = ShownRows(found.parts, self.mode.key)
            self._spawn(found.read)
            return
        chosen = _parsed(text) if text else None
        if chosen is None:
            self.exchanges.filter_by(None)
        elif is_column_filter(chosen):
            self.exchanges.filter_by(column_mask(chosen, self.begin_ns))
        else:
            self.exchanges.begin_given()
            # In live captures the last requests may still be answered.
            rows = len(self.loading.parts)
            self._given_rows = rows if self.access.is_live else sys.maxsize
            self.run = self._filter_run = FilterRun(self.access, text)
            self._spawn(self._filter_run.search)
        self.shown = self.exchanges
        if self.mode is not EXCHANGE_MODE:
            self.shown = ShownRows(self._messages.parts, self.mode.key)
            self._derive()

    def _derive(self) -> None:
        """Show messages or connections of matching exchanges."""
        if self.mode.name == "messages":
            self._messages.update()
            self.shown.filter_by(self._passing(EXCHANGE, self.exchanges.numbers()))
            return
        parts, sort = RowParts(), self.shown.sort
        if rows := self._connections():
            parts.append(columns_of(rows, _CONNECTION_KINDS))
        self.shown = ShownRows(parts)
        self.shown.sort_by(sort if sort and sort.name in CONNECTION_COLUMNS else None)
        connections = self.loading.parts.numbers("connection")[self.exchanges.numbers()]
        self.shown.filter_by(self._passing("connection", connections))

    def _connections(self) -> list[dict[str, Any]]:
        reading = self.access.first.capture.reading
        with suppress(RuntimeError):  # connections were added meanwhile: retry at the next poll
            return list(connection_rows(reading)) if reading is not None else []
        return []

    def _passing(self, name: str, numbers: Ints) -> Mask | None:
        """Return the mask of rows with one of the given numbers in a column."""
        if not self.is_filtered:
            return None
        passes = np.zeros(int(numbers.max(initial=0)) + 2, np.bool_)
        passes[numbers[numbers != NONE]] = True

        def mask(columns: Columns) -> Ints:
            column = columns[name]
            assert isinstance(column, Integers)
            return np.flatnonzero(passes[np.minimum(column.values, len(passes) - 1)])

        return mask
