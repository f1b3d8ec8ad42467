"""
Which captured requests are left out, and why.

Source: KIP-714 (telemetry).
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from cluster.fields.roles import walk
from dissector.errors import UsageError
from dissector.protocol.apis import NAMES
from dissector.protocol.broker_requests import BETWEEN_BROKERS, is_between_brokers
from dissector.protocol.error_codes import error_code, error_name
from dissector.protocol.field_roles import Role
from dissector.protocol.messages import Message
from dissector.request_log.synthetic_records import are_synthetic


class Exclusion(StrEnum):
    """
    Why an API is not sent by default.

    `between_brokers`: only brokers and controllers send it, to each other. `telemetry`: client
    metrics. `authentication`: it authenticates the captured client, with credentials that we lack.
    `changing`: it destroys something, or reconfigures the target.
    """

    BETWEEN_BROKERS = "between_brokers"
    TELEMETRY = "telemetry"
    AUTHENTICATION = "authentication"
    CHANGING = "changing"


EXCLUDED_APIS = {
    Exclusion.BETWEEN_BROKERS: " ".join(sorted(BETWEEN_BROKERS)),
    Exclusion.TELEMETRY: "GetTelemetrySubscriptions PushTelemetry",
    Exclusion.AUTHENTICATION: "SaslHandshake SaslAuthenticate",
    Exclusion.CHANGING: (
        "DeleteTopics DeleteRecords CreatePartitions DeleteGroups OffsetDelete AlterConfigs "
        "IncrementalAlterConfigs CreateAcls DeleteAcls AlterPartitionReassignments ElectLeaders "
        "AlterReplicaLogDirs AlterClientQuotas AlterUserScramCredentials UpdateFeatures "
        "UnregisterBroker UnregisterController AddRaftVoter RemoveRaftVoter "
        "CreateDelegationToken RenewDelegationToken ExpireDelegationToken AlterShareGroupOffsets "
        "DeleteShareGroupOffsets"
    ),
}
"""Kind -> APIs; all others are sent."""

WITHOUT_RECORDS = "has no records in a request log; --synthetic-records makes some up"

_EXCLUSION_OF = {name: kind for kind, names in EXCLUDED_APIS.items() for name in names.split()}

_ALLOWABLE = {
    name.lower(): name
    for name, kind in _EXCLUSION_OF.items()
    if kind in (Exclusion.CHANGING, Exclusion.TELEMETRY)
}

_NOT_READY_ERRORS = frozenset(
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
"""Errors of a cluster that is not ready; clients retry until it is."""

UNKNOWN_PARTITION_ERRORS = frozenset(
    error_code(name) for name in ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID")
)
"""Errors for a new partition unknown to its leader, or for a missing one."""

_NEW_PARTITION_ERRORS = UNKNOWN_PARTITION_ERRORS | {error_code("NOT_ENOUGH_REPLICAS")}
"""The same, and the error for a new partition that its other replicas do not know yet."""

_RETRIED_API_NAMES = (
    "Produce JoinGroup SyncGroup Heartbeat LeaveGroup OffsetCommit OffsetFetch TxnOffsetCommit "
    "ConsumerGroupHeartbeat ShareGroupHeartbeat StreamsGroupHeartbeat "
    "StreamsGroupTopologyDescriptionUpdate FindCoordinator InitProducerId AddPartitionsToTxn "
    "AddOffsetsToTxn EndTxn"
)

_RETRIED_APIS = frozenset(_RETRIED_API_NAMES.split())

_SETTERS = frozenset({"AlterConfigs", "IncrementalAlterConfigs"})

_ERRORS = frozenset({Role.ERROR})

SENT_BY_BROKERS = "is traffic between brokers"
UNDECLARED_NULL = "has a null, or gets one, in a field that is not nullable"

_REASONS = {
    Exclusion.BETWEEN_BROKERS: SENT_BY_BROKERS,
    Exclusion.TELEMETRY: "is telemetry",
    Exclusion.AUTHENTICATION: "belongs to the authentication of the captured client",
    Exclusion.CHANGING: "destroys or reconfigures, and is not allowed",
}


def exclusion_of(api: str) -> Exclusion | None:
    """Return why an API is not sent by default; None if it is sent."""
    return _EXCLUSION_OF.get(api)


def allowed_apis(names: Collection[str]) -> frozenset[str]:
    """
    Return API names in their usual spelling, in any case.

    Raises:
        UsageError: The API does not exist, or is always or never sent.
    """
    for name in names:
        if name.lower() not in _ALLOWABLE:
            is_api = name.lower() in (each.lower() for each in NAMES.values())
            what = "needs no permission or never gets it" if is_api else "is no API"
            raise UsageError(f"{name!r} can not be allowed: it {what}")
    return frozenset(_ALLOWABLE[name.lower()] for name in names)


def is_handshake(message: Message) -> bool:
    """Return whether a request may begin connections of both clients and brokers."""
    api = message.api or ""
    return api == "ApiVersions" or exclusion_of(api) is Exclusion.AUTHENTICATION


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
        return SENT_BY_BROKERS
    kind = exclusion_of(api)
    if kind is not None and api not in allow:
        return _REASONS[kind]
    if message.body is None:
        why = f": {message.problems[0].what}" if message.problems else ""
        return "can not be decoded" + why
    if message.is_assumed:
        return f"version {message.shown_version} of {api} is unknown, so it is not sent"
    return ""


def provided_prerequisites(message: Message, response: Message | None) -> frozenset[str]:
    """
    Return the prerequisites missing without a request that destroys or reconfigures.

    Returns:
        The name of its API, with each setting that it changes; empty without a change.
    """
    api, body = message.api or "", message.body
    if exclusion_of(api) is not Exclusion.CHANGING or (
        body is not None and body.get("validate_only")
    ):
        return frozenset()
    errors = _errors(response)
    if errors and 0 not in errors:
        return frozenset()
    if api not in _SETTERS or body is None:
        return frozenset({api})
    return frozenset(
        setting_prerequisite(api, each.name) for of in body.resources for each in of.configs
    )


def setting_prerequisite(api: str, setting: str) -> str:
    """Return the prerequisite that a setting provides."""
    return f"{api} of {setting}"


def _errors(response: Message | None) -> set[int]:
    """Return the error codes of a response, 0 for success."""
    if response is None or response.body is None or response.schema is None:
        return set()
    places = walk(response.schema, response.api_version or 0, response.body, _ERRORS)
    return {place.value for place in places}


def why_not_ready(api: str, response: Message | None, is_logged: bool = False) -> str:
    """
    Return why a request is left out because of its response; empty if it is sent.

    A request refused only temporarily changed nothing, and the client retried it. A target that is
    ready would execute it at once, and the retry again.

    Args:
        api: The API of the request.
        response: Its response; None if none was captured.
        is_logged: Whether they are of a request log, which has no records.
    """
    if is_logged and api == "Produce" and not are_synthetic():
        return WITHOUT_RECORDS
    return _why_refused(_NOT_READY_ERRORS, _errors(response)) if api in _RETRIED_APIS else ""


def why_partition_was_new(api: str, response: Message | None) -> str:
    """
    Return why a Produce request is left out if a captured retry succeeded; empty if it is sent.

    Its partition may be so new that the leader, or another replica, did not know it yet. The
    target's brokers do, because the replay waits for that, and would append the records twice.
    """
    return _why_refused(_NEW_PARTITION_ERRORS, _errors(response)) if api == "Produce" else ""


def _why_refused(momentary: frozenset[int | None], errors: set[int]) -> str:
    if not errors or not errors <= momentary:
        return ""
    return f"was refused temporarily ({error_name(min(errors))}), and retried"
