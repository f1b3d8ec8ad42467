"""
Time ranges of lost traffic, by connection.

A gap lies between the last data before it and the next whole message of its side, without both: the
lost bytes, and the message that they belong to, were sent then. If the begin of a connection is not
captured, everything before its first packet is unknown, as is the request of an orphan response.

An event needs the connections of its evidence. One that rests also on absent exchanges, such as an
earlier cause of a rebalance, needs all connections of the broker.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.capture.addresses import endpoint_text
from dissector.capture.columns import unique
from dissector.capture.tcp.connections import ConnectionColumns
from dissector.engine.reading.reader import Reading, Window
from dissector.engine.tables.exchange_table import Exchanges, Ints
from timeline.events.connection_numbering import ConnectionNumbering
from timeline.events.event import Event, Needs

Range: TypeAlias = tuple[int, int]
"""Begin and end of lost traffic, in nanoseconds."""

Gap: TypeAlias = tuple[int, int, int]
"""An open gap: position of its connection, side, and the time when it was revealed."""

MAX_RANGES = 64
"""Maximum number of ranges of a connection; beyond it the newest ones become one."""

_ALWAYS_NS = 2**62
"""Column of a side: its bytes."""

_DATA, _COORDINATION = 1, 2
"""Kinds of traffic of a connection: Produce or Fetch; requests of group members."""

_DATA_APIS = (0, 1)
_COORDINATION_APIS = (8, 9, 11, 12, 13, 14, 68, 76, 88)


class TrafficLosses:
    """Records time ranges of possibly incomplete traffic of each connection."""

    def __init__(self) -> None:
        self._gaps: dict[int, list[Range]] = {}
        self._open: dict[Gap, int] = {}
        self._begins: dict[int, int] = {}
        self._foreign: dict[int, Range] = {}
        self._numbers_at: defaultdict[str, set[int]] = defaultdict(set)
        self._uses: NDArray[np.int8] = np.zeros(0, np.int8)
        self._merged: dict[tuple[str, bool], list[Range]] = {}

    def update(self, reading: Reading, window: Window, numbering: ConnectionNumbering) -> None:
        """Update the losses of all connections with those of a window."""
        self._merged = {}
        columns = reading.streams.connections.columns()
        self._add_uses(window.exchanges, numbering, len(columns))
        gaps = window.gaps
        rows = np.stack((gaps.connection, gaps.side, gaps.since_ns, gaps.until_ns), axis=1)
        for position, side, since_ns, until_ns in rows.tolist():
            number = numbering.of(position)
            since_ns = max(since_ns, int(columns.first_ns[position]))
            self._open[position, side, until_ns] = self._add(number, (since_ns + 1, until_ns))
            self._locate(columns, position, number)
        self._close(window, columns, numbering)
        self._add_unknown(reading, columns, numbering)

    def add_orphan(self, number: int, broker: str, time_ns: int) -> None:
        """Add a response without its request."""
        self._merged = {}
        self._numbers_at[broker].add(number)
        ranges = self._gaps.get(number)
        if ranges:  # its request is in the gap
            ranges[-1] = ranges[-1][0], max(ranges[-1][1], time_ns)
        else:
            self._begins[number] = max(time_ns, self._begins.get(number, time_ns))

    def retain(self, stay: Ints) -> None:
        """Follow a reading that retains some of its connections, in order."""
        positions = {each: at for at, each in enumerate(stay.tolist())}
        self._open = {
            (positions[position], side, until_ns): at
            for (position, side, until_ns), at in self._open.items()
            if position in positions
        }

    def has_gap(self, number: int, since_ns: int, end_ns: int) -> bool:
        """Return whether bytes of a connection are missing in a time range."""
        ranges = self._gaps.get(number, ())
        return any(low <= end_ns and since_ns <= high for low, high in ranges)

    def covers(self, event: Event) -> bool:
        """Return whether all traffic required for an event is captured."""
        return any(self._covered(each, event.kind == "group") for each in event.needs)

    def _covered(self, needs: Needs, of_group: bool) -> bool:
        since_ns, end_ns = needs.since_ns, needs.end_ns
        for number in needs.connections:
            if any(low <= end_ns and since_ns <= high for low, high in self._ranges(number)):
                return False
        for broker in needs.brokers:
            ranges = self._ranges_at(broker, of_group)
            at = bisect_left(ranges, since_ns, key=lambda each: each[1])
            if at < len(ranges) and ranges[at][0] <= end_ns:
                return False
        return True

    def _ranges(self, number: int) -> list[Range]:
        """Return the ranges of a connection."""
        found = list(self._gaps.get(number, ()))
        if number in self._begins:
            found.append((-_ALWAYS_NS, self._begins[number]))
        if number in self._foreign and number not in self._gaps:
            found.append(self._foreign[number])
        return found

    def _ranges_at(self, broker: str, of_group: bool) -> list[Range]:
        """
        Return the ranges of all connections of a broker, in order and apart.

        A connection that carries records, and never a request of a member, has none of a group.
        """
        key = broker, of_group
        if key not in self._merged:
            merged: list[Range] = []
            numbers = self._numbers_at.get(broker, set())
            chosen = (each for each in numbers if not (of_group and self._carries_only_data(each)))
            for low, high in sorted(part for each in chosen for part in self._ranges(each)):
                if merged and low <= merged[-1][1]:
                    merged[-1] = merged[-1][0], max(merged[-1][1], high)
                else:
                    merged.append((low, high))
            self._merged[key] = merged
        return self._merged[key]

    def _carries_only_data(self, number: int) -> bool:
        return number < len(self._uses) and int(self._uses[number]) == _DATA

    def _add_uses(self, table: Exchanges, numbering: ConnectionNumbering, count: int) -> None:
        """Record which traffic connections carry."""
        size = numbering.of(count - 1) + 1 if count else 0
        if size > len(self._uses):
            self._uses = np.concatenate((self._uses, np.zeros(size, np.int8)))
        for use, apis in ((_DATA, _DATA_APIS), (_COORDINATION, _COORDINATION_APIS)):
            positions = unique(table.connection[np.isin(table.api_key, apis)])
            numbers = [numbering.of(each) for each in positions.tolist()]
            self._uses[numbers] |= use

    def _add(self, number: int, lost: Range) -> int:
        """Add a gap of a connection; return its index."""
        ranges = self._gaps.setdefault(number, [])
        if len(ranges) < MAX_RANGES:
            ranges.append(lost)
        else:
            low, high = ranges[-1]
            ranges[-1] = min(low, lost[0]), max(high, lost[1])
        return len(ranges) - 1

    def _close(
        self, window: Window, columns: ConnectionColumns, numbering: ConnectionNumbering
    ) -> None:
        """Extend open gaps to the next message of their side, or to the newest packet so far."""
        if not self._open:
            return
        table = window.exchanges
        order = np.argsort(table.connection, kind="stable")
        sorted_connections = table.connection[order]
        for gap, at in list(self._open.items()):
            position, side, until_ns = gap
            low, high = np.searchsorted(sorted_connections, (position, position + 1))
            end_ns = _next_message_ns(table, order[low:high], side, until_ns)
            if end_ns is None:
                end_ns = max(until_ns, int(columns.last_ns[position]))
            else:
                end_ns -= 1
                del self._open[gap]
            ranges = self._gaps[numbering.of(position)]
            is_shared = at == MAX_RANGES - 1
            ranges[at] = ranges[at][0], max(ranges[at][1], end_ns) if is_shared else end_ns

    def _add_unknown(
        self, reading: Reading, columns: ConnectionColumns, numbering: ConnectionNumbering
    ) -> None:
        """Add the begins that are not captured, and connections with foreign or cut bytes."""
        has_data = columns.bytes.any(axis=1)
        for position in np.flatnonzero(~columns.both_syns & has_data).tolist():
            number, first_ns = numbering.of(position), int(columns.first_ns[position])
            if number not in self._begins:
                self._begins[number] = first_ns
                self._locate(columns, position, number)
        for position in reading.correlator.skipping():
            number = numbering.of(position)
            times = int(columns.first_ns[position]), int(columns.last_ns[position])
            if number not in self._foreign:
                self._locate(columns, position, number)
            self._foreign[number] = times

    def _locate(self, columns: ConnectionColumns, position: int, number: int) -> None:
        """Record both endpoints of a connection; one of them is a broker."""
        for side in (0, 1):
            high, low = columns.address[position, side].tolist()
            self._numbers_at[endpoint_text(high, low, int(columns.port[position, side]))].add(
                number
            )


def _next_message_ns(table: Exchanges, rows: Ints, side: int, since_ns: int) -> int | None:
    """Return the time of the first message from `since_ns` on that a side sent in these rows."""
    if not len(rows):
        return None
    is_request = table.client[rows] == side
    times = np.where(is_request, table.request.time_ns[rows], table.response.time_ns[rows])
    later = times[times >= since_ns]
    return int(later[0]) if len(later) else None
