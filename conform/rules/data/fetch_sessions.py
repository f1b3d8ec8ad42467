"""X, second part: fetch sessions, response times, ListOffsets timestamps, replicas."""

from __future__ import annotations

from conform.evidence.fetch_history import (
    FIRST_WITH_SESSIONS,
    LAST_EPOCH,
    PartitionOffsets,
    fetch_request_of,
    partitions_of,
    replica_id_of,
)
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule

_WRONG_EPOCH = 71
_MARGIN_MS = 1000
"""Tolerance beyond max_wait_ms."""

_CONSUMER = -1
_SPECIAL_TIMESTAMPS = {-1: 0, -2: 0, -3: 7, -4: 8, -5: 9, -6: 11}
"""Special ListOffsets timestamps -> first version with them."""

_NOT_FOR_REPLICAS = ("Produce", "JoinGroup", "OffsetCommit", "ConsumerGroupHeartbeat")


@rule(
    "X05",
    "Epochs of a fetch session go up by one",
    Severity.ERROR,
    source="FetchMetadata.java (nextEpoch), FetchSession.scala (newContext): "
    "INVALID_FETCH_SESSION_EPOCH (71); KIP-227",
    asks="After a full request with epoch 0 the requests of its session have the epochs 1, 2, 3 "
    "and so on; after 2147483647 comes 1. The broker refuses any other, and answers in the "
    "session that was asked.",
    example="epochs 1, 2, 4 in one session",
    apis=("Fetch",),
)
def epochs_go_up(turn: Observation, say: Reporter) -> None:
    """Compare the epoch of a request with the expected one, and the response with both."""
    if (turn.version or 0) < FIRST_WITH_SESSIONS:
        return
    fetching = fetch_request_of(turn)
    if fetching is not None and fetching.is_full:
        return
    if fetching is None or turn.unreadable_reason() or turn.connection.gap_reason:
        say.count_unjudged(turn.unreadable_reason() or turn.connection.gap_reason)
        return
    assert turn.response_body is not None
    if fetching.session is None:
        say.count_unjudged("the beginning of the fetch session is not in the capture")
        return
    say.count_judged()
    epoch, due, error = (
        fetching.session_epoch,
        fetching.session.epoch,
        turn.response_body.error_code,
    )
    if epoch != due and error == _WRONG_EPOCH:
        say.report_violation(
            Side.CLIENT, f"epoch {epoch}, where {due} is due", path="session_epoch"
        )
    elif epoch != due and not error:
        found = f"epoch {epoch} is taken, where {due} is due"
        say.report_violation(Side.BROKER, found, path="session_id")
    elif epoch == due and error == _WRONG_EPOCH and due != LAST_EPOCH:
        found = f"epoch {epoch} is refused, which is due"
        say.report_violation(Side.BROKER, found, path="error_code", severity=Severity.WARNING)
    elif not error and turn.response_body.session_id not in (0, fetching.session_id):
        found = f"session {fetching.session_id} is answered as {turn.response_body.session_id}"
        say.report_violation(Side.BROKER, found, path="session_id")


@rule(
    "X06",
    "An incremental answer leaves out what did not change",
    Severity.WARNING,
    source="FetchSession.scala (CachedPartition.maybeUpdateResponseData); KIP-227",
    asks="An answer in a session tells of a partition only if it has records or an error, or its "
    "high watermark, its log start or its preferred replica changed since it was last told.",
    example="the same high watermark again, without records",
    apis=("Fetch",),
)
def unchanged_partitions_omitted(turn: Observation, say: Reporter) -> None:
    """Report unchanged partitions in an incremental response."""
    fetching = fetch_request_of(turn)
    if (
        turn.unreadable_reason()
        or fetching is None
        or fetching.session is None
        or turn.response_body is None
    ):
        return
    if turn.response_body.error_code or not turn.response_body.session_id:
        return
    say.count_judged()
    for key, each in partitions_of(turn.response_body.responses):
        news = each.records or each.error_code or each.get("preferred_read_replica", -1) != -1
        if (
            news
            or _has_epoch_or_snapshot(each)
            or fetching.session.offsets_in_responses.get(key) != PartitionOffsets.of(each)
        ):
            continue
        found = f"'{key[0]}', partition {key[1]}, is told again without any news"
        say.report_violation(Side.BROKER, found, path="responses")


def _has_epoch_or_snapshot(partition: object) -> bool:
    """Return whether a response has a diverging epoch or a snapshot id for a replica."""
    for name in ("diverging_epoch", "snapshot_id"):
        told = getattr(partition, name, None)
        if told is not None and (told.epoch, told.end_offset) != (-1, -1):
            return True
    return False


