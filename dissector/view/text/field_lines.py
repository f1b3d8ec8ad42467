"""A tree of spans as lines: each field with its name, value, meaning and place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from dissector.protocol.facts import CLUSTER_METADATA, CLUSTER_METADATA_ID
from dissector.protocol.spans import Span
from dissector.view.text.annotations import meaning
from dissector.view.text.escape import escaped, hexed, quoted

MASK = "***"
_ON_ONE_LINE = 16

TopicName = Callable[[UUID], str | None]


@dataclass(frozen=True, slots=True)
class Look:
    """
    How spans are shown.

    Attributes:
        where: What the fields belong to: `Produce request`.
        topic_name: Name of a topic id, or None.
        base: Added to every position; None where the bytes are not in the frame as they are.
        hidden: Ranges [start, end) of which the values are masked.
        below: Lines to hang below a field: gets its span and the topic around it.
    """

    where: str
    topic_name: TopicName
    base: int | None = 0
    hidden: Sequence[tuple[int, int]] = ()
    below: Callable[[Span, str | None], list[str]] = lambda span, topic: []

    def place(self, start: int, end: int) -> str:
        """Return ` [12..16)`, or nothing."""
        return "" if self.base is None else f" [{self.base + start}..{self.base + end})"

    def hides(self, span: Span) -> bool:
        """Tell whether any byte of a span is secret."""
        return any(start < span.end and span.start < end for start, end in self.hidden)


def indented(lines: Sequence[str]) -> list[str]:
    """Return lines one level deeper."""
    return [f"  {line}" for line in lines]


def fields_of(root: Span, look: Look, topic: str | None = None) -> list[str]:
    """
    Return the lines of all fields of a message or struct.

    Args:
        root: Its span.
        look: How to show it.
        topic: The topic that encloses it.
    """
    topic = _topic(root, look) or topic
    lines = [line for child in root.children for line in _field(child, look, topic)]
    return lines + _stopped(root)


def _topic(struct: Span, look: Look) -> str | None:
    """Return the topic that a struct is about, if it is about one."""
    for child in struct.children:
        if isinstance(child.value, str) and child.declared and child.declared.entity == "topicName":
            return child.value
        if isinstance(child.value, UUID) and child.name == "topic_id":
            return _name_of(child.value, look)
    return None


def _name_of(topic_id: UUID, look: Look) -> str | None:
    if topic_id == CLUSTER_METADATA_ID:
        return CLUSTER_METADATA
    return look.topic_name(topic_id)


def _stopped(span: Span) -> list[str]:
    """Return the line that says why reading stopped, below the innermost span that failed."""
    if not span.problem or any(child.problem for child in span.children):
        return []
    return [f"! {span.problem}"]


def _field(span: Span, look: Look, topic: str | None) -> list[str]:
    place = look.place(span.start, span.end)
    items = span.children if span.declared and span.declared.type.startswith("[]") else []
    if span.children and not (items and _are_plain(items)):
        count = f": {_items(len(items))}" if items and not span.problem else ""
        return [f"{span.name}{count}{place}", *indented(fields_of(span, look, topic))]
    if span.problem:
        return [f"{span.name}{place}", *indented(_stopped(span))]
    if look.hides(span):
        return [f"{span.name}: {MASK}{place}", *indented(look.below(span, topic))]
    text = _listed(span, look) if items else _shown(span.name, span.value, look)
    return [f"{span.name}: {text}{place}", *indented(look.below(span, topic))]


def _are_plain(items: Sequence[Span]) -> bool:
    """Tell whether elements fit on the line of their array."""
    return len(items) <= _ON_ONE_LINE and not any(
        item.children or item.problem or isinstance(item.value, bytes) for item in items
    )


def _items(count: int) -> str:
    return f"{count:,} item{'s' * (count != 1)}"


def _listed(span: Span, look: Look) -> str:
    values = [_shown(span.name, item.value, look) for item in span.children]
    return f"{_items(len(values))}: {', '.join(values)}"


def _shown(name: str, value: Any, look: Look) -> str:
    if name == "topic_id" and isinstance(value, UUID):
        known = _name_of(value, look) if value.int else None
        means = escaped(known) if known else "none" * (not value.int)
    else:
        means = meaning(name, value, look.where)
    return f"{value_text(value)} ({means})" if means else value_text(value)


def value_text(value: Any) -> str:
    """Return the text of a single value."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return quoted(value)
        case bytes():
            return hexed(value)
        case list():
            return _items(len(value))
        case dict():
            return "{}"
        case _:
            return str(value)
