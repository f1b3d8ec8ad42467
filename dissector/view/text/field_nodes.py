"""A tree of spans as nodes: each field with its name, value, meaning and bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from dissector.protocol.embedded.secrecy.blanked_ranges import overlaps_secret
from dissector.protocol.facts import CLUSTER_METADATA, CLUSTER_METADATA_ID
from dissector.protocol.field_meanings import meaning_of
from dissector.protocol.field_roles import Role
from dissector.protocol.spans import Span
from dissector.view.text.annotations import meaning
from dissector.view.text.escape import escaped, hexed, quoted
from dissector.view.text.tree_node import Block, Load, Place, TreeNode

MASK = "***"
_MAX_ITEMS_ON_LINE = 16

TopicName = Callable[[UUID], str | None]


@dataclass(eq=False, slots=True)
class NodeOptions:
    """
    How spans are shown.

    Attributes:
        owner: The context of the fields: `Produce request`.
        topic_name: Returns the name of a topic id, or None.
        block: The bytes that hold them; None if they are unknown.
        base: Added to every position.
        masked: Ranges [start, end) of masked values, in order and disjoint.
        nested: Returns the loader of nodes below a field, given its span and the enclosing topic;
            None without any.
        filter_path: Returns the path of a field in display filters, given its span's path; empty
            without one.
    """

    owner: str
    topic_name: TopicName
    block: Block | None
    base: int = 0
    masked: Sequence[tuple[int, int]] = ()
    nested: Callable[[Span, str | None], Load | None] = lambda span, topic: None
    filter_path: Callable[[str], str] = lambda path: ""

    def place(self, start: int, end: int) -> Place | None:
        """Return the place of bytes; None where they are unknown."""
        return None if self.block is None else Place(self.block, self.base + start, self.base + end)

    def is_masked(self, span: Span) -> bool:
        """Return whether any byte of a span is secret."""
        return overlaps_secret(self.masked, span.start, span.end)

    def node(self, span: Span, text: str, load: Load | None) -> TreeNode:
        """Return the node of a span."""
        place = self.place(span.start, span.end)
        return TreeNode(span.name, text, place, load, self.filter_path(span.path), span.value)


def field_nodes(root: Span, options: NodeOptions, topic: str | None = None) -> list[TreeNode]:
    """
    Return the nodes of all fields of a message or struct.

    Args:
        root: Its span.
        options: How to show it.
        topic: The topic that encloses it.
    """
    topic = _topic(root, options) or topic
    return [_field(child, options, topic) for child in root.children] + _problems(root, options)


def _topic(struct: Span, options: NodeOptions) -> str | None:
    """Return the topic of a struct, if any."""
    for child in struct.children:
        role = meaning_of(child.declared).role if child.declared else None
        if role is Role.TOPIC and isinstance(child.value, str):
            return child.value
        if role is Role.TOPIC_ID and isinstance(child.value, UUID):
            return _name_of(child.value, options)
    return None


def _name_of(topic_id: UUID, options: NodeOptions) -> str | None:
    if topic_id == CLUSTER_METADATA_ID:
        return CLUSTER_METADATA
    return options.topic_name(topic_id)


def _problems(span: Span, options: NodeOptions) -> list[TreeNode]:
    """Return the node of the decoding error, below the innermost span that failed."""
    if not span.problem or any(child.problem for child in span.children):
        return []
    return [TreeNode.problem(span.problem, options.place(span.end, span.end + 1))]


def _field(span: Span, options: NodeOptions, topic: str | None) -> TreeNode:
    items = span.children if span.declared and span.declared.type.startswith("[]") else []
    if span.children and not (items and _fit_on_one_line(items)):
        count = _count_text(len(items)) if items and not span.problem else ""
        return options.node(span, count, lambda: field_nodes(span, options, topic))
    if span.problem:
        return options.node(span, "", lambda: _problems(span, options))
    if options.is_masked(span):
        node = options.node(span, MASK, options.nested(span, topic))
        node.is_masked = True
        return node
    if items:
        return options.node(span, _item_texts(span, options), lambda: _item_nodes(span, options))
    text = _annotated_value(span.name, span.value, options)
    return options.node(span, text, options.nested(span, topic))


def _fit_on_one_line(items: Sequence[Span]) -> bool:
    """Return whether elements fit on the line of their array."""
    return len(items) <= _MAX_ITEMS_ON_LINE and not any(
        item.children or item.problem or isinstance(item.value, bytes) for item in items
    )


def _count_text(count: int) -> str:
    return f"{count:,} item{'s' * (count != 1)}"


def _item_texts(span: Span, options: NodeOptions) -> str:
    values = [_annotated_value(span.name, item.value, options) for item in span.children]
    return f"{_count_text(len(values))}: {', '.join(values)}"


def _item_nodes(array: Span, options: NodeOptions) -> list[TreeNode]:
    """Return the nodes of elements that are on the line of their array."""
    nodes = []
    for item in array.children:
        node = options.node(item, _annotated_value(array.name, item.value, options), None)
        node.is_inline = True
        nodes.append(node)
    return nodes


def _annotated_value(name: str, value: Any, options: NodeOptions) -> str:
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
