"""Which connection the segments of two endpoints belong to: a hash table in arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from dissector.capture.columns import Int32s, Int64s
from dissector.capture.hashing import SECRET, hash_endpoints
from dissector.capture.tcp.connection_columns import A_HIGH, A_LOW, B_HIGH, B_LOW, PORTS
from dissector.capture.tcp.connection_state import FlowKey
from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.kernel import Kernel, device_function

OWNER, NETWORK = 0, 1
"""Columns of flows. The owner is twice a connection's number, plus the side that speaks."""

ANY_NETWORK = -1
"""Network of the flow that says which connection was silent in a direction, whatever its own is."""

_FIRST_SLOTS = 1 << 10

_WORK = 20
"""Steps that a flow takes to find a new slot, as `Kernel` counts them."""


def any_network_key(key: FlowKey) -> FlowKey:
    """Return the key under which is found who is silent in a direction."""
    _, high, low, port, to_high, to_low, to_port = key
    return ANY_NETWORK, high, low, port, to_high, to_low, to_port


@device_function
def find_flow(
    known: Any,
    flows: Any,
    slots: Any,
    secret: Any,
    network: int,
    source: Any,
    source_port: Any,
    target: Any,
    target_port: Any,
    i: int,
) -> int:
    """Return the flow of segment `i`; where there is none, `-1 -` the slot where it belongs."""
    high, low, port = source[i, 0], source[i, 1], source_port[i]
    to_high, to_low, to_port = target[i, 0], target[i, 1], target_port[i]
    last = len(slots) - 1
    slot = hash_endpoints(secret, network, high, low, port, to_high, to_low, to_port) & last
    while slots[slot] != 0:
        flow: int = slots[slot] - 1
        if flows[flow, NETWORK] == network:
            owner = flows[flow, OWNER]
            if owner < 0:
                owner = -1 - owner
            number = owner >> 1
            there = (owner & 1) * (B_HIGH - A_HIGH)
            ports = to_port << 16 | port if owner & 1 else port << 16 | to_port
            if (
                known[number, PORTS] == ports
                and known[number, A_LOW + there] == low
                and known[number, B_LOW - there] == to_low
                and known[number, A_HIGH + there] == high
                and known[number, B_HIGH - there] == to_high
            ):
                return flow
        slot = (slot + 1) & last
    return -1 - slot


@device_function
def put_flow(flows: Any, slots: Any, count: int, found: int, network: int, owner: int) -> int:
    """Store a flow in the slot that `find_flow` returned; return the number of flows."""
    if found >= 0:
        flows[found, OWNER] = owner
        return count
    flows[count, OWNER] = owner
    flows[count, NETWORK] = network
    slots[-1 - found] = count + 1
    return count + 1


@Kernel
def rehash(known: Any, flows: Any, slots: Any, secret: Any, count: int) -> int:
    """Fill empty slots with flows that differ."""
    last = len(slots) - 1
    for row in range(count):
        owner = flows[row, OWNER]
        if owner < 0:
            owner = -1 - owner
        number = owner >> 1
        there = (owner & 1) * (B_HIGH - A_HIGH)
        a_port, b_port = known[number, PORTS] >> 16, known[number, PORTS] & 0xFFFF
        slot = last & hash_endpoints(
            secret,
            flows[row, NETWORK],
            known[number, A_HIGH + there],
            known[number, A_LOW + there],
            b_port if owner & 1 else a_port,
            known[number, B_HIGH - there],
            known[number, B_LOW - there],
            a_port if owner & 1 else b_port,
        )
        while slots[slot] != 0:
            slot = (slot + 1) & last
        slots[slot] = row + 1
    return count


class FlowTable:
    """
    The connection and side that segments from one endpoint to another belong to now, by network.

    A flow's endpoints are those of its connection, so they are kept once. Flows are not taken away
    but with their connection: when endpoints are used again, their flows get another owner. There
    are three for each connection: its two directions, and in `ANY_NETWORK` the one that was silent
    when it began.

    Attributes:
        count: How many there are.
        rows: Owner and network of each, in the order in which they were first met; there is room
            for more.
        slots: A row's number plus one at the place of its hash or the next free one; 0 if free.
    """

    def __init__(self, known: ConnectionTable) -> None:
        self._known = known
        self.count = 0
        self._begin(_FIRST_SLOTS)
        self._look()

    def __getstate__(self) -> tuple[ConnectionTable, int, Int32s]:
        return self._known, self.count, self.rows[: self.count]

    def __setstate__(self, state: tuple[ConnectionTable, int, Int32s]) -> None:
        self._known, self.count, rows = state
        self._refill(rows)
        self._look()

    def _look(self) -> None:
        """Make room for the endpoints that are looked for."""
        ends = np.empty(6, dtype=np.int64)
        self._ends = ends
        self._source, self._source_port = ends[0:2].reshape(1, 2).data, ends[2:3].data
        self._target, self._target_port = ends[3:5].reshape(1, 2).data, ends[5:6].data

    def _begin(self, slots: int) -> None:
        self.rows: Int32s = np.empty((slots // 4 * 3, 2), dtype=np.int32)
        self.slots: Int32s = np.zeros(slots, dtype=np.int32)

    def find(self, key: FlowKey) -> int:
        """Return a flow; negative if there is none."""
        self._ends[:] = key[1:]
        return find_flow(
            self._known.rows.data,
            self.rows.data,
            self.slots.data,
            SECRET.data,
            key[0],
            self._source,
            self._source_port,
            self._target,
            self._target_port,
            0,
        )

    def owner(self, key: FlowKey) -> int:
        """Return the owner of a flow; negative if it has none."""
        flow = self.find(key)
        return -1 if flow < 0 else int(self.rows[flow, OWNER])

    def put(self, key: FlowKey, owner: int) -> None:
        """Let a flow belong to a connection that has its row."""
        if self.count == len(self.rows):
            old = self.rows
            self._begin(2 * len(self.slots))
            self.rows[: self.count] = old
            self._scatter_again()
        flow = self.find(key)
        self.count = put_flow(self.rows.data, self.slots.data, self.count, flow, key[0], owner)

    def retain(self, places: Int64s) -> None:
        """
        Forget the flows of connections that were forgotten.

        Args:
            places: The new number of each connection, whose rows have moved; -1: it is forgotten.
        """
        rows = self.rows[: self.count]
        owner = rows[:, OWNER].astype(np.int64)
        owners = np.where(owner < 0, -1 - owner, owner)
        place = places[owners >> 1]
        moved = 2 * place + (owners & 1)
        rows[:, OWNER] = np.where(owner < 0, -1 - moved, moved)
        rows = rows[place >= 0]
        self.count = len(rows)
        self._refill(rows)

    def _refill(self, rows: Int32s) -> None:
        self._begin(max(_FIRST_SLOTS, 1 << (2 * self.count).bit_length()))
        self.rows[: self.count] = rows
        self._scatter_again()

    def _scatter_again(self) -> None:
        tables = self._known.rows, self.rows, self.slots, SECRET
        rehash(*tables, self.count, work=_WORK * self.count)

    def first_sides(self) -> list[int]:
        """Return the connections that own flows as side 0, in the order of the flows."""
        rows = self.rows[: self.count]
        owners = rows[(rows[:, NETWORK] != ANY_NETWORK) & (rows[:, OWNER] & 1 == 0), OWNER]
        numbers: list[int] = (owners >> 1).tolist()
        return numbers
