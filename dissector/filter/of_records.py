"""A filter of records asks first which exchanges can have one that passes: these are few."""

from __future__ import annotations

from dissector.filter.names import Column, resolve
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


def is_of_records(node: Node) -> bool:
    """Return whether a filter looks at a column of records."""
    return any(map(_is_of_record, leaves(node)))


def of_exchanges(node: Node) -> Node:
    """Return a filter that holds for every exchange with a record for which this one holds."""
    match node:
        case Leaf() if _is_of_record(node):
            return _topics(node)
        case Not() if is_of_records(node):
            return Always()
        case And(parts):
            return And(tuple(map(of_exchanges, parts)))
        case Or(parts):
            return Or(tuple(map(of_exchanges, parts)))
        case _:
            return node


def _topics(leaf: Leaf) -> Node:
    """Return the same test of the topics of an exchange, where it is one of topics."""
    (source,) = leaf.name.sources
    if not isinstance(source, Column) or source.name != "topic":
        return Always()
    match leaf.test:
        case Contains() | Matches():
            return Leaf(resolve("topics"), leaf.test)
        case Compare("==" | "===", literal) if not literal.is_null:
            return Leaf(resolve("topics"), Compare("==", literal))
        case _:
            return Always()


def _is_of_record(leaf: Leaf) -> bool:
    return any(isinstance(source, Column) and source.of_record for source in leaf.name.sources)
