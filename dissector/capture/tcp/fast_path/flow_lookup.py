"""Device functions and a kernel that find and add flows; see `FlowTable`."""

from __future__ import annotations

from dissector.capture.hashing import hash_endpoints
from dissector.capture.tcp.both_paths.connection_columns import A_HIGH, A_LOW, B_HIGH, B_LOW, PORTS
from dissector.capture.tcp.both_paths.tcp_arrays import FlowArrays
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I32, I64, I32Table, I64Table

OWNER, NETWORK = 0, 1
"""Columns of flows. The owner is twice a connection's number, plus the side that sends."""

ANY_NETWORK = -1
"""
Network of flows of a connection's silent direction, whatever its network is.
"""


@device_function
def find_flow(
    connections: I64Table,
    flows: FlowArrays,
    network: int,
    source: I64Table,
    source_port: I32,
    target: I64Table,
    target_port: I32,
    i: int,
) -> int:
    """Return the flow of segment `i`; without one, `-1 -` the free slot."""
    high, low, port = source[i, 0], source[i, 1], source_port[i]
    to_high, to_low, to_port = target[i, 0], target[i, 1], target_port[i]
    last = len(flows.slots) - 1
    slot = hash_endpoints(flows.secret, network, high, low, port, to_high, to_low, to_port) & last
    while flows.slots[slot] != 0:
        flow: int = flows.slots[slot] - 1
        if flows.rows[flow, NETWORK] == network:
            owner = flows.rows[flow, OWNER]
            if owner < 0:
                owner = -1 - owner
            number = owner >> 1
            offset = (owner & 1) * (B_HIGH - A_HIGH)
            ports = to_port << 16 | port if owner & 1 else port << 16 | to_port
            if (
                connections[number, PORTS] == ports
                and connections[number, A_LOW + offset] == low
                and connections[number, B_LOW - offset] == to_low
                and connections[number, A_HIGH + offset] == high
                and connections[number, B_HIGH - offset] == to_high
            ):
                return flow
        slot = (slot + 1) & last
    return -1 - slot


@device_function
def put_flow(flows: I32Table, slots: I32, count: int, flow: int, network: int, owner: int) -> int:
    """
    Set the owner of the flow that `find_flow` returned; return the new number of flows.

    The owner must have its row already.
    """
    if flow >= 0:
        flows[flow, OWNER] = owner
        return count
    flows[count, OWNER] = owner
    flows[count, NETWORK] = network
    slots[-1 - flow] = count + 1
    return count + 1


@Kernel
def rehash(connections: I64Table, flows: I32Table, slots: I32, secret: I64, count: int) -> int:
    """Fill empty slots with flows that differ."""
    last = len(slots) - 1
    for row in range(count):
        owner = flows[row, OWNER]
        if owner < 0:
            owner = -1 - owner
        number = owner >> 1
        offset = (owner & 1) * (B_HIGH - A_HIGH)
        a_port, b_port = connections[number, PORTS] >> 16, connections[number, PORTS] & 0xFFFF
        slot = last & hash_endpoints(
            secret,
            flows[row, NETWORK],
            connections[number, A_HIGH + offset],
            connections[number, A_LOW + offset],
            b_port if owner & 1 else a_port,
            connections[number, B_HIGH - offset],
            connections[number, B_LOW - offset],
            a_port if owner & 1 else b_port,
        )
        while slots[slot] != 0:
            slot = (slot + 1) & last
        slots[slot] = row + 1
    return count
