"""Rules X05, X06, X08, X10 and X11: fetch sessions, response times, timestamps, replicas."""

from __future__ import annotations

import numpy as np

from conform.evidence.fetch_history import (
    FIRST_WITH_SESSIONS,
    LAST_EPOCH,
    fetch_request_of,
    offsets_in,
    partitions_of,
)
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import (
    Rest,
    Screen,
    Shape,
    none_judged,
    request_judged,
)
from conform.registry.screened_columns import Bools, Ints, ScreenedPartitions, ScreenedRows
from conform.registry.single_values import NO_REPLICA
from conform.registry.usual_values import (
    is_answered_fetch,
    not_throttled,
    usual_results,
)
from dissector.protocol.headers import FETCH

_WRONG_EPOCH = 71
_MARGIN_MS = 1000
"""Tolerance beyond max_wait_ms."""

_SPECIAL_TIMESTAMPS = {-1: 0, -2: 0, -3: 7, -4: 8, -5: 9, -6: 11}
"""Special ListOffsets timestamps -> first version with them."""

_NOT_FOR_REPLICAS = ("Produce", "JoinGroup", "OffsetCommit", "ConsumerGroupHeartbeat")


def _continuing(partitions: ScreenedPartitions) -> Ints:
    """Count the requests that continue a session."""
    return partitions.sessions.is_incremental.astype(np.int64)


def _continued(partitions: ScreenedPartitions) -> Ints:
    """Count the responses in a session that continues."""
    sessions = partitions.sessions
    counts: Ints = (sessions.is_incremental & (sessions.answered_id != 0)).astype(np.int64)
    return counts


@rule(
    "X05",
    "Fetch session epochs do not increase by one",
    Severity.ERROR,
    source="FetchMetadata.java (nextEpoch), FetchSession.scala (newContext): "
    "INVALID_FETCH_SESSION_EPOCH (71); KIP-227",
    asks="After a full request with epoch 0, the requests of the session have the epochs 1, 2, 3 "
    "and so on; 1 follows 2147483647. The broker rejects any other epoch, and responds in the "
    "requested session.",
    example="epochs 1, 2, 4 in one session",
    apis=("Fetch",),
    screen=Screen(
        none_judged,
        limits=usual_results,
        rows=is_answered_fetch,
        in_session=True,
        count=_continuing,
    ),
)
def check_epochs(observation: Observation, reporter: Reporter) -> None:
    """Compare the epoch of a request with the expected one, and the response with both."""
    if (observation.version or 0) < FIRST_WITH_SESSIONS:
        return
    fetch_request = fetch_request_of(observation)
    if fetch_request is not None and fetch_request.is_full:
        return
    reason = observation.unreadable_reason() or observation.connection.gap_reason
    if fetch_request is None or reason:
        reporter.count_unjudged(reason)
        return
    if fetch_request.session is None:
        reporter.count_unjudged("the beginning of the fetch session is not in the capture")
        return
    response = observation.response_body
    assert response is not None
    reporter.count_judged()
    epoch, expected, error = (
        fetch_request.session_epoch,
        fetch_request.session.epoch,
        response.error_code,
    )
    if epoch != expected and error == _WRONG_EPOCH:
        reporter.report_violation(
            Side.CLIENT, f"epoch {epoch}, expected {expected}", path="session_epoch"
        )
    elif epoch != expected and not error:
        found = f"epoch {epoch} is accepted, expected {expected}"
        reporter.report_violation(Side.BROKER, found, path="session_id")
    elif epoch == expected and error == _WRONG_EPOCH and expected != LAST_EPOCH:
        found = f"the expected epoch {epoch} is rejected"
        reporter.report_violation(Side.BROKER, found, path="error_code", severity=Severity.WARNING)
    elif not error and response.session_id not in (0, fetch_request.session_id):
        found = f"session {fetch_request.session_id} gets a response of {response.session_id}"
        reporter.report_violation(Side.BROKER, found, path="session_id")


