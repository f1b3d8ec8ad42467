"""
Connections that a capture holds twice: seen before and after a NAT, in two networks, at two taps.

The initial sequence numbers of both sides are random (RFC 9293 3.4.1, RFC 6528), and no NAT, VLAN
or tunnel changes them: two connections of one time with the same two numbers are one. So are two
connections of the same endpoints in two networks that are at the same places of their streams. The
first that was seen counts; of a copy no bytes go on.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import DATA, Chunks, Int64s, UInt64s
from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.kernel.numbered_values import NumberedValues

_SAME_TIME_NS = 60_000_000_000
"""Copies begin within this time; a tap may have another clock."""

_NEAR_BYTES = 1 << 20
"""Streams of one connection are not farther apart at two points of a network."""

_MIN_SEQUENCE = 1 << 16
"""Lower initial sequence numbers are those of made captures, which repeat them."""

_PRIME, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)

_are_kept: ContextVar[bool] = ContextVar("keep_copies", default=False)


def keep_copies(is_wanted: bool) -> bool:
    """Count connections twice that a capture holds twice, or not, until the context ends."""
    _are_kept.set(is_wanted)
    return is_wanted


def are_copies_kept() -> bool:
    """Return whether connections that a capture holds twice count twice: for new `Options`."""
    return _are_kept.get()


@dataclass(slots=True)
class _Keys:
    """
    What connections of the last minute can be recognised by, a row each, in order of number.

    Attributes:
        number: Number of the connection.
        first_ns: Time of its first packet.
        key: The same for copies: a hash that begins with the kind of evidence.
    """

    number: Int64s
    first_ns: Int64s
    key: UInt64s

    def since(self, time_ns: int) -> _Keys:
        """Return the connections that began since a time."""
        return self.among(self.first_ns >= time_ns)

    def among(self, rows: NDArray[np.bool_]) -> _Keys:
        """Return these rows."""
        return _Keys(self.number[rows], self.first_ns[rows], self.key[rows])

    def and_then(self, later: _Keys) -> _Keys:
        """Return these, and later ones."""
        pairs = ((self.number, later.number), (self.first_ns, later.first_ns))
        number, first_ns = map(np.concatenate, pairs)
        return _Keys(number, first_ns, np.concatenate((self.key, later.key)))


class ConnectionCopies:
    """
    Recognises copies by their handshakes, or at their first bytes.

    Attributes:
        found: The number of the original of each copy, by the number of the copy.
        count: The number of copies, with those that are dropped.
    """

    def __init__(self, connections: ConnectionTable) -> None:
        self._connections = connections
        no_numbers: Int64s = np.zeros(0, np.int64)
        self._pending, self._pending_since = no_numbers, no_numbers
        self._known = _Keys(no_numbers, no_numbers, np.zeros(0, np.uint64))
        self.found: dict[int, int] = {}
        self.count = self._begun = 0
        self._is_copy = NumberedValues(np.int8, 0)

    def without(self, chunks: Chunks) -> Chunks:
        """Take the next chunks of all connections; return them without those of copies."""
        self._decide(chunks)
        if not self.found or not len(chunks):
            return chunks
        is_kept = self._is_copy[chunks.connection] == 0
        return chunks if is_kept.all() else _rows(chunks, is_kept)

    def _decide(self, chunks: Chunks) -> None:
        """Decide about the connections that began lately."""
        size = len(self._connections)
        begun, self._begun = self._begun, size
        rests = self._connections.resting.has(self._pending)  # so it sent nothing of late
        pending = np.concatenate((self._pending[~rests], np.arange(begun, size)))
        self._is_copy.number_up_to(size)
        if not len(pending):
            return
        columns = self._connections.columns(pending)
        has_data = np.isin(pending, chunks.connection[(chunks.kind == DATA) & (chunks.length > 0)])
        is_decided = columns.both_syns | has_data
        every = np.concatenate((self._pending[rests], pending[~is_decided]))
        since = np.concatenate((self._pending_since[rests], columns.first_ns[~is_decided]))
        is_new = since >= int(columns.first_ns.max()) - _SAME_TIME_NS
        self._pending, self._pending_since = every[is_new], since[is_new]
        numbers = pending[is_decided]
        if not len(numbers):
            return
        keys = _Keys(numbers, columns.first_ns[is_decided], self._keys_of(numbers))
        known = self._known.since(int(keys.first_ns.min()) - _SAME_TIME_NS).and_then(keys)
        self._known = known
        _, first, which = np.unique(known.key, return_index=True, return_inverse=True)
        is_again = first[which] != np.arange(len(known.key))
        is_again[: -len(numbers)] = False  # compared before
        for row in np.flatnonzero(is_again).tolist():
            self._compare(int(known.number[row]), int(known.number[first[which[row]]]))

    def _compare(self, number: int, original: int) -> None:
        """Record a connection as a copy if the evidence holds."""
        if self._are_one(number, original):
            self.found[number] = self.found.get(original, original)
            self._is_copy[np.array([number])] = 1
            self.count += 1

    def drop(self, numbers: Int64s) -> None:
        """Forget connections for ever; copies among them still count."""
        is_kept = ~np.isin(self._pending, numbers)
        self._pending, self._pending_since = self._pending[is_kept], self._pending_since[is_kept]
        self._known = self._known.among(~np.isin(self._known.number, numbers))
        self._is_copy.forget(numbers)
        for number in numbers.tolist() if self.found else ():
            self.found.pop(number, None)

    def _are_one(self, number: int, original: int) -> bool:
        pair = np.array([original, number])
        columns, firsts = self._connections.columns(pair), self._connections.first_sequences(pair)
        if abs(int(columns.first_ns[1] - columns.first_ns[0])) > _SAME_TIME_NS:
            return False
        if columns.both_syns.all():
            return bool((firsts[0] == firsts[1]).all())
        same_ends = columns.address[0] == columns.address[1], columns.port[0] == columns.port[1]
        if columns.network[0] == columns.network[1] or not all(each.all() for each in same_ends):
            return False
        places = self._connections.next_sequences(pair)
        distance = (places[1] - places[0] + _NEAR_BYTES) % 2**32
        return bool((places >= 0).all() and (distance <= 2 * _NEAR_BYTES).all())

    def _keys_of(self, numbers: Int64s) -> UInt64s:
        """Return hashes of the initial sequence numbers, or of the ends where they are unknown."""
        columns = self._connections.columns(numbers)
        firsts = self._connections.first_sequences(numbers).astype(np.uint64)
        is_random = (firsts >= _MIN_SEQUENCE).all(axis=1)
        ends = columns.address.reshape(-1, 4), columns.port.astype(np.uint64)
        by_ends = _hashed(np.concatenate(ends, axis=1), 1)
        by_handshake = np.where(is_random, _hashed(firsts, 2), _hashed(numbers[:, np.newaxis], 3))
        return np.where(columns.both_syns, by_handshake, by_ends)


def _hashed(rows: Int64s | UInt64s, seed: int) -> UInt64s:
    """Return a hash of each row of numbers; copies are compared again by their numbers."""
    found = np.full(len(rows), seed, np.uint64)
    for column in rows.astype(np.uint64).T:
        found = (found ^ column) * _PRIME
        found ^= found >> _SHIFT
    return found


def _rows(chunks: Chunks, rows: NDArray[np.bool_]) -> Chunks:
    names = [each.name for each in fields(chunks) if each.name not in ("data", "carry_over")]
    return replace(chunks, **{name: getattr(chunks, name)[rows] for name in names})
