"""
Texts of rows without secrets: client ids, topics, members and other short texts from messages.

Bodies and records are masked where they are decoded. In columns each distinct text is tested once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, cast

import numpy as np

from dissector.engine.tables.column_types import Coded, Columns, distinct
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tables.logins import Logins
from dissector.engine.tables.polars_tables import MixedRows, Row, TablePart
from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.protocol.login_secrets import NOTHING_KNOWN, Known

Part = TypeVar("Part", bound=TablePart)

_TEXTS = frozenset(("client_id", "topic", "topics", "problems", "error"))
"""The columns of exchanges, messages and records with texts from messages."""


class SecretCells:
    """Masks the texts of rows."""

    def __init__(self, logins: Callable[[], Logins], show_secrets: bool) -> None:
        """Start; `logins` returns the secrets that logins of the capture showed so far."""
        self._logins = logins
        self._shows = show_secrets

    def parts(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Yield rows of `pairs`, `records` or messages without secrets in their texts."""
        return iter(parts) if self._shows else (cast(Part, self._part(each)) for each in parts)

    def row(self, row: Row) -> Row:
        """Return a row without secrets in its texts."""
        if self._shows:
            return row
        number = row.get("connection")
        known = NOTHING_KNOWN if number is None else self._logins().of(number)
        return {name: mask_cell(name, value, known) for name, value in row.items()}

    def _part(self, part: TablePart) -> TablePart:
        if isinstance(part, MixedRows):
            inserted = [map(self.row, rows) for rows in part.inserted]
            return MixedRows(self.columns(part.columns), part.positions, inserted)
        return self.columns(part) if isinstance(part, Mapping) else map(self.row, part)

    def columns(self, columns: Columns) -> Columns:
        """Return columns without secrets in their texts."""
        if self._shows:
            return columns
        texts = {
            name: column
            for name in _TEXTS & columns.keys()
            if isinstance(column := columns[name], Coded)
        }
        return {**columns, **{name: self._column(columns, each) for name, each in texts.items()}}

    def _column(self, columns: Columns, column: Coded) -> Coded:
        values: list[Any] = mask_texts([*column.values])
        codes = column.codes
        connection = columns.get("connection")
        if isinstance(connection, Coded):
            known = list(map(self._logins().of, connection.values))
            is_known = np.array([*(each is not NOTHING_KNOWN for each in known), False], np.bool_)
            if is_known.any():
                rows = np.flatnonzero(is_known[connection.codes] & (codes != NONE))
                pairs, found = distinct(codes[rows] * len(known) + connection.codes[rows])
                codes = codes.copy()
                new = np.array([*map(int, found // len(known))], np.int64)
                for at, pair in enumerate(found.tolist()):
                    value, number = divmod(pair, len(known))
                    hidden = mask_texts(column.values[value], known[number])
                    if hidden != values[value]:
                        new[at] = len(values)
                        values.append(hidden)
                codes[rows] = new[pairs]
        return Coded(codes, values)


def mask_cell(column: str, value: Any, known: Known) -> Any:
    """Return the value of a column of exchanges, messages or records without secrets."""
    return mask_texts(value, known) if column in _TEXTS else value
