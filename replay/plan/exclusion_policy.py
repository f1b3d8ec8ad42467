"""
Which captured requests are left out, and why.

Source: the senders of each API: the `listeners` of Kafka's message definitions
(clients/src/main/resources/common/message); KIP-714 (telemetry), KIP-890 (AddPartitionsToTxn v4).
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from dissector.errors import UsageError
from dissector.protocol.apis import NAMES
from dissector.protocol.error_codes import error_code, error_name
from dissector.protocol.messages import Message
from replay.fields.field_layout import Role
from replay.fields.roles import walk


class Kind(StrEnum):
    """
    Why an API is not sent by default.

    `between_brokers`: only brokers and controllers send it, to each other. `telemetry`: client
    metrics. `authentication`: it authenticates the captured client, whose credentials are not ours.
    `changing`: it destroys something, or reconfigures the target.
    """

    BETWEEN_BROKERS = "between_brokers"
    TELEMETRY = "telemetry"
    AUTHENTICATION = "authentication"
    CHANGING = "changing"


KINDS = {
    Kind.BETWEEN_BROKERS: (
        "LeaderAndIsr StopReplica UpdateMetadata ControlledShutdown WriteTxnMarkers Vote "
        "BeginQuorumEpoch EndQuorumEpoch AlterPartition Envelope FetchSnapshot BrokerRegistration "
        "BrokerHeartbeat AllocateProducerIds ControllerRegistration AssignReplicasToDirs "
        "InitializeShareGroupState ReadShareGroupState WriteShareGroupState "
        "DeleteShareGroupState ReadShareGroupStateSummary UpdateRaftVoter"
    ),
    Kind.TELEMETRY: "GetTelemetrySubscriptions PushTelemetry",
    Kind.AUTHENTICATION: "SaslHandshake SaslAuthenticate",
    Kind.CHANGING: (
        "DeleteTopics DeleteRecords CreatePartitions DeleteGroups OffsetDelete AlterConfigs "
        "IncrementalAlterConfigs CreateAcls DeleteAcls AlterPartitionReassignments ElectLeaders "
        "AlterReplicaLogDirs AlterClientQuotas AlterUserScramCredentials UpdateFeatures "
        "UnregisterBroker UnregisterController AddRaftVoter RemoveRaftVoter "
        "CreateDelegationToken RenewDelegationToken ExpireDelegationToken AlterShareGroupOffsets "
        "DeleteShareGroupOffsets"
    ),
}
"""Kind -> APIs; all others are sent."""

_KIND_OF = {name: kind for kind, names in KINDS.items() for name in names.split()}

_ALLOWABLE = {
    name.lower(): name for name, kind in _KIND_OF.items() if kind in (Kind.CHANGING, Kind.TELEMETRY)
}

_FIRST_FOR_BROKERS = {"AddPartitionsToTxn": 4}
"""API -> first version that only brokers use."""

_MOMENTARY = frozenset(
    error_code(name)
    for name in (
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_OR_FOLLOWER",
        "CONCURRENT_TRANSACTIONS",
    )
)
"""Errors of a cluster that is not ready, which clients retry until it is."""

UNHEARD_OF = frozenset(
    error_code(name) for name in ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID")
)
"""Errors for a new partition that its leader does not know yet, or for one that does not exist."""

_NEW = UNHEARD_OF | {error_code("NOT_ENOUGH_REPLICAS")}
"""The same, and the error for a new partition that its other replicas do not know yet."""

_ASKED_UNTIL_DONE = (
    "Produce JoinGroup SyncGroup Heartbeat LeaveGroup OffsetCommit OffsetFetch TxnOffsetCommit "
    "ConsumerGroupHeartbeat ShareGroupHeartbeat StreamsGroupHeartbeat "
    "StreamsGroupTopologyDescriptionUpdate FindCoordinator InitProducerId AddPartitionsToTxn "
    "AddOffsetsToTxn EndTxn"
)

_UNTIL_DONE = frozenset(_ASKED_UNTIL_DONE.split())

_SETTERS = frozenset({"AlterConfigs", "IncrementalAlterConfigs"})

_ERRORS = frozenset({Role.ERROR})

BROKERS_TALK = "brokers talk to each other"

_WHY = {
    Kind.BETWEEN_BROKERS: BROKERS_TALK,
    Kind.TELEMETRY: "is telemetry",
    Kind.AUTHENTICATION: "belongs to the authentication of the captured client",
    Kind.CHANGING: "destroys or reconfigures, and is not allowed",
}


def kind_of(api: str) -> Kind | None:
    """Return why an API is not sent by default; None if it is sent."""
    return _KIND_OF.get(api)


def allowed(names: Collection[str]) -> frozenset[str]:
    """
    Return API names in their usual spelling, whatever the case of the given ones.

    Raises:
        UsageError: There is no such API, or it is always sent or never.
    """
    for name in names:
        if name.lower() not in _ALLOWABLE:
            is_api = name.lower() in (each.lower() for each in NAMES.values())
            what = "needs no permission or never gets it" if is_api else "is no API"
            raise UsageError(f"{name!r} can not be allowed: it {what}")
    return frozenset(_ALLOWABLE[name.lower()] for name in names)


def is_neutral(message: Message) -> bool:
    """Return whether a request begins connections of clients and of brokers alike."""
    api = message.api or ""
    return api == "ApiVersions" or kind_of(api) is Kind.AUTHENTICATION


def is_between_brokers(message: Message) -> bool:
    """Return whether a request shows that its sender is a broker or controller."""
    api, body = message.api or "", message.body
    if kind_of(api) is Kind.BETWEEN_BROKERS:
        return True
    if api in _FIRST_FOR_BROKERS and (message.api_version or 0) >= _FIRST_FOR_BROKERS[api]:
        return True
    if body is None:
        return False
    inner = body.get("replica_state") or body
    return bool(max(inner.get("replica_id", -1), body.get("replica_id", -1)) >= 0)


def why_left_out(message: Message, allow: frozenset[str]) -> str:
    """
    Return why a request is not sent; empty if it is sent.

    Args:
        message: The request.
        allow: APIs that the user allows.
    """
    api = message.api or ""
    if message.api_key is None:
        return "is no Kafka request"
    if is_between_brokers(message):
        return BROKERS_TALK
    kind = kind_of(api)
    if kind is not None and api not in allow:
        return _WHY[kind]
    if message.body is None:
        why = f": {message.problems[0].what}" if message.problems else ""
        return "can not be decoded" + why
    if message.is_assumed:
        return f"version {message.shown_version} of {api} is not known, and not sent as a guess"
    return ""


def changes(message: Message, answer: Message | None) -> frozenset[str]:
    """
    Return the prerequisites missing without a request that destroys or reconfigures.

    Returns:
        The name of its API, with each setting that it changes; nothing if it changed nothing.
    """
    api, body = message.api or "", message.body
    if kind_of(api) is not Kind.CHANGING or (body is not None and body.get("validate_only")):
        return frozenset()
    errors = _errors(answer)
    if errors and 0 not in errors:
        return frozenset()
    if api not in _SETTERS or body is None:
        return frozenset({api})
    return frozenset(of_setting(api, each.name) for of in body.resources for each in of.configs)


def of_setting(api: str, setting: str) -> str:
    """Return the prerequisite that a setting provides."""
    return f"{api} of {setting}"


def _errors(answer: Message | None) -> set[int]:
    """Return the error codes of a response, 0 for success."""
    if answer is None or answer.body is None or answer.schema is None:
        return set()
    places = walk(answer.schema, answer.api_version or 0, answer.body, _ERRORS)
    return {place.value for place in places}


def why_unsettled(api: str, answer: Message | None) -> str:
    """
    Return why a request is left out because of its response; empty if it is sent.

    A request refused only for the moment changed nothing, and the client retried it. A target that
    is ready would execute it at once, and the retry once more.

    Args:
        api: The API of the request.
        answer: Its response; None if none was captured.
    """
    return _refused(_MOMENTARY, _errors(answer)) if api in _UNTIL_DONE else ""


def why_unheard_of(api: str, answer: Message | None) -> str:
    """
    Return why a Produce request is left out if a captured retry succeeded; empty if it is sent.

    Its partition may be so new that the leader, or another replica, did not know it yet. The
    target's brokers do, because the replay waits for that, and would append the records twice.
    """
    return _refused(_NEW, _errors(answer)) if api == "Produce" else ""


def _refused(momentary: frozenset[int | None], errors: set[int]) -> str:
    if not errors or not errors <= momentary:
        return ""
    return f"was refused for the moment ({error_name(min(errors))}), and asked again"
