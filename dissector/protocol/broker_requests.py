"""
Requests that only brokers and controllers send, to each other.

Source: the senders of each API: the `listeners` of Kafka's message definitions
(clients/src/main/resources/common/message); KIP-890 (AddPartitionsToTxn v4).
"""

from __future__ import annotations

from dissector.protocol.messages import Message

_NAMES = (
    "LeaderAndIsr StopReplica UpdateMetadata ControlledShutdown WriteTxnMarkers Vote "
    "BeginQuorumEpoch EndQuorumEpoch AlterPartition Envelope FetchSnapshot BrokerRegistration "
    "BrokerHeartbeat AllocateProducerIds ControllerRegistration AssignReplicasToDirs "
    "InitializeShareGroupState ReadShareGroupState WriteShareGroupState "
    "DeleteShareGroupState ReadShareGroupStateSummary UpdateRaftVoter"
)

BETWEEN_BROKERS = frozenset(_NAMES.split())
"""Their APIs."""

_FIRST_FOR_BROKERS = {"AddPartitionsToTxn": 4}
"""API -> first version that only brokers use."""


def is_between_brokers(message: Message) -> bool:
    """Return whether a request shows that its sender is a broker or controller."""
    api, body = message.api or "", message.body
    if api in BETWEEN_BROKERS:
        return True
    if api in _FIRST_FOR_BROKERS and (message.api_version or 0) >= _FIRST_FOR_BROKERS[api]:
        return True
    if body is None:
        return False
    inner = body.get("replica_state") or body
    return bool(max(inner.get("replica_id", -1), body.get("replica_id", -1)) >= 0)
