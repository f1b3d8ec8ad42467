"""H: share groups, whose members take single records and acknowledge them (KIP-932)."""

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

_JOIN_EPOCH, _LEAVE_EPOCH = 0, -1
_LAST_EPOCH = 2**31 - 1
_LAST_TYPE_WITH_RENEW, _LAST_TYPE = 4, 3
_FIRST_WITH_RENEW = 2
_MAX_RANGES = 50_000
_MAX_RANGES_PER_PARTITION = 1_000
"""Ranges of one partition that a member was given."""

_SESSION_APIS = ("ShareFetch", "ShareAcknowledge")

GroupPartition: TypeAlias = tuple[str, Any, int]
"""Group, id of the topic, and partition."""


@rule(
    "H01",
    "A member of a share group must join, stay and leave by its epochs",
    Severity.ERROR,
    source="KIP-932; GroupMetadataManager.throwIfShareGroupHeartbeatRequestIsInvalid, "
    "throwIfShareGroupMemberEpochIsInvalid: INVALID_REQUEST, so a warning where it is refused",
    asks="Epoch 0 joins, with a member id and topics, -1 leaves, others below 0 are none; the "
    "member is told an epoch above 0 that does not go down, or -1 as it leaves.",
    example="epoch -2 in ShareGroupHeartbeat",
    apis=("ShareGroupHeartbeat",),
)
def share_group_epochs(turn: Observation, say: Reporter) -> None:
    """Check a heartbeat request and its response."""
    judge_heartbeat(turn, say, _invalid_field)


def _invalid_field(asked: Any, version: int) -> tuple[str, str]:
    """Return the invalid field of a request and a description; both empty if it is valid."""
    if asked.member_epoch < _LEAVE_EPOCH:
        return "member_epoch", f"epoch {asked.member_epoch}"
    if not asked.member_id and (asked.member_epoch != _JOIN_EPOCH or version > 0):
        return "member_id", "no member id"
    if not asked.group_id:
        return "group_id", "no group"
    if asked.member_epoch == _JOIN_EPOCH and not asked.subscribed_topic_names:
        return "subscribed_topic_names", "joins without topics"
    return "", ""


MemberKey: TypeAlias = tuple[str, str, str]
"""Address of the broker, group and member: a member may go on on another connection."""


def _member_key(turn: Observation, asked: Any) -> MemberKey:
    return turn.connection.broker.address, asked.group_id or "", asked.member_id or ""


class _Sessions(BoundedDict[MemberKey, tuple[int, int]]):
    """The epoch that is due of each member, and when the last was answered."""


@rule(
    "H02",
    "Epochs of a share session must go up by one",
    Severity.ERROR,
    source="KIP-932; ShareSessionCache, SharePartitionManager.newContext: "
    "INVALID_SHARE_SESSION_EPOCH (123), SHARE_SESSION_NOT_FOUND (122); ShareFetch with epoch 0 and "
    "acknowledgements is an INVALID_REQUEST",
    asks="ShareFetch begins a session with epoch 0 and without acknowledgements; ShareFetch and "
    "ShareAcknowledge go on in it with 1, 2, 3 and so on, and end it with -1.",
    example="epochs 0, 1, 3 in one session",
    apis=_SESSION_APIS,
)
def session_epochs(turn: Observation, say: Reporter) -> None:
    """Hold the epoch of a request against the one that is due."""
    asked, told = turn.request_body, turn.response_body
    sessions = turn.capture_state.state(_Sessions)
    if asked is None or told is None or turn.capture_state.incomplete_reason:
        say.count_unjudged(turn.unreadable_reason() or turn.capture_state.incomplete_reason)
        sessions.clear()
        return
    key = _member_key(turn, asked)
    epoch, due = asked.share_session_epoch, sessions.pop(key, None)
    is_taken = not told.error_code
    if epoch < _LEAVE_EPOCH:
        say.count_judged()
        side = Side.BROKER if is_taken else Side.CLIENT
        say.report_violation(side, f"session epoch {epoch}", path=_epoch_path(side))
        return
    if epoch == _JOIN_EPOCH:
        say.count_judged()
        found = ""
        if turn.exchange.api == "ShareAcknowledge":
            found = "a session is begun by ShareAcknowledge"
        elif any(batches for _, batches in _acknowledgements(asked)):
            found = "the request that begins a session acknowledges records"
        if found:
            severity = None if is_taken else Severity.WARNING
            say.report_violation(Side.CLIENT, found, path="share_session_epoch", severity=severity)
            if is_taken:
                say.report_violation(
                    Side.BROKER, f"answered with error 0: {found}", path="error_code"
                )
    elif (
        due is not None and due[1] < (turn.exchange.request_time_ns or 0) and epoch != _LEAVE_EPOCH
    ):
        say.count_judged()
        if epoch != due[0]:
            found = f"epoch {epoch}, where {due[0]} is due"
            if is_taken:
                found = f"epoch {epoch} is taken, where {due[0]} is due"
            side = Side.BROKER if is_taken else Side.CLIENT
            say.report_violation(side, found, path=_epoch_path(side))
    if is_taken and epoch != _LEAVE_EPOCH:
        after = 1 if epoch == _LAST_EPOCH else epoch + 1
        sessions[key] = after, turn.exchange.response_time_ns or 0


