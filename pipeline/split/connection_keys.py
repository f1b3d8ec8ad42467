"""
Connection keys: a hash of a segment's two endpoints, the same for both directions.

It does not depend on the network: a connection with directions in two networks (`Streams`) must not
be split. Connections that collide are merely dissected together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dissector.capture.columns import Int64s, Segments
from dissector.capture.hashing import SECRET, hash_key
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I32, I64, I64Table

_PRIME = (1 << 31) - 1
_A, _B = 1_103_515_245, 1_664_525_011
"""
Multipliers below the prime, so that no product overflows: overflow is undefined in compiled
code.
"""

KEY, SEGMENTS, BYTES = range(3)
"""Columns of the counts per key."""

COUNTS = 3


@device_function
def _hash_endpoint(high: int, low: int, port: int, by: int) -> int:
    """Return a number below the prime for an endpoint."""
    number = (port * by + (low & 0xFFFFFFFF)) % _PRIME
    number = (number * by + (low >> 32 & 0xFFFFFFFF)) % _PRIME
    number = (number * by + (high & 0xFFFFFFFF)) % _PRIME
    number = (number * by + (high >> 32 & 0xFFFFFFFF)) % _PRIME
    # Not linear: otherwise swapping addresses and ports would keep the sum.
    return (number * number + by) % _PRIME * number % _PRIME


@device_function
def key_of(high: int, low: int, port: int, to_high: int, to_low: int, to_port: int) -> int:
    """Return the key of a connection between two endpoints in any order; never 0."""
    one = (
        _hash_endpoint(high, low, port, _A) + _hash_endpoint(to_high, to_low, to_port, _A)
    ) % _PRIME
    other = (
        _hash_endpoint(high, low, port, _B) + _hash_endpoint(to_high, to_low, to_port, _B)
    ) % _PRIME
    return one * (1 << 31) + other + 1


@device_function
def find_slot(table: I64Table, secret: I64, key: int) -> int:
    """Return the slot of a key in a hash table of keys, or the free slot for it."""
    last = len(table) - 1
    at = hash_key(secret, key) & last
    while table[at, KEY] != key and table[at, KEY] != 0:
        at = (at + 1) & last
    return at


@device_function
def part_of(key: int, parts: int) -> int:
    """Return the part, of this many, that dissects a connection."""
    return key % _PRIME % parts


class EndpointArrays(NamedTuple):
    """Endpoints and captured lengths of segments, as in `Segments`; addresses are signed."""

    source: I64Table
    source_port: I32
    target: I64Table
    target_port: I32
    captured: I64


@device_function
def _key_of_segment(segments: EndpointArrays, i: int) -> int:
    """Return the key of a segment's connection."""
    source, target = segments.source, segments.target
    port, to_port = segments.source_port[i], segments.target_port[i]
    return key_of(source[i, 0], source[i, 1], port, target[i, 0], target[i, 1], to_port)


@Kernel
def count_segments(
    segments: EndpointArrays,
    table: I64Table,
    secret: I64,
    used: int,
    at: int,
    state: I64,
) -> int:
    """Count segments from `at` on; return the first beyond a full table, or their number."""
    i = at
    while i < len(segments.captured) and 2 * used < len(table):
        key = _key_of_segment(segments, i)
        slot = find_slot(table, secret, key)
        if table[slot, KEY] == 0:
            table[slot, KEY] = key
            used += 1
        table[slot, SEGMENTS] += 1
        table[slot, BYTES] += segments.captured[i]
        i += 1
    state[0] = used
    return i


@Kernel
def _insert_rows(rows: I64Table, columns: int, table: I64Table, secret: I64) -> None:
    """Put rows with distinct keys into an empty table."""
    for row in range(len(rows)):
        slot = find_slot(table, secret, rows[row, KEY])
        for column in range(columns):
            table[slot, column] = rows[row, column]


@Kernel
def _assign_parts(
    segments: EndpointArrays,
    table: I64Table,
    secret: I64,
    into: I64,
    sums: I64Table,
) -> int:
    """
    Determine the part of each segment from a table of keys; return the number found.

    Args:
        segments: The segments.
        table: The keys.
        secret: Key of their hash.
        into: Output: the part; -1 for segments without an entry.
        sums: Output: [parts, 2], the number of segments and bytes of each part.
    """
    found = 0
    for i in range(len(segments.captured)):
        key = _key_of_segment(segments, i)
        into[i] = -1
        if table[find_slot(table, secret, key), KEY] == key:
            to = part_of(key, len(sums))
            into[i] = to
            sums[to, 0] += 1
            sums[to, 1] += segments.captured[i]
            found += 1
    return found


def endpoint_columns(segments: Segments) -> EndpointArrays:
    """Return the columns of the endpoints and the captured length."""
    columns = (
        np.ascontiguousarray(segments.source).view(np.int64),
        np.ascontiguousarray(segments.source_port),
        np.ascontiguousarray(segments.target).view(np.int64),
        np.ascontiguousarray(segments.target_port),
        np.ascontiguousarray(segments.captured),
    )
    return EndpointArrays._make(columns)


class ConnectionCounts:
    """Counts the segments and bytes of connections."""

    def __init__(self) -> None:
        self._table: Int64s = np.zeros((1 << 10, COUNTS), np.int64)
        self._used = 0

    def add(self, segments: Segments) -> None:
        """Count segments."""
        columns, state = endpoint_columns(segments), np.zeros(1, np.int64)
        at = 0
        while at < len(segments):
            at = count_segments(columns, self._table, SECRET, self._used, at, state)
            self._used = int(state[0])
            if at < len(segments):
                rows = self.rows()
                self._table = np.zeros((2 * len(self._table), COUNTS), np.int64)
                _insert_rows(rows, COUNTS, self._table, SECRET)

    def rows(self) -> Int64s:
        """Return the counts, in the order of keys."""
        rows = self._table[self._table[:, KEY] != 0]
        ordered: Int64s = rows[np.argsort(rows[:, KEY])]
        return ordered


class KeySet:
    """A set of connection keys."""

    def __init__(self, keys: Int64s) -> None:
        self._keys = keys
        self._count = len(keys)
        self._table = np.zeros((max(2, 1 << (2 * len(keys)).bit_length()), 1), np.int64)
        rows = np.ascontiguousarray(keys, np.int64).reshape(-1, 1)
        _insert_rows(rows, 1, self._table, SECRET)

    def __reduce__(self) -> tuple[type[KeySet], tuple[Int64s]]:
        return KeySet, (self._keys,)

    def __len__(self) -> int:
        return self._count

    def assign_parts(self, segments: Segments, parts: int) -> tuple[Int64s, Int64s]:
        """
        Return the part of each segment with one of these keys, -1 for others.

        Also return, for each part, its number of segments and bytes.
        """
        into, sums = np.full(len(segments), -1, np.int64), np.zeros((parts, 2), np.int64)
        if self._count:
            _assign_parts(
                endpoint_columns(segments),
                self._table,
                SECRET,
                into,
                sums,
            )
        return into, sums
