"""
Which connections a segment may belong to: a hash of its two endpoints, whichever sent it.

Networks share it: a connection of which each direction is in another network (`Streams`) must not
be torn. Two that share a hash by chance are only looked at together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dissector.capture.columns import Int64s, Segments
from dissector.capture.hashing import SECRET, hash_key
from dissector.kernel import Kernel, device_function

_PRIME = (1 << 31) - 1
_A, _B = 1_103_515_245, 1_664_525_011
"""Numbers below the prime: no product overflows, of which compiled code may make anything."""

KEY, SEGMENTS, BYTES = range(3)
"""Columns of what is counted of a key."""

COUNTS = 3

_STEPS = 4
"""What a segment takes, as `Kernel` counts it."""


@device_function
def _end(high: int, low: int, port: int, by: int) -> int:
    """Return a number below the prime for an endpoint."""
    number = (port * by + (low & 0xFFFFFFFF)) % _PRIME
    number = (number * by + (low >> 32 & 0xFFFFFFFF)) % _PRIME
    number = (number * by + (high & 0xFFFFFFFF)) % _PRIME
    number = (number * by + (high >> 32 & 0xFFFFFFFF)) % _PRIME
    # Not linear: else addresses with their ports exchanged would share their sum.
    return (number * number + by) % _PRIME * number % _PRIME


@device_function
def key_of(high: int, low: int, port: int, to_high: int, to_low: int, to_port: int) -> int:
    """Return the key of a connection between two endpoints, whichever is named first; never 0."""
    one = (_end(high, low, port, _A) + _end(to_high, to_low, to_port, _A)) % _PRIME
    other = (_end(high, low, port, _B) + _end(to_high, to_low, to_port, _B)) % _PRIME
    return one * (1 << 31) + other + 1


@device_function
def find_slot(table: Any, secret: Any, key: int) -> int:
    """Return where a key stands in a hash table of keys, or the free place for it."""
    last = len(table) - 1
    at = hash_key(secret, key) & last
    while table[at, KEY] != key and table[at, KEY] != 0:
        at = (at + 1) & last
    return at


@device_function
def part_of(key: int, parts: int) -> int:
    """Return in which of so many parts a connection is dissected."""
    return key % _PRIME % parts


@Kernel
def _count(
    source: Any,
    source_port: Any,
    target: Any,
    target_port: Any,
    captured: Any,
    table: Any,
    secret: Any,
    used: int,
    at: int,
    state: Any,
) -> int:
    """Count segments from `at` on; return the first that finds no room, or their number."""
    i = at
    while i < len(captured) and 2 * used < len(table):
        key = key_of(
            source[i, 0], source[i, 1], source_port[i], target[i, 0], target[i, 1], target_port[i]
        )
        place = find_slot(table, secret, key)
        if table[place, KEY] == 0:
            table[place, KEY] = key
            used += 1
        table[place, SEGMENTS] += 1
        table[place, BYTES] += captured[i]
        i += 1
    state[0] = used
    return i


@Kernel
def _enter(rows: Any, columns: int, table: Any, secret: Any) -> None:
    """Put rows, whose keys differ, into an empty table."""
    for row in range(len(rows)):
        place = find_slot(table, secret, rows[row, KEY])
        for column in range(columns):
            table[place, column] = rows[row, column]


@Kernel
def _sort_out(
    source: Any,
    source_port: Any,
    target: Any,
    target_port: Any,
    captured: Any,
    table: Any,
    secret: Any,
    into: Any,
    sums: Any,
) -> int:
    """
    Find the part of each segment whose key is in a table; return how many there are.

    Args:
        source: As in `Segments`, and so are the next.
        source_port: Likewise.
        target: Likewise.
        target_port: Likewise.
        captured: Likewise.
        table: Of keys.
        secret: For its hash.
        into: Gets the part; -1 for those whose key is not in the table.
        sums: [parts, 2], how many segments and bytes each gets.
    """
    found = 0
    for i in range(len(captured)):
        key = key_of(
            source[i, 0], source[i, 1], source_port[i], target[i, 0], target[i, 1], target_port[i]
        )
        into[i] = -1
        if table[find_slot(table, secret, key), KEY] == key:
            to = part_of(key, len(sums))
            into[i] = to
            sums[to, 0] += 1
            sums[to, 1] += captured[i]
            found += 1
    return found


def _ends(segments: Segments) -> tuple[Any, ...]:
    """Return the columns by which connections are told apart."""
    return (
        np.ascontiguousarray(segments.source).view(np.int64),
        np.ascontiguousarray(segments.source_port),
        np.ascontiguousarray(segments.target).view(np.int64),
        np.ascontiguousarray(segments.target_port),
        np.ascontiguousarray(segments.captured),
    )


class ConnectionCounts:
    """Counts the segments and bytes of connections."""

    def __init__(self) -> None:
        self._table: Int64s = np.zeros((1 << 10, COUNTS), np.int64)
        self._used = 0

    def add(self, segments: Segments) -> None:
        """Count segments."""
        columns, state = _ends(segments), np.zeros(1, np.int64)
        at = 0
        while at < len(segments):
            work = _STEPS * (len(segments) - at)
            at = _count(*columns, self._table, SECRET, self._used, at, state, work=work)
            self._used = int(state[0])
            if at < len(segments):
                rows = self.rows()
                self._table = np.zeros((2 * len(self._table), COUNTS), np.int64)
                _enter(rows, COUNTS, self._table, SECRET, work=len(rows))

    def rows(self) -> Int64s:
        """Return what was counted, in the order of keys."""
        rows = self._table[self._table[:, KEY] != 0]
        ordered: Int64s = rows[np.argsort(rows[:, KEY])]
        return ordered


class KeySet:
    """A set of keys."""

    def __init__(self, keys: Int64s) -> None:
        self._keys = keys
        self._count = len(keys)
        self._table = np.zeros((max(2, 1 << (2 * len(keys)).bit_length()), 1), np.int64)
        rows = np.ascontiguousarray(keys, np.int64).reshape(-1, 1)
        _enter(rows, 1, self._table, SECRET, work=len(rows))

    def __reduce__(self) -> tuple[type[KeySet], tuple[Int64s]]:
        return KeySet, (self._keys,)

    def __len__(self) -> int:
        return self._count

    def assign_parts(self, segments: Segments, parts: int) -> tuple[Int64s, Int64s]:
        """
        Return the part of each segment with one of these keys, -1 for others.

        And for each part, how many segments and bytes it gets.
        """
        into, sums = np.full(len(segments), -1, np.int64), np.zeros((parts, 2), np.int64)
        if self._count:
            _sort_out(
                *_ends(segments), self._table, SECRET, into, sums, work=_STEPS * len(segments)
            )
        return into, sums
