"""Column access to a window for filters; exchanges are decoded as objects only where necessary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.exchange_columns import with_names
from dissector.engine.exchanges.fact_columns import SUMMARY_COLUMNS, Asked, Stages
from dissector.engine.exchanges.log_columns import ACCOUNT_COLUMNS
from dissector.engine.exchanges.packet_columns import NS_PER_S, SECONDS
from dissector.engine.fields.column_query import ColumnQuery, Mask
from dissector.engine.fields.field_predicates import matches_any_value
from dissector.engine.tables.column_types import Columns, select_rows
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.protocol.api import Kind

if TYPE_CHECKING:
    from dissector.engine.reading.capture import Capture, Window


class FieldPath(Protocol):
    """A field of a body: side and path."""

    @property
    def kind(self) -> Kind | Literal["hook"]:
        """`request` or `response`; `hook` of a column of hooks."""
        ...

    @property
    def path(self) -> tuple[str, ...]:
        """Names of the structs and the field."""
        ...


class WindowQuery(ColumnQuery):
    """The exchanges of a window as a `filter.Table`; `columns` are columns of `pairs`."""

    def __init__(self, capture: Capture, window: Window, asked: Asked = None) -> None:
        """
        Read the asked columns of a window.

        What is read from the bodies, and the names of topic ids, cost most.
        """
        assert capture.reading is not None
        self._reading = capture.reading
        self._packets = capture.reading.packet_columns()
        self._names = capture.names
        self._window = window
        summaries = capture.known_of(window) if Stages.of(asked).gleaning else None
        columns = capture.unresolved_columns(window, asked, summaries)
        # Summaries of objects are whole, or their codecs read the bodies.
        is_whole = asked is None or asked >= SUMMARY_COLUMNS
        self._summaries = summaries if is_whole else None
        super().__init__(with_names(columns, capture.names))

    def number_column(self, name: str, rows: Ints) -> tuple[NDArray[Any], Mask] | None:
        """Return values and validity of a numeric column; None for other columns."""
        packets = self._packets.integers(self._window.exchanges, name)
        if name in ACCOUNT_COLUMNS and name not in self.columns:
            return np.zeros(len(rows)), np.zeros(len(rows), np.bool_)
        if packets is None:
            return super().number_column(name, rows)
        packets = packets[rows]
        return packets / NS_PER_S if name in SECONDS else packets, packets != NONE

    def distinct_values(self, name: str, rows: Ints) -> tuple[Ints, Sequence[object]]:
        """Return the index of each row's value among the distinct values, and these."""
        if name in self.columns:
            return super().distinct_values(name, rows)
        if name in ACCOUNT_COLUMNS:
            return np.zeros(len(rows), np.int64), [None]
        if (texts := self._packets.texts(self._window.exchanges, name, rows)) is not None:
            return texts
        found = (self.exchange(row).column(name) for row in rows.tolist())
        return np.arange(len(rows)), list(found)

    def any_value_at(
        self,
        path: FieldPath,
        rows: Ints,
        test: Callable[[object], bool],
        matches: Callable[[Exchange], bool],
    ) -> Mask:
        """Return for each row whether any value at a path of a body passes; see `filter.Table`."""
        if path.kind == "hook":
            return np.array([matches(self.exchange(row)) for row in rows.tolist()], np.bool_)
        result = matches_any_value(self._window.exchanges, path.kind, path.path, rows, test)
        unknown = np.flatnonzero(result.unknown)
        for at, row in zip(unknown.tolist(), rows[unknown].tolist(), strict=True):
            result.passes[at] = matches(self.exchange(row))
        return result.passes

    def exchange(self, row: int) -> Exchange:
        """Return an exchange as an object."""
        return self._reading.exchange(self._window.exchanges, row, self._names, self._summaries)

    def select(self, rows: Ints) -> Columns:
        """Return the columns of some rows."""
        return select_rows(self.columns, rows)
