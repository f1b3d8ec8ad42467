"""Derives a filter of exchanges from a filter of records, so that few exchanges are decoded."""

from __future__ import annotations

from dissector.filter.names import resolve
from dissector.filter.nodes import (
    Always,
    And,
    Compare,
    Contains,
    Leaf,
    Matches,
    Node,
    Not,
    Or,
    leaves,
)
from dissector.filter.operands import Column


def tests_record_columns(node: Node) -> bool:
    """Return whether a filter tests a column of records."""
    return any(map(_is_record_test, leaves(node)))


def exchange_node(node: Node) -> Node:
    """Return a filter that is true for every exchange with a passing record."""
    match node:
        case Leaf() if _is_record_test(node):
            return _topic_test(node)
        case Not() if tests_record_columns(node):
            return Always()
        case And(parts):
            return And(tuple(map(exchange_node, parts)))
        case Or(parts):
            return Or(tuple(map(exchange_node, parts)))
        case _:
            return node


def _topic_test(leaf: Leaf) -> Node:
    """Return the same test for an exchange's topics, if the leaf tests a topic; else `Always`."""
    (source,) = leaf.name.sources
    is_topic = isinstance(source, Column) and source.name == "topic"
    if not is_topic or leaf.name.steps or leaf.name.is_count or leaf.every:
        return Always()
    match leaf.test:
        case Contains() | Matches():
            return Leaf(resolve("topics"), leaf.test)
        case Compare("==" | "===", literal) if not literal.is_null:
            return Leaf(resolve("topics"), Compare("==", literal))
        case _:
            return Always()


def _is_record_test(leaf: Leaf) -> bool:
    return any(
        isinstance(source, Column) and source.is_record_column for source in leaf.name.sources
    )
