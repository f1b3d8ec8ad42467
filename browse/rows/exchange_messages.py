"""Rows for messages: one for each request and each response of the exchanges."""

from __future__ import annotations

import numpy as np

from browse.rows.row_parts import RowParts
from dissector.engine.tables.column_types import (
    Coded,
    Column,
    Columns,
    Integers,
    Milliseconds,
)
from dissector.engine.tables.exchange_table import NONE, Ints

EXCHANGE = "number of the exchange"
"""A hidden column: the number of the exchange."""

EVIDENCE = ("connection of evidence", "packet of evidence", "id of evidence")
"""Hidden columns: the first exchange in the evidence of an event."""

EVERY_EVIDENCE = "every exchange of the evidence"
"""A hidden column: the evidence of an event."""

_KINDS = ("request", "response")
_SAME = (
    *("capture", "connection", "api_key", "api", "api_version", "correlation_id", "client_id"),
    *("status", "topics", "problems"),
)


class MessageRows:
    """
    Messages of the exchanges read so far.

    Attributes:
        parts: The messages; in each part requests precede responses.
    """

    def __init__(self, exchanges: RowParts) -> None:
        self.parts = RowParts()
        self._exchanges = exchanges
        self._seen = 0

    def update(self) -> None:
        """Add messages of new exchanges."""
        for part in range(self._seen, len(self._exchanges.ends)):
            columns, begin = self._exchanges.columns(part), self._exchanges.begin_of(part)
            for kind in _KINDS:
                packets = columns[f"{kind}_packet"]
                assert isinstance(packets, Integers)
                rows = np.flatnonzero(packets.values != NONE)
                some = self._exchanges.columns(part, rows)
                self.parts.append(_messages(some, kind, begin + rows))
            self._seen = part + 1


def _messages(columns: Columns, kind: str, numbers: Ints) -> Columns:
    is_response = kind == "response"
    none = np.full(len(numbers), NONE)
    ends = ("broker", "client") if is_response else ("client", "broker")
    empty: dict[str, Column] = {"latency_ms": Milliseconds(none), "errors": Coded(none, [])}
    return {
        **{name: columns[name] for name in _SAME},
        **({name: columns[name] for name in empty} if is_response else empty),
        "packet": columns[f"{kind}_packet"],
        "time_ns": columns[f"{kind}_time_ns"],
        "source": columns[ends[0]],
        "target": columns[ends[1]],
        "kind": Coded(np.zeros(len(numbers), np.int64), [kind]),
        "bytes": columns[f"{kind}_bytes"],
        EXCHANGE: Integers(numbers),
    }
