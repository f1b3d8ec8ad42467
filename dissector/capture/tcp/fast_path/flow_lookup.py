"""Device functions and a kernel that find and add flows; see `FlowTable`."""

from __future__ import annotations

from dissector.capture.hashing import hash_endpoints
from dissector.capture.tcp.both_paths.tcp_rows import ConnectionRow, FlowArrays
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I32, I64Table
from dissector.kernel.named_rows import Rows

ANY_NETWORK = -1
"""
Network of flows of a connection's silent direction, whatever its network is.
"""


@device_function
def find_flow(
    connections: Rows[ConnectionRow],
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
        if flows.network[flow] == network:
            owner = flows.owner[flow]
            if owner < 0:
                owner = -1 - owner
            connection = connections[owner >> 1]
            sender, receiver = connection.ends[owner & 1], connection.ends[1 - (owner & 1)]
            if (
                sender.port == port
                and receiver.port == to_port
                and sender.low == low
                and receiver.low == to_low
                and sender.high == high
                and receiver.high == to_high
            ):
                return flow
        slot = (slot + 1) & last
    return -1 - slot


@device_function
def put_flow(flows: FlowArrays, count: int, flow: int, network: int, owner: int) -> int:
    """
    Set the owner of the flow that `find_flow` returned; return the new number of flows.

    The owner must have its row already.
    """
    if flow >= 0:
        flows.owner[flow] = owner
        return count
    flows.owner[count] = owner
    flows.network[count] = network
    flows.slots[-1 - flow] = count + 1
    return count + 1


@Kernel
def rehash(connections: Rows[ConnectionRow], flows: FlowArrays, count: int) -> int:
    """Fill empty slots with flows that differ."""
    last = len(flows.slots) - 1
    for flow in range(count):
        owner = flows.owner[flow]
        if owner < 0:
            owner = -1 - owner
        connection = connections[owner >> 1]
        sender, receiver = connection.ends[owner & 1], connection.ends[1 - (owner & 1)]
        slot = last & hash_endpoints(
            flows.secret,
            flows.network[flow],
            sender.high,
            sender.low,
            sender.port,
            receiver.high,
            receiver.low,
            receiver.port,
        )
        while flows.slots[slot] != 0:
            slot = (slot + 1) & last
        flows.slots[slot] = flow + 1
    return count
