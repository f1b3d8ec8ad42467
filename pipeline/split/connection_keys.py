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
from dissector.kernel.named_rows import NamedRow, RowArray, Rows, dtype_of

_PRIME = (1 << 31) - 1
_A, _B = 1_103_515_245, 1_664_525_011
"""
Multipliers below the prime, so that no product overflows: overflow is undefined in compiled
code.
"""


class Traffic(NamedRow):
    """
    Segments of a connection, or of the connections of a part.

    Attributes:
        segments: Their number.
        bytes: Their captured bytes.
    """

    segments: int
    bytes: int


class TrafficTable(NamedTuple):
    """
    A hash table of connections.

    Attributes:
        keys: The key of each slot; 0 for a free one.
        traffic: The traffic of each slot.
    """

    keys: I64
    traffic: Rows[Traffic]


class CountState(NamedRow):
    """
    How far `count_segments` came.

    Attributes:
        at: The next segment.
        used: Number of slots in use.
    """

    at: int
    used: int


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
def find_slot(keys: I64, secret: I64, key: int) -> int:
    """Return the slot of a key in a hash table of keys, or the free slot for it."""
    last = len(keys) - 1
    at = hash_key(secret, key) & last
    while keys[at] != key and keys[at] != 0:
        at = (at + 1) & last
    return at


@device_function
def part_of(key: int, parts: int) -> int:
    """Return the part, of this many, that dissects a connection."""
    return key % _PRIME % parts


def parts_of(keys: Int64s, parts: int) -> Int64s:
    """Return `part_of` each key."""
    return keys % _PRIME % parts


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
    segments: EndpointArrays, table: TrafficTable, secret: I64, state: CountState
) -> None:
    """Count segments, from the next on, until the table is full."""
    keys, i = table.keys, state.at
    while i < len(segments.captured) and 2 * state.used < len(keys):
        key = _key_of_segment(segments, i)
        slot = find_slot(keys, secret, key)
        if keys[slot] == 0:
            keys[slot] = key
            state.used += 1
        traffic = table.traffic[slot]
        traffic.segments += 1
        traffic.bytes += segments.captured[i]
        i += 1
    state.at = i


@Kernel
def _insert(keys: I64, table: I64, slots: I64, secret: I64) -> None:
    """Put distinct keys into an empty table; `slots` receives the slot of each."""
    for i in range(len(keys)):
        slots[i] = find_slot(table, secret, keys[i])
        table[slots[i]] = keys[i]


@Kernel
def _assign_parts(
    segments: EndpointArrays, keys: I64, secret: I64, into: I64, sums: Rows[Traffic]
) -> int:
    """
    Determine the part of each segment from a table of keys; return the number found.

    Args:
        segments: The segments.
        keys: A hash table of keys.
        secret: Key of its hash.
        into: Output: the part; -1 for segments without an entry.
        sums: Output: the traffic of each part.
    """
    found = 0
    for i in range(len(segments.captured)):
        key = _key_of_segment(segments, i)
        into[i] = -1
        if keys[find_slot(keys, secret, key)] == key:
            to = part_of(key, len(sums))
            into[i] = to
            sums[to].segments += 1
            sums[to].bytes += segments.captured[i]
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
        self._keys: Int64s = np.zeros(1 << 10, np.int64)
        self._traffic: RowArray = np.zeros(1 << 10, dtype_of(Traffic))
        self._used = 0

    def add(self, segments: Segments) -> None:
        """Count segments."""
        columns, state = endpoint_columns(segments), np.zeros((), dtype_of(CountState))
        state["used"] = self._used
        while True:
            table = TrafficTable._make((self._keys, self._traffic))
            count_segments(columns, table, SECRET, state)
            self._used = int(state["used"])
            if int(state["at"]) == len(segments):
                return
            self._grow()

    def _grow(self) -> None:
        keys, traffic = self.keys_and_traffic()
        self._keys, slots = _hash_table(keys, 2 * len(self._keys))
        self._traffic = np.zeros(len(self._keys), dtype_of(Traffic))
        self._traffic[slots] = traffic

    def keys_and_traffic(self) -> tuple[Int64s, RowArray]:
        """Return the keys in order, and the traffic of each."""
        used = np.flatnonzero(self._keys)
        used = used[np.argsort(self._keys[used])]
        return self._keys[used], self._traffic[used]


class KeySet:
    """A set of connection keys."""

    def __init__(self, keys: Int64s) -> None:
        self._keys = np.ascontiguousarray(keys, np.int64)
        self._table, _ = _hash_table(self._keys, max(2, 1 << (2 * len(keys)).bit_length()))

    def __reduce__(self) -> tuple[type[KeySet], tuple[Int64s]]:
        return KeySet, (self._keys,)

    def __len__(self) -> int:
        return len(self._keys)

    def assign_parts(self, segments: Segments, parts: int) -> tuple[Int64s, RowArray]:
        """Return the part of each segment with one of these keys, else -1; and their `Traffic`."""
        into, sums = np.full(len(segments), -1, np.int64), np.zeros(parts, dtype_of(Traffic))
        if len(self):
            _assign_parts(endpoint_columns(segments), self._table, SECRET, into, sums)
        return into, sums


def _hash_table(keys: Int64s, size: int) -> tuple[Int64s, Int64s]:
    """Return a hash table of keys, and the slot of each."""
    table, slots = np.zeros(size, np.int64), np.zeros(len(keys), np.int64)
    _insert(keys, table, slots, SECRET)
    return table, slots