class _ResponseTimes:
    """Completion time of a connection's last response, and a late Fetch not yet reported."""

    def __init__(self) -> None:
        self.last_ns = 0
        self.late: tuple[Observation, str] | None = None

    def report_late(self, turn: Observation, say: Reporter) -> None:
        """Report the late response once a later request proves that it did not arrive sooner."""
        late, self.late = self.late, None
        if late is None or turn.exchange.request_packet is None:
            return
        if turn.exchange.request_packet > (late[0].exchange.response_packet or 0):
            say.report_violation(Side.BROKER, late[1], retained=late[0])


@rule(
    "X08",
    "An answer does not wait longer than it was told to",
    Severity.WARNING,
    source="DelayedFetch.scala: the operation ends after max_wait_ms; how long a broker takes "
    "besides is nobody's promise",
    asks=f"A Fetch is answered within max_wait_ms and {_MARGIN_MS} ms, counted from the request, "
    "or from the answer before it, if that came later.",
    example="max_wait_ms 500, answered after 9 seconds",
)
def response_in_time(turn: Observation, say: Reporter) -> None:
    """Check the duration of a Fetch, from the request or the previous response if later."""
    answers = turn.connection.state(_ResponseTimes)
    answers.report_late(turn, say)
    done, begun = turn.exchange.response_time_ns, turn.exchange.request_time_ns
    before = answers.last_ns
    if done is not None:
        answers.last_ns = max(before, done)
    if turn.exchange.api != "Fetch" or done is None or begun is None or turn.request_body is None:
        return
    if turn.connection.incomplete_reason:
        say.count_unjudged(turn.connection.incomplete_reason)
        return
    say.count_judged()
    took_ms = (done - max(begun, before)) // 1_000_000
    throttled_ms = (
        0 if turn.response_body is None else turn.response_body.get("throttle_time_ms", 0)
    )
    if took_ms > turn.request_body.max_wait_ms + throttled_ms + _MARGIN_MS:
        found = f"answered after {took_ms} ms, max_wait_ms was {turn.request_body.max_wait_ms}"
        answers.late = turn.detach(), found


@rule(
    "X10",
    "Special timestamps only in versions that know them",
    Severity.ERROR,
    source="ListOffsetsRequest.java (the constants), ListOffsetsRequest.json; KafkaApis.scala: "
    "UNSUPPORTED_VERSION; KIP-734, KIP-405, KIP-1005, KIP-1023",
    asks="A timestamp below 0 is -1 (latest) or -2 (earliest), from v7 on also -3 (of the greatest "
    "timestamp), from v8 on -4 (earliest local), from v9 on -5 (latest tiered), from v11 on -6 "
    "(earliest pending upload).",
    example="timestamp -3 in ListOffsets v6",
    apis=("ListOffsets",),
)
def timestamps_known(turn: Observation, say: Reporter) -> None:
    """Check timestamps below 0 against the version."""
    if why := turn.unreadable_reason(response=False):
        say.count_unjudged(why)
        return
    assert turn.request_body is not None
    version = turn.version or 0
    for index, topic in enumerate(turn.request_body.topics or ()):
        for number, each in enumerate(topic.partitions or ()):
            say.count_judged()
            time = each.timestamp
            first = _SPECIAL_TIMESTAMPS.get(time)
            if time < 0 and (first is None or version < first):
                path = f"topics[{index}].partitions[{number}].timestamp"
                say.report_violation(Side.CLIENT, f"timestamp {time} in v{version}", path=path)


class _Roles:
    """Roles on a connection: replica id, and use by a consumer or another client."""

    def __init__(self) -> None:
        self.replica: int | None = None
        self.is_consumer = False


@rule(
    "X11",
    "Only brokers fetch as replicas",
    Severity.WARNING,
    source="FetchRequest.java (isValidBrokerId, isConsumer); a fetch as a replica needs "
    "CLUSTER_ACTION; KIP-903",
    asks="A connection on which a replica id of 0 or more fetches is one of a broker: nobody "
    "fetches as a consumer, produces, or joins a group on it.",
    example="a Fetch with replica_id 1, and a JoinGroup, on one connection",
    apis=("Fetch", *_NOT_FOR_REPLICAS),
)
def replicas_are_brokers(turn: Observation, say: Reporter) -> None:
    """Record the roles on a connection; report a replica's Fetch beside requests of clients."""
    if turn.request_body is None:
        return
    roles = turn.connection.state(_Roles)
    if turn.exchange.api != "Fetch":
        roles.is_consumer = True
    else:
        replica = replica_id_of(turn.request_body)
        if replica < 0:
            roles.is_consumer |= replica == _CONSUMER
        else:
            roles.replica = replica
    say.count_judged()
    if roles.replica is not None and roles.is_consumer:
        roles.is_consumer = False
        found = f"replica {roles.replica} fetches on a connection of a client"
        say.report_violation(Side.CLIENT, found)