@rule(
    "X06",
    "Unchanged partition in an incremental Fetch response",
    Severity.WARNING,
    source="FetchSession.scala (CachedPartition.maybeUpdateResponseData); KIP-227",
    asks="A response in a session contains a partition only if it has records or an error, or if "
    "its high watermark, log start or preferred replica changed since it was last returned.",
    example="the same high watermark again, without records",
    apis=("Fetch",),
    screen=Screen(
        none_judged,
        limits=usual_results,
        rows=is_answered_fetch,
        in_session=True,
        count=_continued,
    ),
)
def check_unchanged_partitions_omitted(observation: Observation, reporter: Reporter) -> None:
    """Report unchanged partitions in an incremental response."""
    fetch_request = fetch_request_of(observation)
    session = None if fetch_request is None else fetch_request.session
    if session is None or observation.unreadable_reason():
        return
    response = observation.response_body
    assert response is not None
    if response.error_code or not response.session_id:
        return
    if reason := observation.missing_records_reason:
        reporter.count_unjudged(reason)
        return
    reporter.count_judged()
    for key, partition in partitions_of(response.responses):
        is_new = (
            partition.records
            or partition.error_code
            or partition.get("preferred_read_replica", -1) != -1
        )
        if (
            is_new
            or _has_epoch_or_snapshot(partition)
            or session.offsets_in_responses.get(key) != offsets_in(partition)
        ):
            continue
        found = f"'{key[0]}', partition {key[1]}, is returned again unchanged"
        reporter.report_violation(Side.BROKER, found, path="responses")


def _has_epoch_or_snapshot(partition: object) -> bool:
    """Return whether a response has a diverging epoch or a snapshot id for a replica."""
    for name in ("diverging_epoch", "snapshot_id"):
        value = getattr(partition, name, None)
        if value is not None and (value.epoch, value.end_offset) != (-1, -1):
            return True
    return False


class _LateResponse:
    """A late Fetch response that is not yet reported."""

    def __init__(self) -> None:
        self.late: tuple[Observation, str] | None = None

    def report(self, observation: Observation, reporter: Reporter) -> None:
        """Report the late response once a later request proves that it did not arrive sooner."""
        late, self.late = self.late, None
        if late is None or observation.exchange.request_packet is None:
            return
        if observation.exchange.request_packet > (late[0].exchange.response_packet or 0):
            reporter.report_violation(Side.BROKER, late[1], retained=late[0])


def _is_soon(rows: ScreenedRows) -> Bools:
    """Let exchanges pass but Fetch that took longer than the tolerance."""
    took_ms = (rows.table.response.time_ns - rows.table.request.time_ns) // 1_000_000
    is_soon: Bools = took_ms <= _MARGIN_MS
    return ~rows.is_of(FETCH) | ~rows.has_response | is_soon


def _answered_fetch_judged(shape: Shape) -> int:
    return int(shape.api_key == FETCH and shape.response is not None)


def _fetch_unjudged(api_key: int) -> int:
    return int(api_key == FETCH)


@rule(
    "X08",
    "Fetch response later than max_wait_ms",
    Severity.WARNING,
    source="DelayedFetch.scala: the operation ends after max_wait_ms; a broker guarantees nothing "
    "about its own processing time",
    asks=f"The response follows within max_wait_ms, the throttle time and {_MARGIN_MS} ms after "
    "the request, or after the previous response if that was later.",
    example="max_wait_ms 500, response after 9 seconds",
    screen=Screen(
        _answered_fetch_judged,
        limits=not_throttled,
        rows=_is_soon,
        rest=Rest(_LateResponse),
        unjudged=_fetch_unjudged,
    ),
)
def check_response_in_time(observation: Observation, reporter: Reporter) -> None:
    """Check the duration of a Fetch, from the request or the previous response if later."""
    state = observation.connection.state(_LateResponse)
    state.report(observation, reporter)
    observation.connection.set_rest(_LateResponse, True)
    response_ns, request_ns = (
        observation.exchange.response_time_ns,
        observation.exchange.request_time_ns,
    )
    if (
        observation.exchange.api != "Fetch"
        or response_ns is None
        or request_ns is None
        or observation.unreadable_reason(response=False)
    ):
        return
    if observation.connection.incomplete_reason:
        reporter.count_unjudged(observation.connection.incomplete_reason)
        return
    assert observation.request_body is not None
    reporter.count_judged()
    took_ms = (response_ns - max(request_ns, observation.connection.last_response_ns)) // 1_000_000
    response, max_wait_ms = observation.response_body, observation.request_body.max_wait_ms
    throttled_ms = 0 if response is None else response.get("throttle_time_ms", 0)
    if took_ms > max_wait_ms + throttled_ms + _MARGIN_MS:
        found = f"answered after {took_ms} ms, max_wait_ms was {max_wait_ms}"
        state.late = observation.detach(), found
        observation.connection.set_rest(_LateResponse, False)


