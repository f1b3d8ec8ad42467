"""A hash table in arrays: the connection of the segments between two endpoints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dissector.capture.columns import Int32s, Int64s
from dissector.capture.hashing import SECRET
from dissector.capture.tcp.both_paths.tcp_rows import ConnectionRow, FlowArrays
from dissector.capture.tcp.fast_path.flow_lookup import (
    ANY_NETWORK,
    find_flow,
    put_flow,
    rehash,
)
from dissector.capture.tcp.objects.connection_state import FlowKey
from dissector.capture.tcp.tables.connection_table import ConnectionTable
from dissector.kernel.named_rows import rows_of

_FIRST_SLOTS = 1 << 10


def any_network_key(key: FlowKey) -> FlowKey:
    """Return the key for lookups by the silent direction of a connection."""
    _, high, low, port, to_high, to_low, to_port = key
    return ANY_NETWORK, high, low, port, to_high, to_low, to_port


class FlowTable:
    """
    The connection and side of the segments from one endpoint to another, by network.

    The endpoints of a flow equal those of its connection, so they are stored once. Flows are only
    removed with their connection: when endpoints are used again, their flows get another owner.
    There are three for each connection: its two directions, and in `ANY_NETWORK` the direction that
    was silent at its begin.

    Attributes:
        count: Number of flows.
        arrays: The flows, in the order of their appearance; there is room for more.
    """

    def __init__(self, connections: ConnectionTable) -> None:
        self._connections = connections
        self.count = 0
        self._allocate(_FIRST_SLOTS)
        self._make_lookup_views()

    def __getstate__(self) -> tuple[ConnectionTable, Int32s, Int32s]:
        return self._connections, *self._columns()

    def __setstate__(self, state: tuple[ConnectionTable, Int32s, Int32s]) -> None:
        self._connections, owner, network = state
        self._refill(owner, network)
        self._make_lookup_views()

    def _columns(self) -> tuple[Int32s, Int32s]:
        """Return owners and networks."""
        return self._owner[: self.count], self._network[: self.count]

    def _make_lookup_views(self) -> None:
        """Allocate the endpoints of lookups, and views of them."""
        endpoints = np.empty(6, dtype=np.int64)
        self._endpoints = endpoints
        self._source, self._source_port = endpoints[0:2].reshape(1, 2).data, endpoints[2:3].data
        self._target, self._target_port = endpoints[3:5].reshape(1, 2).data, endpoints[5:6].data

    def _allocate(self, slots: int) -> None:
        self._owner: Int32s = np.empty(slots // 4 * 3, dtype=np.int32)
        self._network: Int32s = np.empty(slots // 4 * 3, dtype=np.int32)
        arrays: tuple[Any, ...] = (self._owner, self._network, np.zeros(slots, np.int32), SECRET)
        self.arrays = FlowArrays._make(arrays)
        self._views = FlowArrays._make(each.data for each in arrays)

    def find(self, key: FlowKey) -> int:
        """Return a flow; negative without one."""
        self._endpoints[:] = key[1:]
        return find_flow(
            rows_of(self._connections.rows, ConnectionRow),
            self._views,
            key[0],
            self._source,
            self._source_port,
            self._target,
            self._target_port,
            0,
        )

    def owner(self, key: FlowKey) -> int:
        """Return the owner of a flow; negative without one."""
        flow = self.find(key)
        return -1 if flow < 0 else int(self._owner[flow])

    def put(self, key: FlowKey, owner: int) -> None:
        """Set the owner of a flow, which must have its row already."""
        if self.count == len(self._owner):
            self._refill(*self._columns(), slots=2 * len(self.arrays.slots))
        flow = self.find(key)
        self.count = put_flow(self._views, self.count, flow, key[0], owner)

    def set_owners(self, flows: Iterable[int], owners: Iterable[int]) -> None:
        """Set the owners of flows that exist."""
        for flow, owner in zip(flows, owners, strict=True):
            self._owner[flow] = owner

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
        self.count = len(owner)
        self._allocate(max(slots, 1 << (2 * self.count).bit_length()))
        self._owner[: self.count], self._network[: self.count] = owner, network
        rehash(self._connections.rows, self.arrays, self.count)

    def first_sides(self) -> list[int]:
        """Return the connections that own flows as side 0, in the order of the flows."""
        owner, network = self._columns()
        numbers: list[int] = (owner[(network != ANY_NETWORK) & (owner & 1 == 0)] >> 1).tolist()
        return numbers
