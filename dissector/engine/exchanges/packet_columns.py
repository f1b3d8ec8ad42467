"""Columns that filters read and no table prints: facts of the packets that completed messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dissector.engine.exchanges.log_columns import ACCOUNT_COLUMNS, NO_LOGS, LogColumns
from dissector.engine.exchanges.packet_facts import PacketFacts
from dissector.engine.tables.exchange_table import NONE, Exchanges, Frames, Ints

NS_PER_S = 1e9

SECONDS: Mapping[str, str] = {
    "request_relative_s": "request",
    "response_relative_s": "response",
    "request_epoch_s": "request",
    "response_epoch_s": "response",
}
"""Seconds since the first packet of the capture, or since the epoch, by side."""
LENGTHS: Mapping[str, str] = {"request_frame_bytes": "request", "response_frame_bytes": "response"}
"""Length of the packet on the wire, by side."""
COMMENTS: Mapping[str, str] = {"request_comments": "request", "response_comments": "response"}
"""Comments of the packet, by side."""


class PacketColumns:
    """
    The columns of the exchanges of a reading.

    Attributes:
        begin_ns: Time of the first packet.
        facts: What was kept of packets.
        logs: The logs among the files.
    """

    def __init__(self, begin_ns: int, facts: PacketFacts, logs: LogColumns = NO_LOGS) -> None:
        self.begin_ns = begin_ns
        self.facts = facts
        self.logs = logs

    def integers(self, table: Exchanges, name: str) -> Ints | None:
        """Return a column, NONE for null; times in nanoseconds. None for an unknown column."""
        if name in SECONDS:
            time_ns = _frames(table, SECONDS[name]).time_ns
            return np.where(time_ns == NONE, NONE, time_ns - origin_ns(name, self.begin_ns))
        if name in LENGTHS:
            return self.facts.lengths_of(_frames(table, LENGTHS[name]).packet)
        return None

    def texts(self, table: Exchanges, name: str, rows: Ints) -> tuple[Ints, list[list[str]]] | None:
        """Return the index of each row's texts in a list, and this; None for other columns."""
        if name not in COMMENTS:
            return None
        if self.facts.comments is None:
            return np.zeros(len(rows), np.int64), [[]]
        return self.facts.comments.distinct(_frames(table, COMMENTS[name]).packet[rows])

    def is_logged(self, table: Exchanges, row: int) -> bool:
        """Return whether one exchange is of a log."""
        return bool(self.logs.is_logged(table.rows(np.array([row])))[0])

    def account(self, table: Exchanges, row: int) -> dict[str, Any]:
        """Return what the broker says of one exchange; null where it is not of a log."""
        if not self.logs:
            return dict.fromkeys(ACCOUNT_COLUMNS)
        columns = self.logs.columns(table.rows(np.array([row])))
        return {name: column.value(0) for name, column in columns.items()}

    def value(self, table: Exchanges, row: int, name: str) -> int | float | Sequence[str] | None:
        """Return the value of one exchange."""
        if name in COMMENTS:
            return self.facts.comments_of(int(_frames(table, COMMENTS[name]).packet[row]))
        column = self.integers(table, name)
        assert column is not None
        value = int(column[row])
        if value == NONE:
            return None
        return value / NS_PER_S if name in SECONDS else value


def origin_ns(name: str, begin_ns: int) -> int:
    """Return the time from which a column of `SECONDS` counts; `begin_ns`: of the first packet."""
    return begin_ns if name.endswith("relative_s") else 0


def _frames(table: Exchanges, side: str) -> Frames:
    return table.request if side == "request" else table.response
