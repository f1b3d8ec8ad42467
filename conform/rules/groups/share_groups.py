"""Rules H: share groups: members acquire and acknowledge single records (KIP-932)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.rules.groups.consumer_groups import judge_heartbeat
from dissector.protocol.records import RecordBatch

_INITIAL_EPOCH, _FINAL_EPOCH = 0, -1
"""Epochs of joining and leaving members, and of beginning and ending share sessions."""

_LAST_EPOCH = 2**31 - 1
_LAST_TYPE_WITH_RENEW, _LAST_TYPE = 4, 3
_FIRST_WITH_RENEW = 2
_MAX_RANGES = 50_000
_MAX_RANGES_PER_PARTITION = 1_000
"""Limit of the retained record ranges of one partition."""

_SESSION_APIS = ("ShareFetch", "ShareAcknowledge")

GroupPartition: TypeAlias = tuple[str, Any, int]
"""Group, id of the topic, and partition."""


@rule(
    "H01",
    "Invalid heartbeat of a share group member, or a wrong response",
    Severity.ERROR,
    source="KIP-932; GroupMetadataManager.throwIfShareGroupHeartbeatRequestIsInvalid, "
    "throwIfShareGroupMemberEpochIsInvalid: INVALID_REQUEST, so a warning where it is rejected",
    asks="Epoch 0 joins, with a member id and topics; -1 leaves; other negative epochs are "
    "invalid. The response contains an epoch above 0 that does not decrease, or -1 for a member "
    "that leaves.",
    example="epoch -2 in ShareGroupHeartbeat",
    apis=("ShareGroupHeartbeat",),
)
def check_share_group_epochs(observation: Observation, reporter: Reporter) -> None:
    """Check a heartbeat request and its response."""
    judge_heartbeat(observation, reporter, _invalid_field)


def _invalid_field(request: Any, version: int) -> tuple[str, str]:
    """Return the invalid field of a request and a description; both empty if it is valid."""
    if request.member_epoch < _FINAL_EPOCH:
        return "member_epoch", f"epoch {request.member_epoch}"
    if not request.member_id and (request.member_epoch != _INITIAL_EPOCH or version > 0):
        return "member_id", "no member id"
    if not request.group_id:
        return "group_id", "no group"
    if request.member_epoch == _INITIAL_EPOCH and not request.subscribed_topic_names:
        return "subscribed_topic_names", "joins without topics"
    return "", ""


MemberKey: TypeAlias = tuple[str, str, str]
"""Broker address, group and member id: a member may continue on another connection."""


def _member_key(observation: Observation, request: Any) -> MemberKey:
    return observation.connection.broker.address, request.group_id or "", request.member_id or ""


class _Sessions(BoundedDict[MemberKey, tuple[int, int]]):
    """The next epoch of each member, and the time of the last response."""


@rule(
    "H02",
    "Share session epochs do not increase by one",
    Severity.ERROR,
    source="KIP-932; ShareSessionCache, SharePartitionManager.newContext: "
    "INVALID_SHARE_SESSION_EPOCH (123), SHARE_SESSION_NOT_FOUND (122); ShareFetch with epoch 0 and "
    "acknowledgements is an INVALID_REQUEST",
    asks="ShareFetch begins a session with epoch 0 and without acknowledgements; ShareFetch and "
    "ShareAcknowledge continue it with 1, 2, 3 and so on, and end it with -1.",
    example="epochs 0, 1, 3 in one session",
    apis=_SESSION_APIS,
)
def check_session_epochs(observation: Observation, reporter: Reporter) -> None:
    """Compare the epoch of a request with the expected one."""
    request, response = observation.request_body, observation.response_body
    sessions = observation.capture_state.state(_Sessions)
    if request is None or response is None or observation.capture_state.incomplete_reason:
        reporter.count_unjudged(
            observation.unreadable_reason() or observation.capture_state.incomplete_reason
        )
        sessions.clear()
        return
    key = _member_key(observation, request)
    epoch, expected = request.share_session_epoch, sessions.pop(key, None)
    is_accepted = not response.error_code
    if epoch < _FINAL_EPOCH:
        reporter.count_judged()
        side = Side.BROKER if is_accepted else Side.CLIENT
        reporter.report_violation(side, f"session epoch {epoch}", path=_epoch_path(side))
        return
    if epoch == _INITIAL_EPOCH:
        reporter.count_judged()
        found = ""
        if observation.exchange.api == "ShareAcknowledge":
            found = "ShareAcknowledge begins a session"
        elif any(batches for _, batches in _acknowledgements(request)):
            found = "the request that begins a session acknowledges records"
        if found:
            severity = None if is_accepted else Severity.WARNING
            reporter.report_violation(
                Side.CLIENT, found, path="share_session_epoch", severity=severity
            )
            if is_accepted:
                reporter.report_violation(
                    Side.BROKER, f"answered with error 0: {found}", path="error_code"
                )
    elif (
        expected is not None
        and expected[1] < (observation.exchange.request_time_ns or 0)
        and epoch != _FINAL_EPOCH
    ):
        reporter.count_judged()
        if epoch != expected[0]:
            found = f"epoch {epoch}, expected {expected[0]}"
            if is_accepted:
                found = f"epoch {epoch} is accepted, expected {expected[0]}"
            side = Side.BROKER if is_accepted else Side.CLIENT
            reporter.report_violation(side, found, path=_epoch_path(side))
    if is_accepted and epoch != _FINAL_EPOCH:
        next_epoch = 1 if epoch == _LAST_EPOCH else epoch + 1
        sessions[key] = next_epoch, observation.exchange.response_time_ns or 0


def _epoch_path(side: Side) -> str:
    """Return the path of the field that shows a wrong epoch."""
    return "error_code" if side is Side.BROKER else "share_session_epoch"


def _acknowledgements(request: Any) -> Iterator[tuple[tuple[Any, int, str], Any]]:
    """Yield the acknowledgement batches of a request, with topic id, partition and path."""
    for topic_index, topic in enumerate(request.topics or ()):
        for partition_index, partition in enumerate(topic.partitions or ()):
            path = f"topics[{topic_index}].partitions[{partition_index}].acknowledgement_batches"
            yield (
                (topic.topic_id, partition.partition_index, path),
                partition.acknowledgement_batches or (),
            )


@rule(
    "H03",
    "Invalid acknowledgement batches",
    Severity.ERROR,
    source="KIP-932; KafkaApis.validateAcknowledgementBatches: INVALID_REQUEST",
    asks="Each acknowledgement batch ends at or after its beginning, begins after the previous "
    "one, and has one type, or one for each offset; types are 0 to 3, from v2 on also 4.",
    example="first_offset 9, last_offset 5",
    apis=_SESSION_APIS,
)
def check_valid_acknowledgements(observation: Observation, reporter: Reporter) -> None:
    """Check the order and the types of the acknowledgements in a request."""
    request = observation.request_body
    if request is None:
        reporter.count_unjudged(observation.unreadable_reason(response=False))
        return
    max_type = (
        _LAST_TYPE_WITH_RENEW if (observation.version or 0) >= _FIRST_WITH_RENEW else _LAST_TYPE
    )
    for (_, _, path), batches in _acknowledgements(request):
        if not batches:
            continue
        reporter.count_judged()
        found = _order_fault(batches)
        for batch in batches:
            types = batch.acknowledge_types or ()
            count = batch.last_offset - batch.first_offset + 1
            if not found and len(types) not in (1, count):
                found = f"{len(types)} types for {count} records"
            elif not found and any(not 0 <= kind <= max_type for kind in types):
                found = f"type {max(types, key=abs)} in v{observation.version}"
        if found:
            reporter.report_violation(Side.CLIENT, found, path=path)


def _order_fault(ranges: Any) -> str:
    """Return the first error in the order of offset ranges; empty: empty without one."""
    for each in ranges:
        if each.last_offset < each.first_offset:
            return f"a range from {each.first_offset} to {each.last_offset}"
    for previous, current in pairwise(ranges):
        if current.first_offset <= previous.last_offset:
            return f"a range from {current.first_offset} on follows one to {previous.last_offset}"
    return ""


@rule(
    "H04",
    "Acquired records outside the returned records",
    Severity.ERROR,
    source="KIP-932; SharePartition.acquire, ShareFetchUtils.processFetchResponse",
    asks="The ranges of acquired records are in order, have a delivery count of at least 1, and "
    "lie within the batches that are returned with them.",
    example="offsets 10 to 19 are acquired, the returned records end at 14",
    apis=("ShareFetch",),
)
def check_acquired_within_records(observation: Observation, reporter: Reporter) -> None:
    """Compare the acquired ranges with the returned records."""
    response = observation.response_body
    if response is None:
        reporter.count_unjudged(observation.unreadable_reason(request=False))
        return
    if reason := observation.missing_records_reason:
        reporter.count_unjudged(reason)
        return
    fields = {
        field.path: field
        for message, field in observation.record_fields
        if message is observation.response
    }
    for topic_index, topic in enumerate(response.responses or ()):
        for partition_index, partition in enumerate(topic.partitions or ()):
            ranges = partition.acquired_records or ()
            if not ranges:
                continue
            reporter.count_judged()
            path = f"responses[{topic_index}].partitions[{partition_index}]"
            found = _order_fault(ranges)
            if not found and any(acquired.delivery_count < 1 for acquired in ranges):
                found = f"delivery count {min(acquired.delivery_count for acquired in ranges)}"
            field = fields.get(f"{path}.records")
            batches = [b for b in field.batches if isinstance(b, RecordBatch)] if field else []
            if not found and not batches:
                found = f"{len(ranges)} ranges are acquired, no records are returned"
            elif not found:
                first = batches[0].base_offset
                last = batches[-1].base_offset + batches[-1].last_offset_delta
                if ranges[0].first_offset < first or ranges[-1].last_offset > last:
                    found = (
                        f"offsets {ranges[0].first_offset} to {ranges[-1].last_offset} are "
                        f"acquired, {first} to {last} are returned"
                    )
            if found:
                reporter.report_violation(Side.BROKER, found, path=f"{path}.acquired_records")


class _Delivered(BoundedDict[tuple[str, GroupPartition], "deque[tuple[int, int, int, int]]"]):
    """By broker and partition, the delivered ranges with delivery count and response time."""

    def __init__(self) -> None:
        super().__init__(_MAX_RANGES // _MAX_RANGES_PER_PARTITION)


@rule(
    "H05",
    "Delivery count of a redelivered record does not increase",
    Severity.ERROR,
    source="KIP-932 (delivery count); SharePartition.java (InFlightState.tryUpdateState)",
    asks="Each time that records are acquired again, their delivery count is higher than the last "
    "time: a record with the same count belongs to two members at once.",
    example="offset 7 is acquired twice, each time with delivery count 1",
    apis=("ShareFetch",),
)
def check_delivery_count_increases(observation: Observation, reporter: Reporter) -> None:
    """Compare delivery counts with earlier ones of the same records."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    delivered, broker = (
        observation.capture_state.state(_Delivered),
        observation.connection.broker.address,
    )
    request_ns, response_ns = (
        observation.exchange.request_time_ns or 0,
        observation.exchange.response_time_ns or 0,
    )
    for topic_index, topic in enumerate(response.responses or ()):
        for partition_index, partition in enumerate(topic.partitions or ()):
            partition_key = request.group_id or "", topic.topic_id, partition.partition_index
            ranges = delivered.get((broker, partition_key))
            if ranges is None:
                ranges = delivered[broker, partition_key] = deque(maxlen=_MAX_RANGES_PER_PARTITION)
            for index, acquired in enumerate(partition.acquired_records or ()):
                earlier = [
                    count
                    for first, last, count, delivered_ns in ranges
                    if first <= acquired.last_offset
                    and acquired.first_offset <= last
                    and delivered_ns < request_ns
                ]
                ranges.append(
                    (
                        acquired.first_offset,
                        acquired.last_offset,
                        acquired.delivery_count,
                        response_ns,
                    )
                )
                if not earlier:
                    continue
                reporter.count_judged()
                highest = max(earlier)
                if acquired.delivery_count <= highest:
                    found = f"offset {acquired.first_offset} is delivered again, count {highest}"
                    path = f"responses[{topic_index}].partitions[{partition_index}]"
                    reporter.report_violation(
                        Side.BROKER, found, path=f"{path}.acquired_records[{index}]"
                    )


