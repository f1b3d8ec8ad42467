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
_MAX_ITEMS_ON_LINE = 16

TopicName = Callable[[UUID], str | None]


@dataclass(frozen=True, slots=True)
class LineOptions:
    """
    How spans are shown.

    Attributes:
        owner: What the fields belong to: `Produce request`.
        topic_name: Name of a topic id, or None.
        base: Added to every position; None where the bytes are not in the frame as they are.
        masked: Ranges [start, end) of which the values are masked.
        nested_lines: Lines to hang below a field: gets its span and the topic around it.
    """

    owner: str
    topic_name: TopicName
    base: int | None = 0
    masked: Sequence[tuple[int, int]] = ()
    nested_lines: Callable[[Span, str | None], list[str]] = lambda span, topic: []

    def range_text(self, start: int, end: int) -> str:
        """Return ` [12..16)`, or nothing."""
        return "" if self.base is None else f" [{self.base + start}..{self.base + end})"

    def is_masked(self, span: Span) -> bool:
        """Tell whether any byte of a span is secret."""
        return any(start < span.end and span.start < end for start, end in self.masked)


def indented(lines: Sequence[str]) -> list[str]:
    """Return lines one level deeper."""
    return [f"  {line}" for line in lines]


def field_lines(root: Span, options: LineOptions, topic: str | None = None) -> list[str]:
    """
    Return the lines of all fields of a message or struct.

    Args:
        root: Its span.
        options: How to show it.
        topic: The topic that encloses it.
    """
    topic = _topic(root, options) or topic
    lines = [line for child in root.children for line in _field(child, options, topic)]
    return lines + _problem_lines(root)


def _topic(struct: Span, options: LineOptions) -> str | None:
    """Return the topic that a struct is about, if it is about one."""
    for child in struct.children:
        if isinstance(child.value, str) and child.declared and child.declared.entity == "topicName":
            return child.value
        if isinstance(child.value, UUID) and child.name == "topic_id":
            return _name_of(child.value, options)
    return None


def _name_of(topic_id: UUID, options: LineOptions) -> str | None:
    if topic_id == CLUSTER_METADATA_ID:
        return CLUSTER_METADATA
    return options.topic_name(topic_id)


def _problem_lines(span: Span) -> list[str]:
    """Return the line that says why reading stopped, below the innermost span that failed."""
    if not span.problem or any(child.problem for child in span.children):
        return []
    return [f"! {span.problem}"]


def _field(span: Span, options: LineOptions, topic: str | None) -> list[str]:
    place = options.range_text(span.start, span.end)
    items = span.children if span.declared and span.declared.type.startswith("[]") else []
    if span.children and not (items and _fit_on_one_line(items)):
        count = f": {_count_text(len(items))}" if items and not span.problem else ""
        return [f"{span.name}{count}{place}", *indented(field_lines(span, options, topic))]
    if span.problem:
        return [f"{span.name}{place}", *indented(_problem_lines(span))]
    if options.is_masked(span):
        return [f"{span.name}: {MASK}{place}", *indented(options.nested_lines(span, topic))]
    text = _item_texts(span, options) if items else _annotated_value(span.name, span.value, options)
    return [f"{span.name}: {text}{place}", *indented(options.nested_lines(span, topic))]


def _fit_on_one_line(items: Sequence[Span]) -> bool:
    """Tell whether elements fit on the line of their array."""
    return len(items) <= _MAX_ITEMS_ON_LINE and not any(
        item.children or item.problem or isinstance(item.value, bytes) for item in items
    )


def _count_text(count: int) -> str:
    return f"{count:,} item{'s' * (count != 1)}"


def _item_texts(span: Span, options: LineOptions) -> str:
    values = [_annotated_value(span.name, item.value, options) for item in span.children]
    return f"{_count_text(len(values))}: {', '.join(values)}"


def _annotated_value(name: str, value: Any, options: LineOptions) -> str:
    if name == "topic_id" and isinstance(value, UUID):
        known = _name_of(value, options) if value.int else None
        means = escaped(known) if known else "none" * (not value.int)
    else:
        means = meaning(name, value, options.owner)
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
            return _count_text(len(value))
        case dict():
            return "{}"
        case _:
            return str(value)
