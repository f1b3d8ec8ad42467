"""
Bytes that the members of a classic group write for each other: subscriptions and assignments.

The group's protocol type says whose protocol it is. Messages that do not carry it leave a guess,
which counts only where the bytes fit to the last one.

Source: Kafka, ConsumerProtocol.java and ConnectProtocol.java; KIP-559 (the protocol type in
JoinGroup and SyncGroup responses).
"""

from __future__ import annotations

from typing import Literal

from dissector.protocol.embedded.connect_protocol import ConnectAssignment, ConnectWorkerMetadata
from dissector.protocol.embedded.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from dissector.protocol.embedded.reading import Embedded, read_versioned

Part = Literal["metadata", "assignment"]
"""What a member tells when it joins, or what it is given."""

_PROTOCOLS = {
    "consumer": {
        "metadata": ("ConsumerProtocolSubscription", ConsumerProtocolSubscription),
        "assignment": ("ConsumerProtocolAssignment", ConsumerProtocolAssignment),
    },
    "connect": {
        "metadata": ("ConnectWorkerMetadata", ConnectWorkerMetadata),
        "assignment": ("ConnectAssignment", ConnectAssignment),
    },
}


def read_member(path: str, data: bytes, part: Part, protocol_type: str | None) -> Embedded | None:
    """
    Read what a member wrote.

    Returns:
        None where there are no bytes, or where they belong to a protocol that is not known here.
    """
    if not data:
        return None
    if protocol_type:
        return _read_as(path, data, part, protocol_type) if protocol_type in _PROTOCOLS else None
    guesses = (_read_as(path, data, part, each) for each in _PROTOCOLS)
    return next((each for each in guesses if _fits(each)), None)


def _read_as(path: str, data: bytes, part: Part, protocol_type: str) -> Embedded:
    name, schema = _PROTOCOLS[protocol_type][part]
    found = read_versioned(path, name, schema, data, forward=True)
    allocation = found.value.get("allocation") if found.value is not None else None
    if allocation:
        found.inner.append(
            read_versioned(
                "allocation", "ConnectAssignment", ConnectAssignment, allocation, forward=True
            )
        )
    return found


def _fits(found: Embedded) -> bool:
    inner = all(_fits(each) for each in found.inner)
    return found.value is not None and not found.problems and not found.left and inner
