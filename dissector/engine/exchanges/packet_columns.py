"""
Columns that filters read and no table prints: facts of the packets that completed messages.

The length of a packet is kept until no message can end in it any more, and only on request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from dissector.engine.exchanges.log_columns import ACCOUNT_COLUMNS, NO_LOGS, LogColumns
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


class PacketLengths:
    """The lengths of recent packets."""

    def __init__(self) -> None:
        self._windows: deque[tuple[int, Ints]] = deque()

    def add(self, first: int, lengths: Ints) -> None:
        """Add the next packets, from number `first` on."""
        self._windows.append((first, lengths))

    def drop_before(self, packet: int) -> None:
        """Drop packets with lower numbers, in whole windows."""
        while self._windows and sum(_extent(self._windows[0])) <= packet:
            self._windows.popleft()

    def of(self, packets: Ints) -> Ints:
        """Return the lengths of packets; NONE if unknown."""
        lengths = np.full(len(packets), NONE)
        for first, window in list(self._windows):
            inside = (packets >= first) & (packets < first + len(window))
            lengths[inside] = window[packets[inside] - first]
        return lengths


def _extent(window: tuple[int, Ints]) -> tuple[int, int]:
    return window[0], len(window[1])


class PacketColumns:
    """
    The columns of the exchanges of a reading.

    Attributes:
        begin_ns: Time of the first packet.
        lengths: Lengths of packets.
        logs: The logs among the files.
    """

    def __init__(
        self, begin_ns: int, lengths: PacketLengths | None, logs: LogColumns = NO_LOGS
    ) -> None:
        self.begin_ns = begin_ns
        self.lengths = lengths
        self.logs = logs

    def integers(self, table: Exchanges, name: str) -> Ints | None:
        """Return a column, NONE for null; times in nanoseconds. None for an unknown column."""
        if name in SECONDS:
            time_ns = _frames(table, SECONDS[name]).time_ns
            return np.where(time_ns == NONE, NONE, time_ns - origin_ns(name, self.begin_ns))
        if name in LENGTHS:
            packets = _frames(table, LENGTHS[name]).packet
            return np.full(len(packets), NONE) if self.lengths is None else self.lengths.of(packets)
        return None

    def is_logged(self, table: Exchanges, row: int) -> bool:
        """Return whether one exchange is of a log."""
        return bool(self.logs.is_logged(table.rows(np.array([row])))[0])

    def account(self, table: Exchanges, row: int) -> dict[str, Any]:
        """Return what the broker says of one exchange; null where it is not of a log."""
        if not self.logs:
            return dict.fromkeys(ACCOUNT_COLUMNS)
        columns = self.logs.columns(table.rows(np.array([row])))
        return {name: column.value(0) for name, column in columns.items()}

    def value(self, table: Exchanges, row: int, name: str) -> int | float | None:
        """Return the value of one exchange."""
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