class _Acquired(BoundedDict[MemberKey, "BoundedDict[GroupPartition, list[tuple[int, int]]]"]):
    """The record ranges that each member acquired since its session began."""


@rule(
    "H06",
    "Acknowledgement of records that were not acquired accepted",
    Severity.ERROR,
    source="SharePartition.acknowledge: INVALID_RECORD_STATE (121)",
    asks="Acknowledgements of offsets that the member never acquired in its session are rejected.",
    example="offsets 100 to 109 are acknowledged with error 0, only 0 to 9 were acquired",
    apis=_SESSION_APIS,
)
def check_acknowledges_acquired(observation: Observation, reporter: Reporter) -> None:
    """Record the ranges that members acquire; compare acknowledgements with them."""
    request, response = observation.request_body, observation.response_body
    acquired = observation.capture_state.state(_Acquired)
    if request is None or response is None or observation.capture_state.incomplete_reason:
        reporter.count_unjudged(
            observation.unreadable_reason() or observation.capture_state.incomplete_reason
        )
        acquired.clear()
        return
    member_key, is_fetch = (
        _member_key(observation, request),
        observation.exchange.api == "ShareFetch",
    )
    if is_fetch and request.share_session_epoch == _INITIAL_EPOCH and not response.error_code:
        acquired[member_key] = BoundedDict(_MAX_RANGES)
    member_ranges = acquired.get(member_key)
    if member_ranges is None:
        reporter.count_unjudged("the beginning of the share session is not in the capture")
        return
    errors = {
        (topic.topic_id, each.partition_index): each.get("acknowledge_error_code", each.error_code)
        for topic in response.responses or ()
        for each in topic.partitions or ()
    }
    for (topic_id, partition, _), batches in _acknowledgements(request):
        ranges = member_ranges.get((member_key[1], topic_id, partition), [])
        is_accepted = not response.error_code and errors.get((topic_id, partition), 1) == 0
        for each in batches if is_accepted else ():
            reporter.count_judged()
            if not any(
                start <= each.last_offset and each.first_offset <= end for start, end in ranges
            ):
                span = f"offsets {each.first_offset} to {each.last_offset}"
                reporter.report_violation(
                    Side.BROKER, f"{span} were never acquired", path="responses"
                )
    for topic in (response.responses or ()) if is_fetch else ():
        for each in topic.partitions or ():
            key = member_key[1], topic.topic_id, each.partition_index
            new = [
                (record_range.first_offset, record_range.last_offset)
                for record_range in each.acquired_records or ()
            ]
            member_ranges[key] = [*member_ranges.get(key, []), *new][-_MAX_RANGES_PER_PARTITION:]
