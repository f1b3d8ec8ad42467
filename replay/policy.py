"""
Which captured requests are left out, and why.

Source: who may send an API: the `listeners` of Kafka's message definitions
(clients/src/main/resources/common/message); KIP-714 (telemetry), KIP-890 (AddPartitionsToTxn v4).
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from dissector.errors import UsageError
from dissector.protocol.apis import NAMES
from dissector.protocol.error_codes import error_code, error_name
from dissector.protocol.messages import Message
from replay.roles import Role, walk


class Kind(StrEnum):
    """
    Why an API is not simply sent.

    `between_brokers`: only brokers and controllers say it, to each other. `telemetry`: how clients
    fare. `authentication`: of the captured client, which is not ours. `changing`: it destroys
    something, or configures the target anew.
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
"""API -> the version from which on only brokers use it."""

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
"""Errors of a cluster that is not ready; a client asks again until it is."""

UNHEARD_OF = frozenset(
    error_code(name) for name in ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID")
)
"""Errors of a new partition whose leader has not heard of it, and of what is not there at all."""

_NEW = UNHEARD_OF | {error_code("NOT_ENOUGH_REPLICAS")}
"""The same, and that of one whose other replicas have not heard of it."""

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
    """Return why an API is not simply sent; None where it is."""
    return _KIND_OF.get(api)


def allowed(names: Collection[str]) -> frozenset[str]:
    """
    Return APIs as they are written here, whatever the case of their letters.

    Raises:
        UsageError: There is no such API, or it is sent anyway or never.
    """
    for name in names:
        if name.lower() not in _ALLOWABLE:
            is_api = name.lower() in (each.lower() for each in NAMES.values())
            what = "needs no permission or never gets it" if is_api else "is no API"
            raise UsageError(f"{name!r} can not be allowed: it {what}")
    return frozenset(_ALLOWABLE[name.lower()] for name in names)


def is_neutral(message: Message) -> bool:
    """Tell whether a request begins a connection of clients and of brokers alike."""
    api = message.api or ""
    return api == "ApiVersions" or kind_of(api) is Kind.AUTHENTICATION


def is_between_brokers(message: Message) -> bool:
    """Tell whether a request shows that a broker or controller sends it."""
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
    Tell why a request is not sent; empty where it is.

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
    Return what is lacked where a request that destroys or reconfigures is left out.

    Returns:
        The name of its API, with each setting that it is about; nothing where it changed nothing.
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
    """Return what is lacked where a setting is not set."""
    return f"{api} of {setting}"


def _errors(answer: Message | None) -> set[int]:
    """Return the error codes of an answer, 0 for what was done."""
    if answer is None or answer.body is None or answer.schema is None:
        return set()
    places = walk(answer.schema, answer.api_version or 0, answer.body, _ERRORS)
    return {place.value for place in places}


def why_unsettled(api: str, answer: Message | None) -> str:
    """
    Tell why a request is left out because of its answer; empty where it is not.

    One that was refused only for the moment changed nothing, and the client asked again. A target
    that is ready would do it now, and then once more.

    Args:
        api: Of the request.
        answer: What it was answered; None where nothing was captured.
    """
    return _refused(_MOMENTARY, _errors(answer)) if api in _UNTIL_DONE else ""


def why_unheard_of(api: str, answer: Message | None) -> str:
    """
    Tell why a Produce request is left out if it was asked again and done then; empty where not.

    Its partition may be so new that the leader, or another replica, has not heard of it. Those of
    the target have, as is waited for, and would write the records twice.
    """
    return _refused(_NEW, _errors(answer)) if api == "Produce" else ""


def _refused(momentary: frozenset[int | None], errors: set[int]) -> str:
    if not errors or not errors <= momentary:
        return ""
    return f"was refused for the moment ({error_name(min(errors))}), and asked again"
