"""
What a table wants to know of a body: its errors, its topics, and which id is which topic.

A plan is made from the declaration once a version: it names only the fields that lead to such
facts, so that a body is walked where it matters and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from uuid import UUID

from dissector.protocol.error_codes import error_name
from dissector.protocol.schema import Field, Schema, split_tagged

NO_ID = UUID(int=0)
CLUSTER_METADATA, CLUSTER_METADATA_ID = "__cluster_metadata", UUID(int=1)
"""
KRaft's own topic, whose id is always the same.

Source: KIP-595; Kafka, Uuid.java (METADATA_TOPIC_ID).
"""


@dataclass(slots=True)
class Facts:
    """
    The facts of one or more bodies.

    Attributes:
        errors: Names of the errors that are not NONE, each once, in wire order (as keys).
        topics: Names (str) and ids (UUID, where no name stands beside them) of topics, likewise.
        names: Topic ids with their names.
    """

    errors: dict[str, None] = field(default_factory=dict)
    topics: dict[str | UUID, None] = field(default_factory=dict)
    names: dict[UUID, str] = field(default_factory=dict)


NO_FACT, ERROR, TOPIC, TOPIC_ID, PAIR_NAME, PAIR_ID = range(6)
"""
What a field tells: an error; a topic by its name, or by its id where no name stands beside it; one
half of a pair, which also tells that this topic has that id.
"""


def fact_role(each: Field, siblings: Sequence[Field]) -> int:
    """
    Return what a field of a body tells.

    Args:
        each: The field.
        siblings: All fields of its struct, in the same version.
    """
    if each.type == "int16" and each.name.endswith("error_code"):
        return ERROR
    if _is_topic_name(each):
        return PAIR_NAME if any(map(_is_topic_id, siblings)) else TOPIC
    if _is_topic_id(each):
        return PAIR_ID if any(map(_is_topic_name, siblings)) else TOPIC_ID
    return NO_FACT


def _is_topic_name(each: Field) -> bool:
    return each.entity == "topicName"


def _is_topic_id(each: Field) -> bool:
    return each.type == "uuid" and each.name == "topic_id"


@dataclass(frozen=True, slots=True)
class _ExtractionPlan:
    """
    The fields of one struct that tell something, in wire order.

    Attributes:
        fields: Name and role of each; of those that lead deeper, the plan of what is in them. A
            pair is complete, and told, at its second half.
        pair: The names of the fields that hold name and id of one topic, if any do.
    """

    fields: tuple[tuple[str, int, _ExtractionPlan | None], ...]
    pair: tuple[str, str]

    def __bool__(self) -> bool:
        return bool(self.fields)

    def collect(self, body: Mapping[str, Any], facts: Facts) -> None:
        """Add what a body tells."""
        for name, what, deeper in self.fields:
            value = body[name]
            if deeper is not None:
                for item in (value,) if isinstance(value, Mapping) else value or ():
                    deeper.collect(item, facts)
            elif what == ERROR:
                if value:
                    facts.errors[error_name(value)] = None
            elif what == TOPIC:
                facts.topics.update(dict.fromkeys(_topic_names(value)))
            elif what == TOPIC_ID:
                _add_topic("", value, facts)
            else:
                _add_topic(body[self.pair[0]], body[self.pair[1]], facts)


def _add_topic(name: str | None, topic_id: UUID, facts: Facts) -> None:
    """Add a topic by its name, else by its id."""
    if name and topic_id != NO_ID:
        facts.names.setdefault(topic_id, name)
    if name or topic_id != NO_ID:
        facts.topics[name or topic_id] = None


def _topic_names(value: Any) -> list[str]:
    """Return the topic names in a field: a text, a list of them, or nothing."""
    if value is None or value == "":
        return []
    return [value] if isinstance(value, str) else [name for name in value if name]


@cache
def extraction_plan(schema: Schema, version: int) -> _ExtractionPlan:
    """Return the plan of a message at a version."""
    return _struct_plan(schema.fields, version)


def _struct_plan(fields: tuple[Field, ...], version: int) -> _ExtractionPlan:
    plain, tagged = split_tagged(fields, version)
    here = plain + tagged
    telling: list[tuple[str, int, _ExtractionPlan | None]] = []
    pair: dict[int, str] = {}
    for each in here:
        what = fact_role(each, here)
        deeper = _struct_plan(each.fields, version) if each.fields else None
        if what in (PAIR_NAME, PAIR_ID):
            pair[what] = each.name
            what = what if len(pair) == 2 else NO_FACT
        if deeper or what != NO_FACT:
            telling.append((each.name, what, deeper or None))
    return _ExtractionPlan(tuple(telling), (pair.get(PAIR_NAME, ""), pair.get(PAIR_ID, "")))


def collect(schema: Schema, version: int, body: Mapping[str, Any], facts: Facts) -> None:
    """Add the facts of a decoded body."""
    extraction_plan(schema, version).collect(body, facts)


@cache
def carries_topic_names(schema: Schema, version: int) -> bool:
    """Tell whether a message can say which topic id has which name."""
    return _carries_pairs(extraction_plan(schema, version))


def _carries_pairs(node: _ExtractionPlan) -> bool:
    return any(node.pair) or any(d is not None and _carries_pairs(d) for _, _, d in node.fields)
