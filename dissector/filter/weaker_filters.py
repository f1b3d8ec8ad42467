"""
Filters that pass all that another filter passes, by some of its tests.

A filter of records gives one of exchanges, so that few exchanges are decoded; the tests of time
alone choose the part of a capture that a filter is about, and those of topics the rows of topics.
"""

from __future__ import annotations

from collections.abc import Callable

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

_TIMES = {
    f"{side}_{part}"
    for side in ("request", "response")
    for part in ("packet", "time_ns", "relative_s", "epoch_s")
}
"""Columns that place an exchange in the capture."""


def tests_record_columns(node: Node) -> bool:
    """Return whether a filter tests a column of records."""
    return any(map(_is_record_test, leaves(node)))


def exchange_node(node: Node) -> Node:
    """Return a filter that is true for every exchange with a passing record."""
    return _weakened(node, lambda leaf: _topic_test(leaf) if _is_record_test(leaf) else leaf)


def time_node(node: Node) -> Node:
    """Return a filter that is true wherever another is, and tests times and packet numbers only."""
    return _weakened(node, lambda leaf: leaf if _is_time_test(leaf) else Always())


def topic_node(node: Node) -> Node:
    """Return a filter that is true wherever another is, and tests topics of exchanges only."""
    return _weakened(node, lambda leaf: leaf if _is_topic_test(leaf) else Always())


def _weakened(node: Node, weaker: Callable[[Leaf], Node]) -> Node:
    """Return a filter with weaker tests, which is true wherever the filter is."""
    match node:
        case Leaf():
            return weaker(node)
        case Not() if any(weaker(leaf) is not leaf for leaf in leaves(node)):
            return Always()
        case And(parts):
            return And(tuple(_weakened(part, weaker) for part in parts))
        case Or(parts):
            return Or(tuple(_weakened(part, weaker) for part in parts))
        case _:
            return node


def _topic_test(leaf: Leaf) -> Node:
    """Return the same test for an exchange's topics, if the leaf tests a topic; else `Always`."""
    source = leaf.name.sources[0]
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


def _is_topic_test(leaf: Leaf) -> bool:
    sources = leaf.name.sources
    return not leaf.name.is_count and all(
        isinstance(each, Column) and each.name == "topics" for each in sources
    )


def _is_time_test(leaf: Leaf) -> bool:
    return all(isinstance(source, Column) and source.name in _TIMES for source in leaf.name.sources)
