"""A tree of spans as lines: each field with its name, value, meaning and byte range."""

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
        topic_name: Returns the name of a topic id, or None.
        base: Added to every position; None where the bytes are not part of the frame.
        masked: Ranges [start, end) whose values are masked.
        nested_lines: Returns lines to show below a field, given its span and the enclosing topic.
    """

    owner: str
    topic_name: TopicName
    base: int | None = 0
    masked: Sequence[tuple[int, int]] = ()
    nested_lines: Callable[[Span, str | None], list[str]] = lambda span, topic: []

    def range_text(self, start: int, end: int) -> str:
        """Return ` [12..16)`, or an empty text without positions."""
        return "" if self.base is None else f" [{self.base + start}..{self.base + end})"

    def is_masked(self, span: Span) -> bool:
        """Return whether any byte of a span is secret."""
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
    """Return the topic of a struct, if it has one."""
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
    """Return the line about the decoding error, below the innermost span that failed."""
    if not span.problem or any(child.problem for child in span.children):
        return []
    return [f"! {span.problem}"]


def _field(span: Span, options: LineOptions, topic: str | None) -> list[str]:
    range_text = options.range_text(span.start, span.end)
    items = span.children if span.declared and span.declared.type.startswith("[]") else []
    if span.children and not (items and _fit_on_one_line(items)):
        count = f": {_count_text(len(items))}" if items and not span.problem else ""
        return [f"{span.name}{count}{range_text}", *indented(field_lines(span, options, topic))]
    if span.problem:
        return [f"{span.name}{range_text}", *indented(_problem_lines(span))]
    if options.is_masked(span):
        return [f"{span.name}: {MASK}{range_text}", *indented(options.nested_lines(span, topic))]
    text = _item_texts(span, options) if items else _annotated_value(span.name, span.value, options)
    return [f"{span.name}: {text}{range_text}", *indented(options.nested_lines(span, topic))]


def _fit_on_one_line(items: Sequence[Span]) -> bool:
    """Return whether elements fit on the line of their array."""
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
        topic = _name_of(value, options) if value.int else None
        description = escaped(topic) if topic else "none" * (not value.int)
    else:
        description = meaning(name, value, options.owner)
    return f"{value_text(value)} ({description})" if description else value_text(value)


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
