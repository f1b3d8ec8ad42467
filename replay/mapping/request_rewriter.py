"""Rewrites a captured request for the target: maps names, and replaces broker-assigned values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from construct import Container

from cluster.conversion.change import Change
from cluster.conversion.version_converter import convert, names_topics_by_id
from cluster.fields.batch_rewriter import PRODUCER_ROLES, Producer, rewrite_batches
from cluster.fields.field_layout import FieldValue, Scope
from cluster.fields.refusal import RewriteError, UnsupportedByTarget
from cluster.fields.roles import value_map
from cluster.fields.walker import RolesToMap
from dissector.protocol.embedded.membership.group_members import MemberField, read_member
from dissector.protocol.embedded.reading import Embedded
from dissector.protocol.field_roles import Role
from dissector.protocol.messages import Message
from dissector.protocol.schema import Schema
from replay.mapping.id_map import MAPPED_ROLES, IdMap

_MAPPED = RolesToMap(
    MAPPED_ROLES,
    without_negatives=frozenset({Role.OFFSET, Role.LEADER_EPOCH, Role.FETCHED_EPOCH}),
    reported=frozenset({"kept", "unknown"}),
)


@dataclass(slots=True)
class Rewritten:
    """
    A request for the target.

    Attributes:
        body: The body in the requested version; unusable if the request is refused.
        changes: The substitutions.
        refusal: Reason why the request cannot be sent; empty without one.
        is_unsupported: Whether the reason is that no version of the target can carry it.
        unknown: The value that the target has not assigned yet, as role and captured value; the
            value of a producer is its id and epoch.
    """

    body: Container
    changes: list[Change] = field(default_factory=list)
    refusal: str = ""
    is_unsupported: bool = False
    unknown: tuple[str, Any] | None = None


def rewrite(message: Message, version: int, ids: IdMap) -> Rewritten:
    """
    Return the live form of a captured request.

    Args:
        message: The captured request; its body is modified.
        version: The API version on the target.
        ids: The id mapping.
    """
    schema, captured = message.schema, message.api_version
    if schema is None or captured is None or message.body is None:
        return Rewritten(Container(), refusal="the captured request can't be decoded")
    out = Rewritten(message.body)
    try:
        if version != captured and not names_topics_by_id(schema, version):
            # The version takes no topic ids: convert them to names before names are mapped.
            out.body = convert(
                schema, message.body, captured, version, ids.captured_topics, out.changes
            )
            captured = version
        _replace_values(schema, captured, Scope(), ids, out)
        if captured != version:
            out.body = convert(schema, out.body, captured, version, ids.live_topics, out.changes)
    except RewriteError as refusal:
        unknown = (refusal.role, refusal.value) if refusal.role else None
        is_unsupported = isinstance(refusal, UnsupportedByTarget)
        return Rewritten(Container(), out.changes, refusal.what, is_unsupported, unknown)
    return out


def _replace_values(schema: Schema, version: int, scope: Scope, ids: IdMap, out: Rewritten) -> None:
    """Replace the values of a body."""

    def replace_inside(field_value: FieldValue) -> None:
        inside = _records if field_value.role is Role.RECORDS else _embedded
        field_value.replace(inside(field_value, ids, out))

    def report(path: str, role: str, captured: Any, sent: Any, rule: str) -> None:
        out.changes.append(Change(path, role, captured, sent, rule))

    replace_all = value_map(schema, version, ids.roles, _MAPPED)
    replace_all(out.body, scope, ids.live_by_role, replace_inside, report)


def _records(field_value: FieldValue, ids: IdMap, out: Rewritten) -> bytes:
    topic, partition = ids.topic_of(field_value.scope), field_value.scope.partition

    def substitute(old: Producer, records: int) -> Producer:
        producer_id, epoch = ids.live_producer(old.producer_id, old.epoch)
        if epoch is None or topic is None or partition is None:
            return old
        is_learned = ids.producers.live(old.producer_id, old.epoch) is not None
        sequence = old.sequence
        if is_learned:
            captured = old.producer_id, old.epoch
            sequence = ids.producers.sequence(captured, topic, partition, sequence)
            ids.producers.record_written((producer_id, epoch), topic, partition, sequence, records)
        new = Producer(producer_id, epoch, sequence)
        for role, before, after in zip(PRODUCER_ROLES, old, new, strict=True):
            if before != after:
                out.changes.append(Change(f"{field_value.path}.{role}", role, before, after))
        return new

    return rewrite_batches(field_value.value, substitute)


def _embedded(field_value: FieldValue, ids: IdMap, out: Rewritten) -> bytes:
    """Rewrite metadata or assignment of a group member; undecodable bytes stay unchanged."""
    data: bytes = field_value.value
    part: MemberField = (
        "assignment" if field_value.field.name.endswith("assignment") else "metadata"
    )
    # In JoinGroup, the name of the protocol is beside the metadata.
    embedded = read_member(
        field_value.path, data, part, out.body.get("protocol_type"), field_value.parent.get("name")
    )
    return (
        data
        if embedded is None
        else _rebuilt(embedded, field_value.path, ids, field_value.scope, out.changes)
    )


def _rebuilt(found: Embedded, path: str, ids: IdMap, scope: Scope, changes: list[Change]) -> bytes:
    """Return rewritten embedded bytes; the original object if unchanged."""
    if found.value is None or found.schema is None or found.version is None:
        return found.data
    is_same = True
    for each in found.inner:
        built = _rebuilt(each, f"{path}.{each.path}", ids, scope, changes)
        is_same &= built == each.data
        found.value[each.path] = built
    inside = Rewritten(found.value)
    _replace_values(found.schema, found.version, scope, ids, inside)
    if is_same and all(change.captured == change.sent for change in inside.changes):
        return found.data
    changes += [replace(change, path=f"{path}.{change.path}") for change in inside.changes]
    built = found.schema.codec(found.version).build(found.value)
    return found.data[: found.start] + built + found.left
