"""
Retry policy: when to repeat a request because the target is not yet in the captured state.

A client of the target would retry too; the captured state is only reached that way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from enum import StrEnum

from construct import Container

from cluster.client.router import MISROUTED
from cluster.fields.batch_rewriter import batch_headers
from cluster.fields.field_layout import Scope
from cluster.fields.roles import value_walk, walk
from dissector.protocol.apis import api
from dissector.protocol.error_codes import ERRORS, error_code
from dissector.protocol.field_roles import Role
from dissector.protocol.messages import Message
from dissector.protocol.records.layout import CONTROL
from dissector.protocol.schema import Schema
from replay.mapping.id_map import IdMap
from replay.order.exclusion_policy import UNKNOWN_PARTITION_ERRORS, setting_prerequisite
from replay.order.group_order import REBALANCES, count_assigned

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 0.5

RECORDS_PATIENCE_S = 1.0
"""Maximum delay of records of some partitions after the responses of all dependencies."""

_ERRORS = frozenset({Role.ERROR})
_RECORDS = frozenset({Role.RECORDS})

_SETTINGS = {
    "DescribeClientQuotas": "entries",
    "DescribeAcls": "resources",
    "DescribeDelegationToken": "tokens",
    "DescribeUserScramCredentials": "results",
}
"""API that describes settings of the controller -> the array of its response."""

_UNKNOWN_ERRORS = {
    "DescribeUserScramCredentials": {error_code("RESOURCE_NOT_FOUND")},
    "RenewDelegationToken": {error_code("DELEGATION_TOKEN_NOT_FOUND")},
    "ExpireDelegationToken": {error_code("DELEGATION_TOKEN_NOT_FOUND")},
}
"""API -> the errors of a broker that does not know such a setting yet."""


_MEMBER_ID_REQUIRED = error_code("MEMBER_ID_REQUIRED")
_FENCED_SESSIONS = frozenset(
    error_code(name)
    for name in (
        "FETCH_SESSION_ID_NOT_FOUND",
        "INVALID_FETCH_SESSION_EPOCH",
        "FETCH_SESSION_TOPIC_ID_ERROR",
    )
)


_OUT_OF_RANGE = error_code("OFFSET_OUT_OF_RANGE")
"""In a capture from the middle, an offset may be known only when later records are appended."""


class RetryReason(StrEnum):
    """
    The reason for a retry.

    `misrouted`: the broker is not, or no longer, the leader or coordinator. `not_ready`: the target
    reports a retriable error, or still moves replicas. `session`: the target does not know the
    fetch session. `no_records`: partitions with records in the captured response are still empty in
    the live one, or their offset is not known yet.
    `some_records`: only some of these partitions have. `rebalance`: the captured response reports a
    rebalance. `member_id`: JoinGroup must carry the id just assigned. `members`: in the capture,
    more members joined together. `rejoin`: the group rebalances, unlike the captured one.
    `assignment`: the captured response has an assignment, or one of more partitions. `rest`: the
    captured group is stable, and heartbeats bring the live one there. `settings`: the captured
    response has more settings, which reach brokers from their controller. `absent`: a topic or
    partition exists, which reaches brokers in the same way. `offsets`: it has start offsets of a
    share group.
    """

    MISROUTED = "misrouted"
    NOT_READY = "not_ready"
    SESSION = "session"
    NO_RECORDS = "no_records"
    SOME_RECORDS = "some_records"
    REBALANCE = "rebalance"
    MEMBER_ID = "member_id"
    MEMBERS = "members"
    REJOIN = "rejoin"
    ASSIGNMENT = "assignment"
    STABLE_GROUP = "rest"
    SETTINGS = "settings"
    ABSENT = "absent"
    OFFSETS = "offsets"


FutileRetries = set[tuple[int, RetryReason]]
"""API keys and reasons of retries that failed until their deadline."""

_OFFSET_RESET_SETTINGS = frozenset(
    setting_prerequisite(api, "share.auto.offset.reset")
    for api in ("AlterConfigs", "IncrementalAlterConfigs")
)
"""The setting of the start of a share group (KIP-932), by default the end of the log."""

_PROVIDERS = {
    RetryReason.SETTINGS: frozenset(
        {"CreateAcls", "AlterClientQuotas", "AlterUserScramCredentials", "CreateDelegationToken"}
    ),
    RetryReason.ABSENT: frozenset({"CreatePartitions", "DeleteTopics"}),
    RetryReason.OFFSETS: _OFFSET_RESET_SETTINGS | {"AlterShareGroupOffsets"},
    RetryReason.NO_RECORDS: _OFFSET_RESET_SETTINGS,
}
"""
Reason for a retry -> the requests that resolve it. A topic that was not deleted is not created
again either, maybe with more partitions.
"""


def is_in_vain(why: RetryReason, missing: frozenset[str]) -> bool:
    """Return whether a retry is futile because of missing prerequisites (`missing`)."""
    return not missing.isdisjoint(_PROVIDERS.get(why, ()))


def retry_reason(
    api_key: int, captured: Message | None, live: Container, version: int, ids: IdMap
) -> RetryReason | None:
    """
    Return why to retry a request; None if its response is final.

    Args:
        api_key: The API key of the request.
        captured: The captured response; without one, nothing is retried.
        live: The response body of the target.
        version: The version of the live response.
        ids: The id mapping.
    """
    found = api(api_key)
    if found is None or captured is None or captured.body is None:
        return None
    assert captured.api_version is not None
    before = Counter(errors_of(found.response, captured.api_version, captured.body))
    now = Counter(errors_of(found.response, version, live)) - before
    if now:
        return _error_reason(found.name, set(now), ids.is_partial)
    match found.name:
        case "Fetch" | "ShareFetch":
            why = _records_reason(found.response, captured, live, version, ids)
            # Records of a share group are acquired: another request would acquire more.
            return why if why is RetryReason.NO_RECORDS or found.name == "Fetch" else None
        case "Heartbeat" | "SyncGroup":
            is_missing = captured.body.error_code == REBALANCES and not live.error_code
            return RetryReason.REBALANCE if is_missing else None
        case "ConsumerGroupHeartbeat" | "ShareGroupHeartbeat":
            is_new = captured.body.assignment is not None and live.assignment is None
            # A coordinator hands partitions out in steps, as other members release them (KIP-848).
            is_missing = is_new or count_assigned(captured.body) > count_assigned(live)
            return RetryReason.ASSIGNMENT if is_missing and not live.error_code else None
        case "StreamsGroupHeartbeat":
            is_new = captured.body.active_tasks is not None and live.active_tasks is None
            is_missing = is_new or bool(_statuses(live) - _statuses(captured.body))
            return RetryReason.ASSIGNMENT if is_missing and not live.error_code else None
        case "ConsumerGroupDescribe" | "ShareGroupDescribe" | "StreamsGroupDescribe":
            return (
                RetryReason.STABLE_GROUP
                if _transitional_groups(live) > _transitional_groups(captured.body)
                else None
            )
        case "DescribeShareGroupOffsets":
            return (
                RetryReason.OFFSETS
                if _started_partitions(captured.body) > _started_partitions(live)
                else None
            )
        case "ListPartitionReassignments":
            moving = [len(body.topics or ()) for body in (captured.body, live)]
            return RetryReason.NOT_READY if moving[0] < moving[1] else None
        case name if name in _SETTINGS:
            counts = [len(body[_SETTINGS[name]] or ()) for body in (captured.body, live)]
            return RetryReason.SETTINGS if counts[0] > counts[1] else None
    return None


def _statuses(body: Container) -> set[int]:
    """Return the status codes of a streams group."""
    return {each.status_code for each in body.status or ()}


def _transitional_groups(body: Container) -> int:
    """Return the number of groups in a transitional state."""
    return sum(each.group_state in TRANSITIONAL_STATES for each in body.groups)


def _started_partitions(body: Container) -> int:
    """Return the number of share partitions with a start offset."""
    return sum(
        partition.start_offset >= 0
        for group in body.groups
        for topic in group.topics
        for partition in topic.partitions
    )


def _error_reason(name: str, errors: set[int], is_partial: bool) -> RetryReason | None:
    if errors & MISROUTED:
        return RetryReason.MISROUTED
    if name == "Fetch" and errors & _FENCED_SESSIONS:
        return RetryReason.SESSION
    if name == "JoinGroup" and _MEMBER_ID_REQUIRED in errors:
        return RetryReason.MEMBER_ID
    if errors & _UNKNOWN_ERRORS.get(name, set()):
        return RetryReason.SETTINGS
    passing = {each for each in errors if ERRORS.get(each, ("", False))[1]}
    if not passing:
        is_early = name == "Fetch" and is_partial and _OUT_OF_RANGE in errors
        return RetryReason.NO_RECORDS if is_early else None
    return RetryReason.ABSENT if passing <= UNKNOWN_PARTITION_ERRORS else RetryReason.NOT_READY


def errors_of(schema: Schema, version: int, body: Container) -> Iterator[int]:
    """Yield the error codes of a response other than NONE."""
    return value_walk(schema, version, _ERRORS)(body)


def rebalances(schema: Schema, version: int, body: Container) -> bool:
    """Return whether a response has the error REBALANCE_IN_PROGRESS."""
    return REBALANCES in set(errors_of(schema, version, body))


def _records_reason(
    schema: Schema, captured: Message, live: Container, version: int, ids: IdMap
) -> RetryReason | None:
    """Return whether all or some of the partitions with captured records are still empty."""
    assert captured.body is not None
    assert captured.api_version is not None
    expected = _with_records(schema, captured.api_version, captured.body, ids.topic_of)
    present = expected & _with_records(
        schema, version, live, lambda scope: ids.topic_of(ids.captured_scope(scope))
    )
    if expected == present:
        return None
    return RetryReason.SOME_RECORDS if present else RetryReason.NO_RECORDS


def _with_records(
    schema: Schema, version: int, body: Container, topic: Callable[[Scope], str | None]
) -> set[tuple[str | None, int | None]]:
    """Return the partitions of a response with records other than control records."""
    return {
        (topic(place.scope), place.scope.partition)
        for place in walk(schema, version, body, _RECORDS)
        if any(not each.attributes & CONTROL for each in batch_headers(place.value or b""))
    }


TRANSITIONAL_STATES = frozenset({"Assigning", "Reconciling"})
