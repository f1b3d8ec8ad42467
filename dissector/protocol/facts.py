"""
What a table wants to know of a body: its errors, its topics, and which id is which topic.

A plan is made from the declaration once a version: it names only the fields that lead to such
facts, so that a body is walked where it matters and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from uuid import UUID

from dissector.protocol.error_codes import error_name
from dissector.protocol.schema import Field, Schema, split

NO_ID = UUID(int=0)


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


@dataclass(frozen=True, slots=True)
class _Plan:
    """The fields of one struct that tell something."""

    errors: tuple[str, ...]
    names: tuple[str, ...]
    id: str
    deeper: tuple[tuple[str, _Plan], ...]

    def __bool__(self) -> bool:
        return bool(self.errors or self.names or self.id or self.deeper)

    def collect(self, body: Mapping[str, Any], facts: Facts) -> None:
        """Add what a body tells."""
        for name in self.errors:
            if body[name]:
                facts.errors[error_name(body[name])] = None
        topic_id = body[self.id] if self.id else NO_ID
        known = [t for name in self.names for t in _texts(body[name])]
        if topic_id != NO_ID:
            if len(known) == 1:
                facts.names[topic_id] = known[0]
            elif not known:
                facts.topics[topic_id] = None
        for topic in known:
            facts.topics[topic] = None
        for name, plan in self.deeper:
            value = body[name]
            for item in (value,) if isinstance(value, Mapping) else value or ():
                plan.collect(item, facts)


def _texts(value: Any) -> list[str]:
    """Return the topic names in a field: a text, a list of them, or nothing."""
    if value is None or value == "":
        return []
    return [value] if isinstance(value, str) else [name for name in value if name]


@cache
def plan(schema: Schema, version: int) -> _Plan:
    """Return the plan of a message at a version."""
    return _plan(schema.fields, version)


def _plan(fields: tuple[Field, ...], version: int) -> _Plan:
    plain, tagged = split(fields, version)
    here = plain + tagged
    deeper = [(f, _plan(f.fields, version)) for f in here if f.fields]
    return _Plan(
        errors=tuple(f.name for f in here if f.type == "int16" and f.name.endswith("error_code")),
        names=tuple(f.name for f in here if f.entity == "topicName"),
        id=next((f.name for f in here if f.type == "uuid" and f.name == "topic_id"), ""),
        deeper=tuple((f.name, p) for f, p in deeper if p),
    )


def collect(schema: Schema, version: int, body: Mapping[str, Any], facts: Facts) -> None:
    """Add the facts of a decoded body."""
    plan(schema, version).collect(body, facts)


@cache
def tells_names(schema: Schema, version: int) -> bool:
    """Tell whether a message can say which topic id has which name."""
    return _pairs(plan(schema, version))


def _pairs(node: _Plan) -> bool:
    deeper = (child for _, child in node.deeper)
    return bool(node.id and node.names) or any(_pairs(child) for child in deeper)
