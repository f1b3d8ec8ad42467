"""
Bytes that the members of a classic group exchange: subscriptions and assignments.

The group's protocol type determines the protocol. For messages without it, each known protocol is
tried, and used only if the bytes match completely.

Source: Kafka, ConsumerProtocol.java and ConnectProtocol.java; KIP-559 (the protocol type in
JoinGroup and SyncGroup responses).
"""

from __future__ import annotations

from typing import Literal

from dissector.protocol.embedded.membership.assignors import read_user_data
from dissector.protocol.embedded.membership.connect_protocol import (
    ConnectAssignment,
    ConnectWorkerMetadata,
)
from dissector.protocol.embedded.membership.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from dissector.protocol.embedded.reading import Embedded, read_versioned

MemberField = Literal["metadata", "assignment"]
"""A member's data in its join, or its assignment."""

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


def read_member(
    path: str,
    data: bytes,
    part: MemberField,
    protocol_type: str | None,
    protocol: str | None = None,
) -> Embedded | None:
    """
    Decode the metadata or the assignment of a member.

    Args:
        path: Path of the field.
        data: Its bytes.
        part: Kind of the data.
        protocol_type: Protocol type of the group; if None, the known ones are tried.
        protocol: Name of the protocol, if known: it is the assignor that wrote `user_data`.

    Returns:
        None without bytes, or for an unknown protocol.
    """
    if not data:
        return None
    if protocol_type and protocol_type not in _PROTOCOLS:
        return None
    if protocol_type:
        found: Embedded | None = _read_as(path, data, part, protocol_type)
    else:
        attempts = (_read_as(path, data, part, each) for each in _PROTOCOLS)
        found = next((each for each in attempts if _fits(each)), None)
    if found is not None and part == "metadata" and found.value is not None:
        user_data = read_user_data("user_data", found.value.get("user_data") or b"", protocol)
        found.inner += [user_data] if user_data is not None else []
    return found


def _read_as(path: str, data: bytes, part: MemberField, protocol_type: str) -> Embedded:
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
    return found.fits and not found.left and inner
