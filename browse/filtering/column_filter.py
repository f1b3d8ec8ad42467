"""Filters on columns of the list, evaluated without reading the capture again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from browse.rows.shown_rows import Mask
from dissector.engine.exchanges.log_columns import ACCOUNT_COLUMNS
from dissector.engine.exchanges.packet_columns import NS_PER_S, SECONDS, origin_ns
from dissector.engine.fields.column_query import ColumnQuery
from dissector.engine.fields.column_query import Mask as Present
from dissector.engine.tables.column_types import Columns, Integers
from dissector.engine.tables.exchange_table import NONE, Ints

if TYPE_CHECKING:
    from dissector.filter import Filter


def is_column_filter(chosen: Filter) -> bool:
    """Return whether a filter needs only columns of the list."""
    needs_more = chosen.needs_bodies or bool(chosen.packet_facts) or chosen.uses_values
    return not needs_more and chosen.columns.isdisjoint(ACCOUNT_COLUMNS)


def column_mask(chosen: Filter, begin_ns: int) -> Mask:
    """Return a function that filters a part of the list; `begin_ns` is the first packet's time."""
    return lambda columns: chosen.passing(_PartQuery(columns, begin_ns))


class _PartQuery(ColumnQuery):
    """A part of the list, with relative times for filters."""

    def __init__(self, columns: Columns, begin_ns: int) -> None:
        super().__init__(columns)
        self._begin_ns = begin_ns

    def number_column(self, name: str, rows: Ints) -> tuple[NDArray[Any], Present] | None:
        """Return values and validity of a numeric column; None for other columns."""
        if name not in SECONDS:
            return super().number_column(name, rows)
        times = self.columns[f"{SECONDS[name]}_time_ns"]
        assert isinstance(times, Integers)
        values = times.values[rows]
        return (values - origin_ns(name, self._begin_ns)) / NS_PER_S, values != NONE