@rule(
    "X10",
    "Special timestamp in a version that does not define it",
    Severity.ERROR,
    source="ListOffsetsRequest.java (the constants), ListOffsetsRequest.json; KafkaApis.scala: "
    "UNSUPPORTED_VERSION; KIP-734, KIP-405, KIP-1005, KIP-1023",
    asks="A negative timestamp is -1 (latest) or -2 (earliest), from v7 on also -3 (of the "
    "greatest timestamp), from v8 on -4 (earliest local), from v9 on -5 (latest tiered), from v11 "
    "on -6 (earliest pending upload).",
    example="timestamp -3 in ListOffsets v6",
    apis=("ListOffsets",),
)
def check_timestamps_known(observation: Observation, reporter: Reporter) -> None:
    """Check timestamps below 0 against the version."""
    if reason := observation.unreadable_reason(response=False):
        reporter.count_unjudged(reason)
        return
    assert observation.request_body is not None
    version = observation.version or 0
    for topic_index, topic in enumerate(observation.request_body.topics or ()):
        for partition_index, partition in enumerate(topic.partitions or ()):
            reporter.count_judged()
            timestamp = partition.timestamp
            first_version = _SPECIAL_TIMESTAMPS.get(timestamp)
            if timestamp < 0 and (first_version is None or version < first_version):
                path = f"topics[{topic_index}].partitions[{partition_index}].timestamp"
                reporter.report_violation(
                    Side.CLIENT, f"timestamp {timestamp} in v{version}", path=path
                )


class _Roles:
    """Roles on a connection: replica id, and use by a consumer or another client."""

    def __init__(self) -> None:
        self.replica: int | None = None
        self.has_client_requests = False


def _is_no_replica(partitions: ScreenedPartitions) -> Bools:
    """Let all pass but replicas."""
    return ~partitions.sessions.is_replica


@rule(
    "X11",
    "Client requests on a connection that fetches as a replica",
    Severity.WARNING,
    source="FetchRequest.java (isValidBrokerId, isConsumer); a fetch as a replica needs "
    "CLUSTER_ACTION; KIP-903",
    asks="A connection with fetches of a replica id of 0 or more belongs to a broker: it carries "
    "no consumer fetches, no Produce and no requests of group members.",
    example="a Fetch with replica_id 1, and a JoinGroup, on one connection",
    apis=("Fetch", *_NOT_FOR_REPLICAS),
    screen=Screen(request_judged, partitions=_is_no_replica, rest=Rest(_Roles, begins=False)),
)
def check_replicas_are_brokers(observation: Observation, reporter: Reporter) -> None:
    """Record the roles on a connection; report a replica's Fetch next to requests of clients."""
    if observation.unreadable_reason(response=False):
        return
    roles = observation.connection.state(_Roles)
    if observation.exchange.api != "Fetch":
        roles.has_client_requests = True
    else:
        replica = observation.replica_id
        if replica < 0:
            roles.has_client_requests |= replica == NO_REPLICA
        else:
            roles.replica = replica
    reporter.count_judged()
    if roles.replica is not None and roles.has_client_requests:
        roles.has_client_requests = False
        found = f"replica {roles.replica} fetches on a connection of a client"
        reporter.report_violation(Side.CLIENT, found)
    is_client = roles.replica is None and roles.has_client_requests
    observation.connection.set_rest(_Roles, is_client)
