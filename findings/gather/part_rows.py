"""The exchanges of a window that pass the filter, as columns that findings are made of."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.column_types import Coded, Columns, Integers, Milliseconds, distinct
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.summary.group_keys import group_rows
from dissector.summary.group_totals import per_value
from findings.registry.ranked_finding import MAX_PACKETS

MAX_NAMES = 1_000
"""Number of names that are counted for one kind of exchanges."""

_MAX_TOPICS = 20


class PartRows:
    """
    Some exchanges.

    Attributes:
        table: The exchanges.
        columns: The columns of `pairs`, with topic ids as in the messages.
        time_ns: Time of each request; of the response where there is none.
        packet: Packet of the same message, from 1.
        latency_ns: Time from request to response; NONE without both.
        failed: Whether the response has an error.
    """

    def __init__(self, table: Exchanges, columns: Columns) -> None:
        self.table, self.columns = table, columns
        self.packet = _first(columns, "request_packet", "response_packet")
        self.time_ns = _first(columns, "request_time_ns", "response_time_ns")
        latency = columns["latency_ms"]
        assert isinstance(latency, Milliseconds)
        self.latency_ns = latency.values_ns
        self.failed: NDArray[np.bool_] = per_value(columns["errors"], bool) != 0
        clients = group_rows(columns, ("client",), lambda connection: (None, None))
        self._client, labels = clients.codes, clients.labels
        self._names = [str(client_id or host) for client_id, host in labels]

    def __len__(self) -> int:
        return len(self.packet)

    def has(self, column: str, value: object) -> NDArray[np.bool_]:
        """Return the rows with a value in a column."""
        found: NDArray[np.bool_] = per_value(self.columns[column], lambda each: each == value) != 0
        return found

    def coded(self, name: str) -> Coded:
        """Return a column of repeated values."""
        column = self.columns[name]
        assert isinstance(column, Coded)
        return column

    def clients(self, rows: Ints) -> dict[str, int]:
        """Return the clients of some rows, with their counts."""
        return _counts(self._client[rows], self._names)

    def topics(self, rows: Ints) -> dict[object, int]:
        """Return the topics of some rows, by name or id, with the counts of their rows."""
        column = self.coded("topics")
        counts: dict[object, int] = {}
        which, codes = distinct(column.codes[rows])
        for code, count in zip(codes.tolist(), np.bincount(which).tolist(), strict=True):
            for topic in list(column.values[code])[:_MAX_TOPICS] if code != NONE else ():
                counts[topic] = counts.get(topic, 0) + count
        return counts


@dataclass(slots=True)
class Places:
    """
    Exchanges of one kind: how many, when, whose, in which packets.

    Attributes:
        count: Their number.
        begin_ns: Time of the first request; 0 without any.
        end_ns: Time of the last one.
        longest_ns: The longest latency.
        packets: The first packets.
        clients: Client ids, or addresses -> number of exchanges.
        topics: Names or ids -> number of exchanges.
    """

    count: int = 0
    begin_ns: int = 0
    end_ns: int = 0
    longest_ns: int = 0
    packets: list[int] = field(default_factory=list)
    clients: dict[str, int] = field(default_factory=dict)
    topics: dict[object, int] = field(default_factory=dict)

    def add(self, part: PartRows, rows: Ints) -> None:
        """Add some rows."""
        if not len(rows):
            return
        self.count += len(rows)
        times = part.time_ns[rows]
        begin_ns = int(times.min())
        self.begin_ns = min(self.begin_ns or begin_ns, begin_ns)
        self.end_ns = max(self.end_ns, int(times.max()))
        self.longest_ns = max(self.longest_ns, int(part.latency_ns[rows].max()))
        self.packets = sorted([*self.packets, *part.packet[rows][:MAX_PACKETS].tolist()])
        del self.packets[MAX_PACKETS:]
        _add_counts(self.clients, part.clients(rows))
        _add_counts(self.topics, part.topics(rows))

    def add_places(self, other: Places) -> None:
        """Add those of another kind."""
        if not other.count:
            return
        self.count += other.count
        self.begin_ns = min(self.begin_ns or other.begin_ns, other.begin_ns)
        self.end_ns = max(self.end_ns, other.end_ns)
        self.longest_ns = max(self.longest_ns, other.longest_ns)
        self.packets = sorted([*self.packets, *other.packets])[:MAX_PACKETS]
        _add_counts(self.clients, other.clients)
        _add_counts(self.topics, other.topics)


def _add_counts(counts: dict, more: dict) -> None:  # type: ignore[type-arg]
    for name, count in more.items():
        if name in counts or len(counts) < MAX_NAMES:
            counts[name] = counts.get(name, 0) + count


def _counts(codes: Ints, names: list[str]) -> dict[str, int]:
    which, found = distinct(codes)
    counts: dict[str, int] = {}
    for code, count in zip(found.tolist(), np.bincount(which).tolist(), strict=True):
        counts[names[code]] = counts.get(names[code], 0) + count
    return counts


def _first(columns: Columns, name: str, other: str) -> Ints:
    """Return the values of a column, and of another one where it is null."""
    one, two = columns[name], columns[other]
    assert isinstance(one, Integers)
    assert isinstance(two, Integers)
    values: Ints = np.where(one.values == NONE, two.values, one.values)
    return values
