"""
Summary fields ("facts") of a body: error codes, topics, and topic ids with their names.

An extraction plan is derived from the declaration once for each version. It lists only the fields
that lead to facts; the rest of a body is not visited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from uuid import UUID

from dissector.protocol.error_codes import error_name
from dissector.protocol.field_meanings import meaning_of
from dissector.protocol.field_roles import Role
from dissector.protocol.schema import Field, Schema, split_tagged

NO_ID = UUID(int=0)
CLUSTER_METADATA, CLUSTER_METADATA_ID = "__cluster_metadata", UUID(int=1)
"""
KRaft's metadata topic and its fixed id.

Source: KIP-595; Kafka, Uuid.java (METADATA_TOPIC_ID).
"""


@dataclass(slots=True, eq=False, repr=False)
class Facts:
    """
    The facts of one or more bodies.

    Attributes:
        errors: Names of the errors other than NONE, each once, in wire order (as keys).
        topics: Topics by name (str), or by id (UUID) if the message has no name with it; for
            records.
        names: Topic id -> name.
    """

    errors: dict[str, None] = field(default_factory=dict)
    topics: dict[str | UUID, None] = field(default_factory=dict)
    names: dict[UUID, str] = field(default_factory=dict)


NO_FACT, ERROR, TOPIC, TOPIC_ID, PAIR_NAME, PAIR_ID = range(6)
"""
Role of a field: none; an error code; a topic's name or id alone; the name or the id of a struct
with both, which maps the id to the name.
"""


def fact_role(each: Field, siblings: Sequence[Field]) -> int:
    """
    Return the role of a field of a body.

    Args:
        each: The field.
        siblings: All fields of its struct in the same version.
    """
    beside = {meaning_of(other).role for other in siblings}
    match meaning_of(each).role:
        case Role.ERROR:
            return ERROR
        case Role.TOPIC:
            return PAIR_NAME if Role.TOPIC_ID in beside else TOPIC
        case Role.TOPIC_ID:
            return PAIR_ID if Role.TOPIC in beside else TOPIC_ID
    return NO_FACT


@dataclass(frozen=True, slots=True)
class _ExtractionPlan:
    """
    The fields of one struct that are facts or contain them, in wire order.

    Attributes:
        fields: Name, role and, for nested structs, the plan of their fields. Of a name and id pair
            only the second field has its role: both values are known there.
        pair: Names of the fields with the name and the id of one topic; empty without any.
    """

    fields: tuple[tuple[str, int, _ExtractionPlan | None], ...]
    pair: tuple[str, str]

    def __bool__(self) -> bool:
        return bool(self.fields)

    def collect(self, body: Mapping[str, Any], facts: Facts) -> None:
        """Add the facts of a body or nested struct."""
        for name, role, nested in self.fields:
            value = body[name]
            if nested is not None:
                for item in (value,) if isinstance(value, Mapping) else value or ():
                    nested.collect(item, facts)
            elif role == ERROR:
                if value:
                    facts.errors[error_name(value)] = None
            elif role == TOPIC:
                facts.topics.update(dict.fromkeys(_topic_names(value)))
            elif role == TOPIC_ID:
                _add_topic("", value, facts)
            else:
                _add_topic(body[self.pair[0]], body[self.pair[1]], facts)


def _add_topic(name: str | None, topic_id: UUID, facts: Facts) -> None:
    """Add a topic by its name, else by its id; record the name of the id."""
    if name and topic_id != NO_ID:
        facts.names.setdefault(topic_id, name)
    if name or topic_id != NO_ID:
        facts.topics[name or topic_id] = None


def _topic_names(value: Any) -> list[str]:
    """Return the topic names in a field, which is a text, a list of texts, or null."""
    if value is None or value == "":
        return []
    return [value] if isinstance(value, str) else [name for name in value if name]


@cache
def extraction_plan(schema: Schema, version: int) -> _ExtractionPlan:
    """Return the extraction plan of a message at a version."""
    return _struct_plan(schema.fields, version)


def _struct_plan(fields: tuple[Field, ...], version: int) -> _ExtractionPlan:
    plain, tagged = split_tagged(fields, version)
    siblings = plain + tagged
    planned: list[tuple[str, int, _ExtractionPlan | None]] = []
    pair: dict[int, str] = {}
    for each in siblings:
        role = fact_role(each, siblings)
        nested = _struct_plan(each.fields, version) if each.fields else None
        if role in (PAIR_NAME, PAIR_ID):
            pair[role] = each.name
            role = role if len(pair) == 2 else NO_FACT
        if nested or role != NO_FACT:
            planned.append((each.name, role, nested or None))
    return _ExtractionPlan(tuple(planned), (pair.get(PAIR_NAME, ""), pair.get(PAIR_ID, "")))


def collect(schema: Schema, version: int, body: Mapping[str, Any], facts: Facts) -> None:
    """Add the facts of a decoded body."""
    extraction_plan(schema, version).collect(body, facts)


@cache
def carries_topic_names(schema: Schema, version: int) -> bool:
    """Return whether a message has fields for a topic's id together with its name."""
    return _carries_pairs(extraction_plan(schema, version))


def _carries_pairs(plan: _ExtractionPlan) -> bool:
    return any(plan.pair) or any(n is not None and _carries_pairs(n) for _, _, n in plan.fields)