def _epoch_path(side: Side) -> str:
    """Return the field that shows a wrong epoch."""
    return "error_code" if side is Side.BROKER else "share_session_epoch"


def _acknowledgements(asked: Any) -> Iterator[tuple[tuple[Any, int, str], Any]]:
    """Yield what a request acknowledges: topic, partition and path, and the batches."""
    for at, topic in enumerate(asked.topics or ()):
        for number, each in enumerate(topic.partitions or ()):
            path = f"topics[{at}].partitions[{number}].acknowledgement_batches"
            yield (topic.topic_id, each.partition_index, path), each.acknowledgement_batches or ()


@rule(
    "H03",
    "Acknowledgements must be ranges, in order, each with its types",
    Severity.ERROR,
    source="KIP-932; KafkaApis.validateAcknowledgementBatches: INVALID_REQUEST",
    asks="Each batch of acknowledgements ends at or behind its beginning, begins behind the one "
    "before it, and has one type, or one for each offset; types are 0 to 3, from v2 on also 4.",
    example="first_offset 9, last_offset 5",
    apis=_SESSION_APIS,
)
def valid_acknowledgements(turn: Observation, say: Reporter) -> None:
    """Look at the acknowledgements of a request."""
    asked = turn.request_body
    if asked is None:
        say.count_unjudged(turn.unreadable_reason(response=False))
        return
    most = _LAST_TYPE_WITH_RENEW if (turn.version or 0) >= _FIRST_WITH_RENEW else _LAST_TYPE
    for (_, _, path), batches in _acknowledgements(asked):
        if not batches:
            continue
        say.count_judged()
        found = _order_fault(batches)
        for each in batches:
            types = each.acknowledge_types or ()
            count = each.last_offset - each.first_offset + 1
            if not found and len(types) not in (1, count):
                found = f"{len(types)} types for {count} records"
            elif not found and any(not 0 <= kind <= most for kind in types):
                found = f"type {max(types, key=abs)} in v{turn.version}"
        if found:
            say.report_violation(Side.CLIENT, found, path=path)


def _order_fault(ranges: Any) -> str:
    """Return what is wrong with the order of ranges of offsets; empty: nothing."""
    for each in ranges:
        if each.last_offset < each.first_offset:
            return f"a range from {each.first_offset} to {each.last_offset}"
    for one, two in pairwise(ranges):
        if two.first_offset <= one.last_offset:
            return f"a range from {two.first_offset} on follows one to {one.last_offset}"
    return ""


@rule(
    "H04",
    "Acquired records must be ranges of the records beside them",
    Severity.ERROR,
    source="KIP-932; SharePartition.acquire, ShareFetchUtils.processFetchResponse",
    asks="The ranges of acquired records are in order, have a delivery count of 1 or more, and lie "
    "within the batches that are given with them.",
    example="offsets 10 to 19 are acquired, the records end at 14",
    apis=("ShareFetch",),
)
def acquired_within_records(turn: Observation, say: Reporter) -> None:
    """Hold the acquired ranges against the records."""
    told = turn.response_body
    if told is None:
        say.count_unjudged(turn.unreadable_reason(request=False))
        return
    fields = {
        field.path: field for message, field in turn.record_fields if message is turn.response
    }
    for at, topic in enumerate(told.responses or ()):
        for number, each in enumerate(topic.partitions or ()):
            ranges = each.acquired_records or ()
            if not ranges:
                continue
            say.count_judged()
            path = f"responses[{at}].partitions[{number}]"
            found = _order_fault(ranges)
            if not found and any(one.delivery_count < 1 for one in ranges):
                found = f"delivery count {min(one.delivery_count for one in ranges)}"
            field = fields.get(f"{path}.records")
            batches = [b for b in field.batches if isinstance(b, RecordBatch)] if field else []
            if not found and not batches:
                found = f"{len(ranges)} ranges are acquired, no records are given"
            elif not found:
                first = batches[0].base_offset
                last = batches[-1].base_offset + batches[-1].last_offset_delta
                if ranges[0].first_offset < first or ranges[-1].last_offset > last:
                    found = (
                        f"offsets {ranges[0].first_offset} to {ranges[-1].last_offset} are "
                        f"acquired, {first} to {last} are given"
                    )
            if found:
                say.report_violation(Side.BROKER, found, path=f"{path}.acquired_records")


