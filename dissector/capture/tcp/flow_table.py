"""
Hash tables: the connection of the segments between two endpoints.

There is one for the connections that have rows, which kernels ask for each segment, and a small one
for those at rest, which is asked before each window.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import Int32s, Int64s
from dissector.capture.hashing import SECRET, hash_endpoints
from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.capture.tcp.segment_kernel import (
    ANY_NETWORK,
    NEW_FLOWS,
    load_segment,
    put_flow,
    rehash,
)
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

_FIRST_SLOTS = 1 << 10
_FREE, _REMOVED = -1, -2
_NUMBER_BITS, _HASH_BITS = 36, 27
_NUMBER = (1 << _NUMBER_BITS) - 1

Bools: TypeAlias = "NDArray[np.bool_]"


class FlowTable:
    """
    The connection and side of the segments from one endpoint to another, by network.

    The endpoints of a flow equal those of its connection, so they are stored once. Flows are only
    removed with their connection: when endpoints are used again, their flows get another owner.
    There are three for each connection: its two directions, and in `ANY_NETWORK` the direction that
    was silent at its begin. Of connections at rest there are none, see `RestingFlows`.

    Attributes:
        arrays: The flows, in the order of their appearance; there is room for more.
    """

    def __init__(self, connections: ConnectionTable) -> None:
        self._connections = connections
        self._allocate(_FIRST_SLOTS)

    def __getstate__(self) -> tuple[ConnectionTable, Int32s, Int32s]:
        return self._connections, *self._columns()

    def __setstate__(self, state: tuple[ConnectionTable, Int32s, Int32s]) -> None:
        self._connections, owner, network = state
        self._refill(owner, network)

    @property
    def count(self) -> int:
        """Number of flows."""
        return int(self._connections.counts["flows"])

    def _columns(self) -> tuple[Int32s, Int32s]:
        """Return owners and networks."""
        return self._owner[: self.count], self._network[: self.count]

    def _allocate(self, slots: int) -> None:
        self._owner: Int32s = np.empty(slots // 4 * 3, dtype=np.int32)
        self._network: Int32s = np.empty(slots // 4 * 3, dtype=np.int32)
        arrays: tuple[Any, ...] = (self._owner, self._network, np.zeros(slots, np.int32), SECRET)
        self.arrays = FlowArrays._make(arrays)

    def reserve(self) -> None:
        """Make room for the flows of a connection."""
        if self.count + NEW_FLOWS > len(self._owner):
            self._refill(*self._columns(), slots=2 * len(self.arrays.slots))

    def retain(self, new_numbers: Int64s) -> None:
        """
        Drop the flows of connections that were dropped.

        Args:
            new_numbers: The new number of each connection after rows have moved; -1: dropped.
        """
        owner, network = self._columns()
        owners = np.where(owner < 0, -1 - owner, owner)
        new_number = new_numbers[owners >> 1]
        moved = 2 * new_number + (owners & 1)
        is_kept = new_number >= 0
        self._refill(np.where(owner < 0, -1 - moved, moved)[is_kept], network[is_kept])

    def _refill(self, owner: Int32s, network: Int32s, slots: int = _FIRST_SLOTS) -> None:
        count = len(owner)
        self._connections.counts["flows"] = count
        self._allocate(max(slots, 1 << (2 * count).bit_length()))
        self._owner[:count], self._network[:count] = owner, network
        rehash(self._connections.rows, self.arrays, count)

    def owned(self, flows: RowArray) -> Bools:
        """
        Set which flows all connections own, `OwnedFlows` for each; return where that is all.

        A connection owns at most one flow in another network, unless its sides were exchanged.
        """
        owner, network = self._columns()
        is_owned = (owner >= 0) & (network != ANY_NETWORK)
        row, side, network = owner[is_owned] >> 1, owner[is_owned] & 1, network[is_owned]
        is_own = network == self._connections.rows["network"][row]
        for each in (0, 1):
            flows["sides"][row[is_own & (side == each)]] |= 1 << each
        flows["joined"][row[~is_own]] = network[~is_own] + 1
        flows["joined_side"][row[~is_own]] = side[~is_own]
        is_told: Bools = np.bincount(row[~is_own], minlength=len(flows)) < 2
        return is_told

    def add(self, first: int, resting: RowArray) -> None:
        """Add the flows of connections, whose rows from `first` on are made of these."""
        table = self._connections
        if self.count + NEW_FLOWS * len(resting) > len(self._owner):
            needed = self.count + NEW_FLOWS * len(resting)
            self._refill(*self._columns(), slots=2 << needed.bit_length())
        arrays: Any = self.arrays, table.arrays, first, np.ascontiguousarray(resting["flows"])
        own_flows(*arrays)

    def has_first_side(self, rows: Int64s) -> Bools:
        """Return which connections own a flow as side 0."""
        owner, network = self._columns()
        found: Bools = np.isin(2 * rows, owner[network != ANY_NETWORK])
        return found


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
    """Return a hash of two endpoints in a network, in any order."""
    is_first = a.port < b.port
    if a.port == b.port:
        is_first = a.low < b.low if a.low != b.low else a.high < b.high
    if is_first:
        hashed = hash_endpoints(secret, network, a.high, a.low, a.port, b.high, b.low, b.port)
    else:
        hashed = hash_endpoints(secret, network, b.high, b.low, b.port, a.high, a.low, a.port)
    return hashed >> 32 - _HASH_BITS
