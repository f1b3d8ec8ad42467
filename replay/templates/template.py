"""Requests of a shape that the target has answered as captured: what of them changes, by bytes."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from dissector.protocol.headers import PRODUCE
from dissector.protocol.messages import Message, decode_response
from replay.client.pending_request import codecs_of, patience_s
from replay.fields.batch_rewriter import PRODUCER_ROLES
from replay.fields.field_layout import Scope
from replay.mapping.id_map import IdMap
from replay.model.outcome import Outcome
from replay.plan.request_shapes import Shape, answer_of, partitions, request_of
from replay.templates import request_writer as stamp
from replay.templates import response_matcher as match
from replay.templates.request_writer import Stamp
from replay.templates.response_matcher import Match


class Stencil(NamedTuple):
    """
    How requests of a shape become those for the target, and what their answers look like.

    Attributes:
        stamp: Writes requests.
        match: Takes answers.
        node: The broker that is asked.
        age: Of what is known of the target: with another the stencil says nothing.
        version: Of the API.
        patience_s: How long requests ask the broker to wait.
        transactional_id: Of the requests that are sent.
        changes: What is substituted each time, but for what stands in batches.
        replaced: Roles of what was substituted in batches; of others the report has no example yet.
    """

    stamp: Stamp
    match: Match
    node: int
    age: int
    version: int
    patience_s: float
    transactional_id: str
    changes: Counter[tuple[str, str]]
    replaced: frozenset[str]


def stencil_of(
    number: int,
    shape: Shape,
    outcome: Outcome,
    header: bytes,
    answer: bytes,
    age: int,
    world: IdMap,
) -> Stencil | None:
    """
    Return the stencil that an exchange of a shape gives; None where it is no model for others.

    Args:
        number: Of the shape.
        shape: Of the captured exchange.
        outcome: What became of it: the target answered just as captured.
        header: Of the request that was sent, behind the correlation id.
        answer: The frame of the target's answer.
        age: Of what is known of the target.
        world: What the target has in the place of what was captured.
    """
    captured, version = outcome.step.captured, outcome.version
    if len(outcome.parts) != 1 or version != captured.api_version:
        return None
    (part,) = outcome.parts
    head = captured.request[:4] + bytes(4) + header
    frame = head + codecs_of(PRODUCE, version).request.build(part.request)
    # Where no name is replaced, both look as captured, which is quickly seen.
    is_as_captured = shape.request.batches(frame) is not None
    sent = shape.request if is_as_captured else request_of(frame, len(head))
    is_as_captured = shape.answer.offsets(answer) is not None
    answered = decode_response(answer, PRODUCE, version)
    told = shape.answer if is_as_captured else answer_of(answered)
    asked = captured.request_message().body
    if sent is None or told is None or asked is None:
        return None
    topics = partitions(asked.topic_data, "partition_data")
    places = [(world.topic_of(_scope(title)), at) for title, at in topics]
    named = [(topic, number) for topic, number in places if topic is not None]
    order = shape.order if is_as_captured else _order(answered, named, world)
    if len(named) != len(places) or order is None:
        return None
    roles = replaced(outcome)
    logs = [world.offsets.log(*named[at]) for at in order]
    changes = ((each.role, each.why) for each in outcome.changes)
    return Stencil(
        Stamp(number, shape.request, sent, named, roles),
        Match(shape.answer, told, (shape.order, order), logs),
        part.node,
        age,
        version,
        patience_s(part.request),
        part.request.get("transactional_id") or "",
        Counter(change for change in changes if change[0] not in PRODUCER_ROLES),
        roles,
    )


def _order(answered: Message, named: list[tuple[str, int]], world: IdMap) -> tuple[int, ...] | None:
    """Return for each partition of an answer of the target, which of the request it is."""
    if answered.body is None:
        return None
    told = list(partitions(answered.body.responses, "partition_responses"))
    found = [(world.topic_of(world.captured_scope(_scope(title))), at) for title, at in told]
    if sorted(map(str, found)) != sorted(map(str, named)):
        return None
    return tuple(named.index((topic, at)) for topic, at in found if topic is not None)


def warm_up(requests: int) -> None:
    """Have ready what so many requests are worth, before the first is due."""
    stamp.warm_up(requests)
    match.warm_up(requests)


def replaced(outcome: Outcome) -> frozenset[str]:
    """Return the roles of what was substituted in batches."""
    return frozenset(each.role for each in outcome.changes if each.role in PRODUCER_ROLES)


def _scope(title: Any) -> Scope:
    return Scope(topic=title) if isinstance(title, str) else Scope(topic_id=title)
