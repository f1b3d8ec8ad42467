"""A captured request becomes one for the target: what only a broker can give is replaced."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from construct import Container

from dissector.protocol.embedded.membership.group_members import MemberField, read_member
from dissector.protocol.embedded.reading import Embedded
from dissector.protocol.messages import Message
from replay.fields.batch_rewriter import PRODUCER_ROLES, Producer, rewrite_batches
from replay.fields.field_layout import FieldValue, Role, Scope
from replay.fields.roles import walk
from replay.mapping.id_map import IdMap
from replay.mapping.version_converter import convert, names_topics_by_id
from replay.model.outcome import Change
from replay.model.refusal import RewriteError

REPORTED_RULES = frozenset({"kept", "unknown"})
"""Rules that are told also where they leave a value as it was."""


@dataclass(slots=True)
class Rewritten:
    """
    A request for the target.

    Attributes:
        body: In the version that was asked for; of no use where it is refused.
        changes: What was replaced.
        refusal: Why it can't be sent; empty where it can.
        unknown: What the target would have had to give before, as (role, captured value): of a
            producer id and epoch.
    """

    body: Container
    changes: list[Change] = field(default_factory=list)
    refusal: str = ""
    unknown: tuple[str, Any] | None = None


def rewrite(message: Message, version: int, ids: IdMap) -> Rewritten:
    """
    Return a captured request as it is to be sent.

    Args:
        message: The captured request; its body is changed.
        version: Of the API on the target.
        ids: What the target has in the place of what was captured.
    """
    schema, captured = message.schema, message.api_version
    if schema is None or captured is None or message.body is None:
        return Rewritten(Container(), refusal="the captured request can't be read")
    out = Rewritten(message.body)
    try:
        if version != captured and not names_topics_by_id(schema, version):
            # Ids that the target does not take become names before names are replaced.
            out.body = convert(
                schema, message.body, captured, version, ids.captured_topics, out.changes
            )
            captured = version
        for place in walk(schema, captured, out.body, ids.roles):
            _replace(place, ids, out)
        if captured != version:
            out.body = convert(schema, out.body, captured, version, ids.live_topics, out.changes)
    except RewriteError as why:
        unknown = (why.role, why.value) if why.role else None
        return Rewritten(Container(), out.changes, why.what, unknown)
    return out


def _replace(place: FieldValue, ids: IdMap, out: Rewritten) -> None:
    if place.value is None:
        return
    if place.role is Role.RECORDS:
        place.replace(_records(place, ids, out))
    elif place.role is Role.EMBEDDED:
        place.replace(_embedded(place, ids, out))
    else:
        new, why = ids.live(place.role, place.value, place.scope)
        if new != place.value:
            place.replace(new)
        if new != place.value or why in REPORTED_RULES:
            out.changes.append(Change(place.path, place.role, place.value, new, why))


def _records(place: FieldValue, ids: IdMap, out: Rewritten) -> bytes:
    topic, partition = ids.topic_of(place.scope), place.scope.partition

    def substitute(old: Producer, records: int) -> Producer:
        producer_id, epoch = ids.live_producer(old.producer_id, old.epoch)
        if epoch is None or topic is None or partition is None:
            return old
        known = ids.producers.live(old.producer_id, old.epoch) is not None
        sequence = old.sequence
        if known:
            captured = old.producer_id, old.epoch
            sequence = ids.producers.sequence(captured, topic, partition, sequence)
            ids.producers.record_written((producer_id, epoch), topic, partition, sequence, records)
        new = Producer(producer_id, epoch, sequence)
        for role, before, after in zip(PRODUCER_ROLES, old, new, strict=True):
            if before != after:
                out.changes.append(Change(f"{place.path}.{role}", role, before, after))
        return new

    return rewrite_batches(place.value, substitute)


def _embedded(place: FieldValue, ids: IdMap, out: Rewritten) -> bytes:
    """Replace what a member of a group wrote; what can't be read stays as it is."""
    data: bytes = place.value
    part: MemberField = "assignment" if place.field.name.endswith("assignment") else "metadata"
    # What a member joins with has the protocol's name beside it.
    found = read_member(
        place.path, data, part, out.body.get("protocol_type"), place.parent.get("name")
    )
    return data if found is None else _rebuilt(found, place.path, ids, place.scope, out.changes)


def _rebuilt(found: Embedded, path: str, ids: IdMap, scope: Scope, changes: list[Change]) -> bytes:
    """Return embedded bytes as they are to be sent; the very same ones where nothing changes."""
    if found.value is None or found.schema is None or found.version is None:
        return found.data
    is_same = True
    for each in found.inner:
        built = _rebuilt(each, f"{path}.{each.path}", ids, scope, changes)
        is_same &= built == each.data
        found.value[each.path] = built
    inside = Rewritten(found.value)
    for place in walk(found.schema, found.version, found.value, ids.roles, scope):
        _replace(place, ids, inside)
    if is_same and all(change.captured == change.sent for change in inside.changes):
        return found.data
    changes += [replace(change, path=f"{path}.{change.path}") for change in inside.changes]
    built = found.schema.codec(found.version).build(found.value)
    return found.data[: found.start] + built + found.left
