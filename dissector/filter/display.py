"""A display filter: what `-Y` takes."""

from __future__ import annotations

from dataclasses import dataclass, field

from dissector.filter.evaluate import Predicate, Row, predicate
from dissector.filter.grammar import node_of
from dissector.filter.masks import Rows, Table, rows_passing
from dissector.filter.names import BodyPath
from dissector.filter.nodes import Node, body_paths


@dataclass(frozen=True, slots=True)
class Filter:
    """
    A filter that has been read and checked.

    Attributes:
        text: As it was given.
        node: Its tree.
        paths: The body fields it looks at.
    """

    text: str
    node: Node
    paths: tuple[BodyPath, ...]
    _holds: Predicate = field(repr=False, compare=False)

    @property
    def needs_bodies(self) -> bool:
        """Whether any row's body may be asked for."""
        return bool(self.paths)

    def matches(self, row: Row) -> bool:
        """Tell whether a row passes."""
        return self._holds(row)

    def passing(self, table: Table) -> Rows:
        """Return the numbers of the rows of a table that pass: those that `matches` says."""
        return rows_passing(self.node, table)


def parse(text: str) -> Filter:
    """
    Read a display filter.

    Raises:
        FilterError: It is none, names what does not exist, or compares what can't be compared; with
            the place in the text.
    """
    node = node_of(text)
    return Filter(text, node, tuple(body_paths(node)), predicate(node))
