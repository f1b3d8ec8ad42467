"""A hash table in arrays: the connection of the segments between two endpoints."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import Int32s, Int64s
from dissector.capture.hashing import SECRET
from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.capture.tcp.resting_flows import own_flows
from dissector.capture.tcp.segment_kernel import ANY_NETWORK, NEW_FLOWS, rehash
from dissector.capture.tcp.tcp_rows import FlowArrays
from dissector.kernel.named_rows import RowArray

_FIRST_SLOTS = 1 << 10

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
