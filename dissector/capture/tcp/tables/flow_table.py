"""A hash table in arrays: the connection of the segments between two endpoints."""

from __future__ import annotations

import numpy as np

from dissector.capture.columns import Int32s, Int64s
from dissector.capture.hashing import SECRET
from dissector.capture.tcp.both_paths.tcp_arrays import FlowArrays
from dissector.capture.tcp.fast_path.flow_lookup import (
    ANY_NETWORK,
    NETWORK,
    OWNER,
    find_flow,
    put_flow,
    rehash,
)
from dissector.capture.tcp.objects.connection_state import FlowKey
from dissector.capture.tcp.tables.connection_table import ConnectionTable

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
        rows: Owner and network of each, in the order of their appearance; there is room for more.
        slots: A row's number plus one at the slot of its hash or the next free one; 0 if free.
    """

    def __init__(self, connections: ConnectionTable) -> None:
        self._connections = connections
        self.count = 0
        self._allocate(_FIRST_SLOTS)
        self._make_lookup_views()

    def __getstate__(self) -> tuple[ConnectionTable, int, Int32s]:
        return self._connections, self.count, self.rows[: self.count]

    def __setstate__(self, state: tuple[ConnectionTable, int, Int32s]) -> None:
        self._connections, self.count, rows = state
        self._refill(rows)
        self._make_lookup_views()

    def _make_lookup_views(self) -> None:
        """Allocate the endpoints of lookups, and views of them."""
        endpoints = np.empty(6, dtype=np.int64)
        self._endpoints = endpoints
        self._source, self._source_port = endpoints[0:2].reshape(1, 2).data, endpoints[2:3].data
        self._target, self._target_port = endpoints[3:5].reshape(1, 2).data, endpoints[5:6].data

    def _allocate(self, slots: int) -> None:
        self.rows: Int32s = np.empty((slots // 4 * 3, 2), dtype=np.int32)
        self.slots: Int32s = np.zeros(slots, dtype=np.int32)
        self._views = FlowArrays(self.rows.data, self.slots.data, SECRET.data)

    def find(self, key: FlowKey) -> int:
        """Return a flow; negative without one."""
        self._endpoints[:] = key[1:]
        return find_flow(
            self._connections.rows.data,
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
        return -1 if flow < 0 else int(self.rows[flow, OWNER])

    def put(self, key: FlowKey, owner: int) -> None:
        """Set the owner of a flow, which must have its row already."""
        if self.count == len(self.rows):
            old = self.rows
            self._allocate(2 * len(self.slots))
            self.rows[: self.count] = old
            self._rehash()
        flow = self.find(key)
        self.count = put_flow(self.rows.data, self.slots.data, self.count, flow, key[0], owner)

    def retain(self, new_numbers: Int64s) -> None:
        """
        Drop the flows of connections that were dropped.

        Args:
            new_numbers: The new number of each connection after rows have moved; -1: dropped.
        """
        rows = self.rows[: self.count]
        owner = rows[:, OWNER].astype(np.int64)
        owners = np.where(owner < 0, -1 - owner, owner)
        new_number = new_numbers[owners >> 1]
        moved = 2 * new_number + (owners & 1)
        rows[:, OWNER] = np.where(owner < 0, -1 - moved, moved)
        rows = rows[new_number >= 0]
        self.count = len(rows)
        self._refill(rows)

    def _refill(self, rows: Int32s) -> None:
        self._allocate(max(_FIRST_SLOTS, 1 << (2 * self.count).bit_length()))
        self.rows[: self.count] = rows
        self._rehash()

    def _rehash(self) -> None:
        tables = self._connections.rows, self.rows, self.slots, SECRET
        rehash(*tables, self.count)

    def first_sides(self) -> list[int]:
        """Return the connections that own flows as side 0, in the order of the flows."""
        rows = self.rows[: self.count]
        owners = rows[(rows[:, NETWORK] != ANY_NETWORK) & (rows[:, OWNER] & 1 == 0), OWNER]
        numbers: list[int] = (owners >> 1).tolist()
        return numbers
