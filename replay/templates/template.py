"""Request templates, made of exchanges with live responses equal to the captured ones."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from cluster.client.pending_request import codecs_of, patience_s
from cluster.fields.batch_rewriter import PRODUCER_ROLES
from cluster.fields.field_layout import Scope
from dissector.protocol.headers import PRODUCE
from dissector.protocol.messages import Message, decode_response
from replay.mapping.id_map import IdMap
from replay.model.outcome import Outcome
from replay.plan.request_shapes import Shape, partitions, request_shape_of, response_shape_of
from replay.templates.request_writer import RequestWriter
from replay.templates.response_matcher import ResponseMatcher


class RequestTemplate(NamedTuple):
    """
    Writes requests of one shape for the target, and matches their responses.

    Attributes:
        writer: Writes requests.
        matcher: Matches responses.
        node: The broker that the requests are sent to.
        cluster_revision: Revision of the cluster metadata; the template is not valid for any other.
        version: The API version.
        patience_s: Time the requests allow the broker before its response.
        transactional_id: The transactional id in the requests, or empty.
        changes: The substitutions made in each request, except in batches.
        replaced: Roles substituted in batches; the report has no example of other roles yet.
    """

    writer: RequestWriter
    matcher: ResponseMatcher
    node: int
    cluster_revision: int
    version: int
    patience_s: float
    transactional_id: str
    changes: Counter[tuple[str, str]]
    replaced: frozenset[str]


def template_of(
    number: int,
    shape: Shape,
    outcome: Outcome,
    header: bytes,
    response: bytes,
    cluster_revision: int,
    ids: IdMap,
) -> RequestTemplate | None:
    """
    Make a template of a replayed exchange; return None if it can't serve for others.

    Args:
        number: The number of the shape.
        shape: The shape of the captured exchange.
        outcome: The outcome of the step with a response equal to the captured one.
        header: The header of the sent request after the correlation id.
        response: The frame of the target's response.
        cluster_revision: Revision of the cluster metadata.
        ids: The id mapping.
    """
    captured, version = outcome.step.captured, outcome.version
    if len(outcome.parts) != 1 or version != captured.api_version:
        return None
    (part,) = outcome.parts
    head = captured.request[:4] + bytes(4) + header
    frame = head + codecs_of(PRODUCE, version).request.build(part.request)
    # If no name was replaced, both keep the captured shape, which is checked quickly.
    is_as_captured = shape.request.batch_positions(frame) is not None
    request_shape = shape.request if is_as_captured else request_shape_of(frame, len(head))
    is_as_captured = shape.response.base_offsets(response) is not None
    live = decode_response(response, PRODUCE, version)
    live_shape = shape.response if is_as_captured else response_shape_of(live)
    request = captured.request_message().body
    if request_shape is None or live_shape is None or request is None:
        return None
    topics = partitions(request.topic_data, "partition_data")
    places = [(ids.topic_of(_scope(title)), at) for title, at in topics]
    named = [(topic, number) for topic, number in places if topic is not None]
    order = shape.partition_order if is_as_captured else _partition_order(live, named, ids)
    if len(named) != len(places) or order is None:
        return None
    roles = replaced_roles(outcome)
    logs = [ids.offsets.log(*named[at]) for at in order]
    changes = ((each.role, each.why) for each in outcome.changes)
    return RequestTemplate(
        RequestWriter(number, shape.request, request_shape, named, roles),
        ResponseMatcher(shape.response, live_shape, (shape.partition_order, order), logs),
        part.node,
        cluster_revision,
        version,
        patience_s(part.request),
        part.request.get("transactional_id") or "",
        Counter(change for change in changes if change[0] not in PRODUCER_ROLES),
        roles,
    )


def _partition_order(
    response: Message, named: list[tuple[str, int]], ids: IdMap
) -> tuple[int, ...] | None:
    """Return for each partition of the target's response its index in the request."""
    if response.body is None:
        return None
    listed = list(partitions(response.body.responses, "partition_responses"))
    found = [(ids.topic_of(ids.captured_scope(_scope(title))), at) for title, at in listed]
    if sorted(map(str, found)) != sorted(map(str, named)):
        return None
    return tuple(named.index((topic, at)) for topic, at in found if topic is not None)


def replaced_roles(outcome: Outcome) -> frozenset[str]:
    """Return the roles that were substituted in batches."""
    return frozenset(each.role for each in outcome.changes if each.role in PRODUCER_ROLES)


def _scope(title: Any) -> Scope:
    return Scope(topic=title) if isinstance(title, str) else Scope(topic_id=title)
