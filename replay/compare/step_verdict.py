"""The verdict on a step: compares the response of the target with the captured one."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from functools import cache

from construct import Container

from dissector.protocol.embedded.masking import mask
from dissector.protocol.messages import Message
from dissector.protocol.schema import Schema
from replay.compare.body_diff import Bodies
from replay.compare.capture_gaps import follow_from_gap
from replay.compare.comparison_policy import COMPARED, FOLDED, TOLD_WHEN_NEW, TOLD_WITH_ALL
from replay.compare.fast_compare import alike
from replay.compare.ignore_rules import Noise
from replay.compare.withheld_records import bounded
from replay.fields.field_layout import Branch, Node, Role, Scope
from replay.fields.roles import plan
from replay.mapping.id_map import World
from replay.mapping.reader_accounts import Given
from replay.model.outcome import REJOINED, Difference, Outcome, Reason, Verdict
from replay.model.step import Captured
from replay.sessions.live_fetch_sessions import FINAL
from replay.sessions.retry_policy import rebalances

FAILING = frozenset({Verdict.DIFFERS, Verdict.ERROR_CHANGED, Verdict.MISSING})
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


_ASSIGNMENT = "assignment"
"""The field of heartbeat responses with the partitions of a member."""


def compare(
    outcome: Outcome,
    world: World,
    noise: Noise | None = None,
    *,
    made: Collection[str] = (),
    shown: Collection[str] = (),
    show_secrets: bool = False,
) -> tuple[Verdict, list[Difference]]:
    """
    Compare a response with the captured one; the id mapping must have learned from both before.

    Sets `outcome.reasons` to why a response is equivalent.

    Args:
        outcome: The outcome of a step.
        world: The id mapping.
        noise: The ignore rules.
        made: Topics created for the replay, by their captured names.
        shown: Topics that exist in the capture, if only at its end; includes `made`.
        show_secrets: Compare and show passwords, tokens and salts instead of masking them.
    """
    captured, live = outcome.step.captured, outcome.response
    was_sent = outcome.parts or captured.response is not None
    if outcome.step.left_out or outcome.is_refused or not was_sent:
        return (Verdict.NOT_JUDGED if outcome.parts else Verdict.LEFT_OUT), []
    if live is None:
        is_missing = captured.is_due and captured.response is not None
        return (Verdict.MISSING if is_missing else Verdict.SAME), []
    answered = captured.answered()
    if answered is None or answered.body is None or answered.schema is None:
        return Verdict.EXTRA, []
    if outcome.step.is_unsettled and rebalances(answered.schema, outcome.version, live):
        outcome.reasons = frozenset({Reason.REBALANCE})  # the capture shows it next
        return Verdict.EQUIVALENT, []
    there = shown if _creates(captured) else made
    found = _bodies(outcome, answered, live, world, there, show_secrets)
    differences, reasons = found.differences, found.reasons
    brought: Iterable[Given] = found.given
    if captured.api == "Fetch":
        brought = bounded(found.given, captured, answered.body, live, world)
    for given in brought:
        world.readers.note(_reader(captured), outcome.step.number, given)
    if outcome.step.is_unassigned:  # the capture assigns later, the target may do so sooner
        differences = [each for each in differences if not each.path.startswith(_ASSIGNMENT)]
        if len(differences) < len(found.differences):
            reasons.add(Reason.ASSIGNED)
    if noise is not None:
        counted = [each for each in differences if not noise.covers(captured.api, each.path)]
        if len(counted) < len(differences):
            reasons.add(Reason.IGNORED)
        differences = counted
    if differences and follow_from_gap(captured, answered, differences, world):
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


def _bodies(
    outcome: Outcome,
    answered: Message,
    live: Container,
    world: World,
    made: Collection[str],
    show_secrets: bool,
) -> Bodies:
    schema, version = answered.schema, answered.api_version
    assert schema is not None
    assert version is not None
    assert answered.body is not None
    captured = outcome.step.captured
    body = answered.body
    if not show_secrets:
        body, live = mask(body, schema, version), mask(live, schema, outcome.version)
    nodes = plan(schema, version, COMPARED), plan(schema, outcome.version, COMPARED)
    if version != outcome.version and captured.api in FOLDED:
        array = FOLDED[captured.api]
        sides = _unfolded(nodes[0], body, array), _unfolded(nodes[1], live, array)
        nodes, body, live = (sides[0][0], sides[1][0]), sides[0][1], sides[1][1]
    wants_request = outcome.step.overlaps or _wants_request(schema, version, captured.api)
    asked = captured.asked() if wants_request else None
    more = _may_have_more(captured.api, asked)
    if body.get("session_id"):
        # A response in a fetch session lists only changes: there may be more by then, or fewer.
        more |= TOLD_WHEN_NEW
    bodies = Bodies(world, more, made, show_secrets, outcome.step.overlaps)
    if captured.api == "Fetch" and "session_id" in live and not _in_session(outcome):
        if body.get("session_id"):
            bodies.reasons.add(Reason.SESSION)
        live = Container({**live, "session_id": body.get("session_id", 0)})
    if captured.api == "JoinGroup" and _leads(body) != _leads(live):
        # Only the leader gets the members, and the coordinator chooses the leader.
        bodies.reasons.add(Reason.LEADER)
        body = Container({**body, "members": []})
        live = Container({**live, "members": []})
    scope = _scope(asked)
    if version != outcome.version or not alike(schema, version, body, live, scope, world):
        bodies.compare(nodes, body, live, scope)
    return bodies


def _reader(captured: Captured) -> Hashable:
    """Return the reader of records: a client, by its connection, or a share group."""
    if captured.api != "ShareFetch":
        return captured.connection
    body = captured.asked().body
    return body.group_id if body else None


def _unfolded(node: Node, body: Container, array: str) -> tuple[Node, Container]:
    """Return the single element of an array in place of the body, if there is exactly one."""
    branch = next((member for member in node.members if member.name == array), None)
    if not isinstance(branch, Branch) or len(body.get(array) or ()) != 1:
        return node, body
    return branch.node, body[array][0]


def _in_session(outcome: Outcome) -> bool:
    """Return whether a live Fetch used or opened a session."""
    return any(part.request.get("session_epoch") != FINAL for part in outcome.parts)


def _leads(body: Container) -> bool:
    return bool(body.get("leader") == body.get("member_id"))


@cache
def _wants_request(schema: Schema, version: int, api: str) -> bool:
    return api in TOLD_WITH_ALL or bool(plan(schema, version, _FROM_REQUEST).members)


def _creates(captured: Captured) -> bool:
    """Return whether a request may auto-create topics: the broker creates them now or soon."""
    if captured.api != "Metadata":
        return False
    asked = captured.asked().body
    return bool(asked and asked.topics and asked.get("allow_auto_topic_creation", True))


def _scope(asked: Message | None) -> Scope:
    """Return the scope of a request: group, member, producer."""
    if asked is None or asked.body is None or asked.schema is None or asked.api_version is None:
        return Scope()
    return Scope().inside(plan(asked.schema, asked.api_version), asked.body)


def _may_have_more(api: str, asked: Message | None) -> frozenset[str]:
    field, array = TOLD_WITH_ALL.get(api, ("", ""))
    if not array or asked is None or asked.body is None or (field and asked.body.get(field)):
        return frozenset()
    return frozenset({array})
