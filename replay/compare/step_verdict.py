"""The verdict on a step: compares the response of the target with the captured one."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from functools import cache
from typing import Any

from construct import Container

from cluster.fields.field_layout import Scope, StructField, StructLayout
from cluster.fields.roles import layout_of
from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.protocol.embedded.masking import mask
from dissector.protocol.field_roles import Role
from dissector.protocol.login_secrets import knowing
from dissector.protocol.messages import Message
from dissector.protocol.schema import Schema
from replay.compare.body_diff import BodyDiff
from replay.compare.capture_gaps import follow_from_gap
from replay.compare.client_readings import ClientReadings
from replay.compare.comparison_policy import (
    COMPARED_ROLES,
    FOLDED_ARRAYS,
    INCREMENTAL_ARRAYS,
    LIST_ALL_ARRAYS,
)
from replay.compare.fast_compare import are_equal
from replay.compare.first_epochs import without_first_epochs
from replay.compare.ignore_rules import Noise
from replay.compare.other_parts import follow_from_other_parts
from replay.compare.replica_sets import DESCRIBING_APIS, replica_faults
from replay.compare.share_distribution import is_of_distribution
from replay.compare.withheld_records import with_readable_ends
from replay.mapping.id_map import IdMap
from replay.mapping.reader_accounts import ReturnedRecords
from replay.model.outcome import HELD, REJOINED, Difference, Outcome, Reason, Verdict
from replay.sessions.live_fetch_sessions import FINAL
from replay.sessions.retry_policy import rebalances

FAILING_VERDICTS = frozenset({Verdict.DIFFERS, Verdict.ERROR_CHANGED, Verdict.MISSING})
"""Verdicts for responses that deviate from the capture."""

_FROM_REQUEST = frozenset(
    {
        Role.MEMBER,
        Role.GENERATION,
        Role.MEMBER_EPOCH,
        Role.PRODUCER_ID,
        Role.PRODUCER_EPOCH,
        Role.COORDINATOR_KEY,
        Role.EMBEDDED,
    }
)
"""Roles in a response that can be mapped only with its request."""

_SCOPED_BY_REQUEST = LIST_ALL_ARRAYS.keys() | {"OffsetFetch"}
"""APIs with responses compared in the scope of their requests, such as the group."""

_ALL_CLIENTS = ClientReadings()

_ASSIGNMENT = "assignment"
"""The field of heartbeat responses with the partitions of a member."""


def compare_outcome(
    outcome: Outcome,
    ids: IdMap,
    noise: Noise | None = None,
    *,
    readings: ClientReadings = _ALL_CLIENTS,
    created_topics: Collection[str] = (),
    captured_topics: Collection[str] = (),
    show_secrets: bool = False,
) -> tuple[Verdict, list[Difference]]:
    """
    Compare a response with the captured one; the id mapping must have learned from both before.

    Sets `outcome.reasons` to why a response is equivalent.

    Args:
        outcome: The outcome of a step.
        ids: The id mapping.
        noise: The ignore rules.
        readings: The clients whose view counts.
        created_topics: Topics created for the replay, by their captured names.
        captured_topics: Topics that exist in the capture, if only at its end; includes
            `created_topics`.
        show_secrets: Compare and show passwords, tokens and salts instead of masking them.
    """
    captured, live = outcome.step.captured, outcome.response
    was_sent = outcome.parts or captured.response is not None
    if outcome.step.left_out or outcome.is_refused or not was_sent:
        return (Verdict.NOT_JUDGED if outcome.parts else Verdict.LEFT_OUT), []
    if live is None:
        is_missing = captured.expects_response and captured.response is not None
        return (Verdict.MISSING if is_missing else Verdict.SAME), []
    response = captured.response_message()
    if response is None or response.body is None or response.schema is None:
        return Verdict.EXTRA, []
    if outcome.step.is_before_rebalance and rebalances(response.schema, outcome.version, live):
        outcome.reasons = frozenset({Reason.REBALANCE})  # the capture shows it next
        return Verdict.EQUIVALENT, []
    created = captured_topics if _creates(captured) else created_topics
    diff = _compare_bodies(outcome, response, live, ids, created, show_secrets)
    differences, reasons = diff.differences, diff.reasons
    if captured.api in DESCRIBING_APIS:
        differences += replica_faults(response.body, live, ids)
    returned: Iterable[ReturnedRecords] = diff.returned
    if captured.api == "Fetch":
        returned = with_readable_ends(diff.returned, captured, response.body, live, ids)
    for records in returned:
        ids.readers.record(_reader(captured), outcome.step.number, records)
    if outcome.step.is_before_assignment:  # the capture assigns later, the target may do so sooner
        differences = [each for each in differences if not each.path.startswith(_ASSIGNMENT)]
        if len(differences) < len(diff.differences):
            reasons.add(Reason.ASSIGNED)
    if captured.api == "ListPartitionReassignments":  # the target may be done sooner
        remaining = [each for each in differences if each.replayed is not None or each.is_error]
        if len(remaining) < len(differences):
            reasons.add(Reason.READY)
        differences = remaining
    if captured.api == "ListOffsets" and differences:
        request = captured.request_message().body
        known = differences if request is None else without_first_epochs(differences, request)
        if len(known) < len(differences):
            reasons.add(Reason.FIRST_EPOCH)
        differences = known
    if captured.api == "ShareFetch" or any(each.why == HELD for each in outcome.changes):
        remaining = [each for each in differences if not is_of_distribution(each)]
        if len(remaining) < len(differences):
            reasons.add(Reason.SHARED)
        differences = remaining
    if outcome.is_repeated or outcome.step.is_sent_again:
        remaining = [each for each in differences if not _is_of_duplicate(each)]
        if len(remaining) < len(differences):
            reasons.add(Reason.DUPLICATE)
        differences = remaining
    remaining = [
        each
        for each in differences
        if not readings.are_alike(captured.api, captured.connection, each)
    ]
    if len(remaining) < len(differences):
        reasons.add(Reason.READ_ALIKE)
    differences = remaining
    if noise is not None:
        remaining = [each for each in differences if not noise.covers(captured.api, each.path)]
        if len(remaining) < len(differences):
            reasons.add(Reason.IGNORED)
        differences = remaining
    if differences and (
        (outcome.is_untimely and any(each.is_error for each in differences))
        or follow_from_gap(captured, response, differences, ids)
        or follow_from_other_parts(captured, response, differences, ids)
    ):
        return Verdict.INCOMPLETE, differences
    if any(each.is_error for each in differences):
        return Verdict.ERROR_CHANGED, differences
    if differences:
        return Verdict.DIFFERS, differences
    if outcome.version != captured.api_version:
        reasons.add(Reason.VERSION)
    if any(each.why == REJOINED for each in outcome.changes):
        reasons.add(Reason.REJOINED)
    outcome.reasons = frozenset(reasons)
    return (Verdict.EQUIVALENT if reasons else Verdict.SAME), []


def _is_of_duplicate(difference: Difference) -> bool:
    """
    Return whether a Produce response differs as that to a duplicate does: it has a time.

    Source: UnifiedLog.append, which stores the append time in the batch.
    """
    return difference.path.endswith(_APPEND_TIME) and difference.captured == -1


_APPEND_TIME = ".log_append_time_ms"


def _compare_bodies(
    outcome: Outcome,
    response: Message,
    live: Container,
    ids: IdMap,
    created_topics: Collection[str],
    show_secrets: bool,
) -> BodyDiff:
    schema, version = response.schema, response.api_version
    assert schema is not None
    assert version is not None
    assert response.body is not None
    captured, body = outcome.step.captured, response.body
    wants_request = outcome.step.overlaps or _wants_request(schema, version, captured.api)
    request = captured.request_message() if wants_request else None
    may_have_more = _may_have_more(captured.api, request)
    if body.get("session_id"):
        # A response in a fetch session lists only changes: there may be more by then, or fewer.
        may_have_more |= INCREMENTAL_ARRAYS
    bodies = BodyDiff(ids, may_have_more, created_topics, show_secrets, outcome.step.overlaps)
    if captured.api == "Fetch" and "session_id" in live and not _in_session(outcome):
        if body.get("session_id"):
            bodies.reasons.add(Reason.SESSION)
        live = Container({**live, "session_id": body.get("session_id", 0)})
    if outcome.unasked:
        body = Container({**body, "responses": list(_asked(body, outcome.unasked))})
    if captured.api == "JoinGroup" and _leads(body) != _leads(live):
        # Only the leader gets the members, and the coordinator chooses the leader.
        bodies.reasons.add(Reason.LEADER)
        body = Container({**body, "members": []})
        live = Container({**live, "members": []})
    scope, equal = _scope(request), BodyDiff(ids, show_secrets=show_secrets)
    arguments = body, live, scope, ids, equal.have_equal_records
    if version == outcome.version and are_equal(schema, version, *arguments):
        bodies.returned = equal.returned
        return bodies
    if not show_secrets:
        with knowing(captured.known_secrets):
            body, live = mask(body, schema, version), mask(live, schema, outcome.version)
    layouts = (
        layout_of(schema, version, COMPARED_ROLES),
        layout_of(schema, outcome.version, COMPARED_ROLES),
    )
    if version != outcome.version and captured.api in FOLDED_ARRAYS:
        array = FOLDED_ARRAYS[captured.api]
        sides = _unfolded(layouts[0], body, array), _unfolded(layouts[1], live, array)
        layouts, body, live = (sides[0][0], sides[1][0]), sides[0][1], sides[1][1]
    bodies.compare(layouts, body, live, scope)
    return bodies


def _asked(body: Container, unasked: Collection[tuple[Any, int]]) -> Iterator[Container]:
    """Yield the topics of a captured Fetch response with the partitions that were asked for."""
    for topic in body.responses:
        name = topic.get("topic") or topic.get("topic_id")
        asked = [each for each in topic.partitions if (name, each.partition_index) not in unasked]
        if asked or not topic.partitions:
            yield Container({**topic, "partitions": asked})


def _reader(captured: CapturedExchange) -> Hashable:
    """Return the reader of records: a client, by its connection, or a share group."""
    if captured.api != "ShareFetch":
        return captured.connection
    body = captured.request_message().body
    return body.group_id if body else None


def _unfolded(layout: StructLayout, body: Container, array: str) -> tuple[StructLayout, Container]:
    """Return the single element of an array in place of the body, if there is exactly one."""
    branch = next((member for member in layout.members if member.name == array), None)
    if not isinstance(branch, StructField) or len(body.get(array) or ()) != 1:
        return layout, body
    return branch.layout, body[array][0]


def _in_session(outcome: Outcome) -> bool:
    """Return whether a live Fetch used or opened a session."""
    return any(part.request.get("session_epoch") != FINAL for part in outcome.parts)


def _leads(body: Container) -> bool:
    return bool(body.get("leader") == body.get("member_id"))


@cache
def _wants_request(schema: Schema, version: int, api: str) -> bool:
    return api in _SCOPED_BY_REQUEST or bool(layout_of(schema, version, _FROM_REQUEST).members)


def _creates(captured: CapturedExchange) -> bool:
    """Return whether a request may auto-create topics: the broker creates them now or soon."""
    if captured.api != "Metadata":
        return False
    request = captured.request_message().body
    return bool(request and request.topics and request.get("allow_auto_topic_creation", True))


def _scope(request: Message | None) -> Scope:
    """Return the scope of a request: group, member, producer."""
    if (
        request is None
        or request.body is None
        or request.schema is None
        or request.api_version is None
    ):
        return Scope()
    return Scope().inside(layout_of(request.schema, request.api_version), request.body)


def _may_have_more(api: str, request: Message | None) -> frozenset[str]:
    field, array = LIST_ALL_ARRAYS.get(api, ("", ""))
    if not array or request is None or request.body is None or (field and request.body.get(field)):
        return frozenset()
    return frozenset({array})
