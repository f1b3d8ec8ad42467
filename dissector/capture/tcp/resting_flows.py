"""Which connections at rest own the flow of a segment, by a hash of its endpoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from dissector.capture.columns import Int64s
from dissector.capture.hashing import SECRET, hash_endpoints
from dissector.capture.tcp.segment_kernel import load_segment, put_flow
from dissector.capture.tcp.tcp_rows import (
    ConnectionRow,
    EndRow,
    FlowArrays,
    OwnedFlows,
    SegmentArrays,
    SegmentRow,
    StateArrays,
)
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64
from dissector.kernel.named_rows import RowArray, Rows, dtype_of

_FREE, _REMOVED = -1, -2
_FIRST_SLOTS = 1 << 10
_NUMBER_BITS, _HASH_BITS = 32, 31
_NUMBER = (1 << _NUMBER_BITS) - 1


class RestingFlows:
    """
    An entry for each connection and network: a hash of the two endpoints, and its number.

    Other endpoints with the same hash only cost time, as the connection is looked at.
    """

    def __init__(self) -> None:
        self._allocate(_FIRST_SLOTS)

    def _allocate(self, slots: int) -> None:
        self._slots: Int64s = np.full(slots, _FREE, np.int64)
        self._used = 0

    def add(self, numbers: Int64s, connections: RowArray, owned: RowArray) -> None:
        """Add connections, and the `OwnedFlows` of each."""
        entries = _entries_of(numbers, connections, owned)
        if (self._used + len(entries)) * 4 > 3 * len(self._slots):
            kept = self._slots[self._slots >= 0]
            self._allocate(max(_FIRST_SLOTS, (len(kept) + len(entries)) * 3 // 2))
            self._insert(kept)
        self._insert(entries)

    def _insert(self, entries: Int64s) -> None:
        _add_entries(entries, self._slots)
        self._used += len(entries)

    def take(self, segments: SegmentArrays) -> Int64s:
        """Return the numbers of connections that may own flows of segments, for their removal."""
        if not self._used:
            return np.zeros(0, np.int64)
        found: Int64s = np.empty(self._used, np.int64)
        row: RowArray = np.zeros((), dtype_of(SegmentRow))
        arguments: Any = segments, row, self._slots, SECRET, found
        count = _take_owners(*arguments)
        # Without `return_index` numpy imports a module, which takes 10 ms.
        return np.unique(found[:count], return_index=True)[0]

    def remove(self, numbers: Int64s, connections: RowArray, owned: RowArray) -> None:
        """Remove connections."""
        _remove_entries(_entries_of(numbers, connections, owned), self._slots)


def _entries_of(numbers: Int64s, connections: RowArray, owned: RowArray) -> Int64s:
    """Return the entries of connections."""
    entries: Int64s = np.empty(2 * len(numbers), np.int64)
    tables = np.ascontiguousarray(connections), np.ascontiguousarray(owned)
    arguments: Any = numbers, *tables, SECRET, entries
    return entries[: _make_entries(*arguments)]


@Kernel
def _make_entries(
    numbers: I64,
    connections: Rows[ConnectionRow],
    owned: Rows[OwnedFlows],
    secret: I64,
    entries: I64,
) -> int:
    """Write the entries of connections; return their number."""
    count = 0
    for i in range(len(numbers)):
        ends, flows = connections[i].ends, owned[i]
        if flows.sides != 0:
            hashed = hash_pair(secret, connections[i].network, ends[0], ends[1])
            entries[count] = hashed << _NUMBER_BITS | numbers[i]
            count += 1
        if flows.joined != 0:
            hashed = hash_pair(secret, flows.joined - 1, ends[0], ends[1])
            entries[count] = hashed << _NUMBER_BITS | numbers[i]
            count += 1
    return count


@Kernel
def _add_entries(entries: I64, slots: I64) -> None:
    """Add entries, for which there must be room."""
    for i in range(len(entries)):
        slot = ((entries[i] >> _NUMBER_BITS) * len(slots)) >> _HASH_BITS
        while slots[slot] != _FREE:
            slot = slot + 1 if slot + 1 < len(slots) else 0
        slots[slot] = entries[i]


@Kernel
def _remove_entries(entries: I64, slots: I64) -> None:
    """Remove entries where they are."""
    for i in range(len(entries)):
        slot = ((entries[i] >> _NUMBER_BITS) * len(slots)) >> _HASH_BITS
        while slots[slot] != _FREE and slots[slot] != entries[i]:
            slot = slot + 1 if slot + 1 < len(slots) else 0
        if slots[slot] == entries[i]:
            slots[slot] = _REMOVED


@Kernel
def _take_owners(
    segments: SegmentArrays, segment: SegmentRow, slots: I64, secret: I64, found: I64
) -> int:
    """Remove the entries of the flows of segments, and list their numbers; return how many."""
    count = 0
    for i in range(len(segments.packet)):
        load_segment(segments, i, segment)
        hashed = hash_pair(secret, segment.network, segment.ends[0], segment.ends[1])
        slot = (hashed * len(slots)) >> _HASH_BITS
        while slots[slot] != _FREE:
            if slots[slot] >> _NUMBER_BITS == hashed:
                found[count] = slots[slot] & _NUMBER
                slots[slot] = _REMOVED
                count += 1
            slot = slot + 1 if slot + 1 < len(slots) else 0
    return count


@Kernel
def own_flows(flows: FlowArrays, state: StateArrays, first: int, owned: Rows[OwnedFlows]) -> None:
    """Make connections, in the rows from `first` on, own the flows again that they owned."""
    for i in range(len(owned)):
        row, number = owned[i], first + i
        connection = state.connections[number]
        a, b, network = connection.ends[0], connection.ends[1], connection.network
        if row.sides & 2:
            put_flow(flows, state, network, b, a, 2 * number + 1)
        if row.sides & 1:
            put_flow(flows, state, network, a, b, 2 * number)
        if row.joined != 0:
            side = row.joined_side
            to = connection.ends[1 - side]
            put_flow(flows, state, row.joined - 1, connection.ends[side], to, 2 * number + side)


@device_function
def hash_pair(secret: I64, network: int, a: EndRow, b: EndRow) -> int:
    """Return a hash of 31 bits of two endpoints in a network, in any order."""
    is_first = a.port < b.port
    if a.port == b.port:
        is_first = a.low < b.low if a.low != b.low else a.high < b.high
    if is_first:
        hashed = hash_endpoints(secret, network, a.high, a.low, a.port, b.high, b.low, b.port)
    else:
        hashed = hash_endpoints(secret, network, b.high, b.low, b.port, a.high, a.low, a.port)
    return hashed >> 1