class _Delivered(BoundedDict[tuple[str, GroupPartition], "deque[tuple[int, int, int, int]]"]):
    """By broker and place the ranges that were delivered: how often, and when."""

    def __init__(self) -> None:
        super().__init__(_MAX_RANGES // _MAX_RANGES_PER_PARTITION)


@rule(
    "H05",
    "A record that is delivered again must be counted so",
    Severity.ERROR,
    source="KIP-932 (delivery count); SharePartition.java (InFlightState.tryUpdateState)",
    asks="Each time that records are acquired anew, their delivery count is higher than the last "
    "time: a record with the same count belongs to two members at once.",
    example="offset 7 is acquired twice, each time with delivery count 1",
    apis=("ShareFetch",),
)
def delivery_count_increases(turn: Observation, say: Reporter) -> None:
    """Hold delivery counts against those before."""
    asked, told = turn.request_body, turn.response_body
    if asked is None or told is None:
        say.count_unjudged(turn.unreadable_reason())
        return
    known, broker = turn.capture_state.state(_Delivered), turn.connection.broker.address
    sent_ns, told_ns = turn.exchange.request_time_ns or 0, turn.exchange.response_time_ns or 0
    for at, topic in enumerate(told.responses or ()):
        for number, each in enumerate(topic.partitions or ()):
            place = asked.group_id or "", topic.topic_id, each.partition_index
            ranges = known.get((broker, place))
            if ranges is None:
                ranges = known[broker, place] = deque(maxlen=_MAX_RANGES_PER_PARTITION)
            for index, one in enumerate(each.acquired_records or ()):
                before = [
                    count
                    for first, last, count, heard_ns in ranges
                    if first <= one.last_offset and one.first_offset <= last and heard_ns < sent_ns
                ]
                ranges.append((one.first_offset, one.last_offset, one.delivery_count, told_ns))
                if not before:
                    continue
                say.count_judged()
                if one.delivery_count <= max(before):
                    found = f"offset {one.first_offset} is delivered again, count {max(before)}"
                    path = f"responses[{at}].partitions[{number}].acquired_records[{index}]"
                    say.report_violation(Side.BROKER, found, path=path)


class _Acquired(BoundedDict[MemberKey, "BoundedDict[GroupPartition, list[tuple[int, int]]]"]):
    """The ranges that each member was given since its session began."""


@rule(
    "H06",
    "Only who acquired a record may acknowledge it",
    Severity.ERROR,
    source="SharePartition.acknowledge: INVALID_RECORD_STATE (121)",
    asks="Acknowledgements of offsets that were never given to the member in its session are "
    "refused.",
    example="offsets 100 to 109 are acknowledged with error 0, 0 to 9 were acquired",
    apis=_SESSION_APIS,
)
def acknowledges_acquired(turn: Observation, say: Reporter) -> None:
    """Note what members are given; hold what they acknowledge against it."""
    asked, told = turn.request_body, turn.response_body
    known = turn.capture_state.state(_Acquired)
    if asked is None or told is None or turn.capture_state.incomplete_reason:
        say.count_unjudged(turn.unreadable_reason() or turn.capture_state.incomplete_reason)
        known.clear()
        return
    member, is_fetch = _member_key(turn, asked), turn.exchange.api == "ShareFetch"
    if is_fetch and asked.share_session_epoch == _JOIN_EPOCH and not told.error_code:
        known[member] = BoundedDict(_MAX_RANGES)
    given = known.get(member)
    if given is None:
        say.count_unjudged("the beginning of the share session is not in the capture")
        return
    errors = {
        (topic.topic_id, each.partition_index): each.get("acknowledge_error_code", each.error_code)
        for topic in told.responses or ()
        for each in topic.partitions or ()
    }
    for (topic_id, partition, _), batches in _acknowledgements(asked):
        mine = given.get((member[1], topic_id, partition), [])
        is_taken = not told.error_code and errors.get((topic_id, partition), 1) == 0
        for each in batches if is_taken else ():
            say.count_judged()
            if not any(f <= each.last_offset and each.first_offset <= end for f, end in mine):
                span = f"offsets {each.first_offset} to {each.last_offset}"
                say.report_violation(Side.BROKER, f"{span} were never acquired", path="responses")
    for topic in (told.responses or ()) if is_fetch else ():
        for each in topic.partitions or ():
            key = member[1], topic.topic_id, each.partition_index
            new = [(one.first_offset, one.last_offset) for one in each.acquired_records or ()]
            given[key] = [*given.get(key, []), *new][-_MAX_RANGES_PER_PARTITION:]
