"""
Differences that follow from an incomplete capture, which begins midway or has gaps.

The target can't return records without a captured Produce, nor know offsets among them. Records on
both sides, and offsets among those, are compared as usual.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from cluster.fields.field_layout import FieldValue
from cluster.fields.roles import walk
from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.protocol.error_codes import error_code
from dissector.protocol.field_roles import Role
from dissector.protocol.messages import Message
from dissector.protocol.records import RecordBatch, parse_records
from replay.mapping.id_map import IdMap
from replay.model.outcome import Difference

_OUT_OF_RANGE = error_code("OFFSET_OUT_OF_RANGE")

_RECORDS = frozenset({Role.RECORDS})
_REQUEST_ROLES = frozenset({Role.OFFSET})
_RESPONSE_ROLES = frozenset({Role.OFFSET, Role.RECORDS})


def follow_from_gap(
    captured: CapturedExchange, response: Message, differences: Sequence[Difference], ids: IdMap
) -> bool:
    """
    Return whether all differences follow from records, members or markers that the capture lacks.

    Args:
        captured: The captured request.
        response: The captured response.
        differences: The differences of the target's response.
        ids: The id mapping.
    """
    if not ids.is_partial:
        return False
    if ids.synthesised_commits and all(_concerns_markers(each) for each in differences):
        return True
    if _has_uncaptured_members(captured, ids) and all(map(_concerns_members, differences)):
        return True
    left = [each for each in differences if not _is_out_of_range(each, response, ids)]
    incomplete = set(_incomplete_partitions(captured, response, ids)) if left else set()
    return not left or (bool(incomplete) and all(_is_in(each, incomplete) for each in left))


def _is_out_of_range(difference: Difference, response: Message, ids: IdMap) -> bool:
    """
    Return whether a difference is only OFFSET_OUT_OF_RANGE in a fetch session.

    An earlier request of the session (KIP-227) set the fetch offset, at the end of a log whose
    records the capture lacks.
    """
    live = difference.replayed
    if difference.captured is None and isinstance(live, Mapping):
        # In some responses the partitions are numbers.
        partitions = [each for each in live.get("partitions") or () if isinstance(each, Mapping)]
        errors = {each.get("error_code") for each in partitions or [live]}
        return errors == {_OUT_OF_RANGE}
    if not difference.is_error or live != _OUT_OF_RANGE or response.schema is None:
        return False
    places = walk(response.schema, response.api_version or 0, response.body or {}, _RECORDS)
    partitions_with_records = {
        (ids.topic_of(field_value.scope), field_value.scope.partition)
        for field_value in places
        if field_value.value
    }
    return not any(
        f"[{topic}]." in difference.path and f"[{partition}]" in difference.path
        for topic, partition in partitions_with_records
    )


def _is_in(difference: Difference, incomplete: Collection[tuple[str, int]]) -> bool:
    """Return whether a difference is in one of these partitions."""
    path = difference.path
    return any(
        f"[{topic}]." in path and f"[{partition}]" in path for topic, partition in incomplete
    )


def _concerns_markers(difference: Difference) -> bool:
    """Return whether a difference is in transaction markers, or in aborted transactions."""
    return difference.path.endswith(".control") or ".aborted_transactions" in difference.path


def _has_uncaptured_members(captured: CapturedExchange, ids: IdMap) -> bool:
    """Return whether a request is of a group with uncaptured joins."""
    body = captured.request_message().body
    group = body.get("group_id") if body is not None else None
    return any(group == each for each, _ in ids.uncaptured_members)


def _concerns_members(difference: Difference) -> bool:
    """Return whether a difference is in the members of a group, or in their assignments."""
    if not difference.is_error:
        return difference.path.startswith(_MEMBER_FIELDS)
    return difference.replayed in _MEMBER_ERRORS or difference.captured in _MEMBER_ERRORS


_MEMBER_ERRORS = frozenset(
    error_code(name)
    for name in (
        "FENCED_MEMBER_EPOCH",
        "ILLEGAL_GENERATION",
        "REBALANCE_IN_PROGRESS",
        "STALE_MEMBER_EPOCH",
        "UNKNOWN_MEMBER_ID",
    )
)
_MEMBER_FIELDS = ("assignment", "members", "leader")


def _incomplete_partitions(
    captured: CapturedExchange, response: Message, ids: IdMap
) -> Iterator[tuple[str, int]]:
    """Yield the captured partitions of an exchange with records missing from the capture."""
    request = captured.request_message()
    for message, wanted in ((request, _REQUEST_ROLES), (response, _RESPONSE_ROLES)):
        if message.body is None or message.schema is None:
            continue
        for field_value in walk(message.schema, message.api_version or 0, message.body, wanted):
            topic, partition = ids.topic_of(field_value.scope), field_value.scope.partition
            if topic is None or partition is None or field_value.value is None:
                continue
            if field_value.role is Role.RECORDS and field_value.value:
                offsets = _data_offsets(field_value.value)
                if not all(ids.offsets.has_record(topic, partition, each) for each in offsets):
                    yield topic, partition
            elif field_value.field.name == "committed_offset" and _is_uncaptured_commit(
                field_value, request, ids
            ):
                yield topic, partition
            elif (
                field_value.role is Role.OFFSET
                and field_value.field.name in _POSITIONS
                and field_value.value >= 0
            ):
                near = range(max(field_value.value - _MAX_MARKERS, 0), field_value.value + 1)
                if not any(ids.offsets.has_record(topic, partition, each) for each in near):
                    yield topic, partition


def _is_uncaptured_commit(field_value: FieldValue, request: Message, ids: IdMap) -> bool:
    """Return whether the commit of an offset was not captured."""
    topic, partition = ids.topic_of(field_value.scope), field_value.scope.partition
    group = field_value.scope.group or (
        request.body.get("group_id") if request.body is not None else None
    )
    return field_value.value >= 0 and (group, topic, partition) not in ids.committed_offsets


_POSITIONS = frozenset({"fetch_offset", "offset", "committed_offset", "end_offset"})
"""Fields with offsets of records; others change independently of requests."""


_MAX_MARKERS = 3
"""Most transaction markers assumed between a record and the offset after it."""


def _data_offsets(data: bytes) -> Iterator[int]:
    """Yield the offsets of data records, without control records."""
    for batch in parse_records(data):
        if not (isinstance(batch, RecordBatch) and batch.control):
            yield from (record.offset for record in batch.records)
