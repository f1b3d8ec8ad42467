"""
Texts of rows without secrets: client ids, topics, members and other short texts from messages.

Bodies and records are masked where they are decoded. In columns each distinct text is tested once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.tables.column_types import Coded, Columns, Integers, distinct
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.engine.tables.logins import Logins
from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.protocol.login_secrets import NOTHING_KNOWN, Known

_TEXTS = frozenset(
    (
        "client_id",
        "topic",
        "topics",
        "problems",
        "error",
        "info",
        "request_comments",
        "response_comments",
    )
)
"""The columns of exchanges, messages and records with texts from messages."""


class SecretCells:
    """Masks the texts of rows."""

    def __init__(self, logins: Callable[[], Logins], show_secrets: bool) -> None:
        """Start; `logins` returns the secrets that logins of the capture showed so far."""
        self._logins = logins
        self._shows = show_secrets

    def parts(self, parts: Iterable[Columns]) -> Iterator[Columns]:
        """Yield rows of `pairs`, `records` or messages without secrets in their texts."""
        return map(self.columns, parts)

    def columns(self, columns: Columns) -> Columns:
        """Return columns without secrets in their texts."""
        if self._shows:
            return columns
        texts = {
            name: column
            for name in _TEXTS & columns.keys()
            if isinstance(column := columns[name], Coded)
        }
        known = self._known(columns)
        return {**columns, **{name: _masked(each, *known) for name, each in texts.items()}}

    def _known(self, columns: Columns) -> tuple[Sequence[Known], Ints]:
        """Return the secrets of connections, and for each row the index of its connection's."""
        match columns.get("connection"):
            case Coded(codes, values):
                secrets = [*map(self._logins().of, values), NOTHING_KNOWN]
                return secrets, np.where(codes == NONE, len(values), codes)
            case Integers(numbers):
                codes, found = distinct(numbers)
                return list(map(self._logins().of, found.tolist())), codes
            case _:
                return [], np.zeros(0, np.int64)


def _masked(column: Coded, known: Sequence[Known], number: Ints) -> Coded:
    """Return a column of texts without secrets; `number` has the index in `known` of each row."""
    values: list[Any] = mask_texts([*column.values])
    codes = column.codes
    is_known = np.array([each is not NOTHING_KNOWN for each in known], np.bool_)
    if is_known.any():
        rows = np.flatnonzero(is_known[number] & (codes != NONE))
        pairs, found = distinct(codes[rows] * len(known) + number[rows])
        codes = codes.copy()
        new = np.array([*map(int, found // len(known))], np.int64)
        for at, pair in enumerate(found.tolist()):
            value, of_connection = divmod(pair, len(known))
            hidden = mask_texts(column.values[value], known[of_connection])
            if hidden != values[value]:
                new[at] = len(values)
                values.append(hidden)
        codes[rows] = new[pairs]
    return Coded(codes, values)


def packet_comments(exchange: Exchange, kinds: Iterable[str], show_secrets: bool) -> list[str]:
    """Return the comments of the packets that completed messages of an exchange."""
    columns = (exchange.column(f"{kind}_comments") for kind in kinds)
    texts = [text for column in columns for text in column or ()]
    return texts if show_secrets else list(mask_texts(texts, exchange.known_secrets))


def mask_cell(column: str, value: Any, known: Known) -> Any:
    """Return the value of a column of exchanges, messages or records without secrets."""
    return mask_texts(value, known) if column in _TEXTS else value
