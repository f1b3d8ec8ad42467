"""A display filter: what `-Y` takes."""

from __future__ import annotations

from dataclasses import dataclass, field

from dissector.filter.evaluate import Predicate, Row, predicate
from dissector.filter.grammar import parse_node
from dissector.filter.masks import Rows, Table, rows_passing
from dissector.filter.names import BodyPath
from dissector.filter.nodes import Node, body_paths
from dissector.filter.of_records import exchange_node, tests_record_columns


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
    _predicate: Predicate = field(repr=False, compare=False)

    @property
    def uses_record_columns(self) -> bool:
        """Whether it looks at anything that one record has and another of its exchange has not."""
        return tests_record_columns(self.node)

    def exchange_filter(self) -> Filter:
        """Return what an exchange passes of which any record may pass."""
        return _make_filter(self.text, exchange_node(self.node))

    @property
    def needs_bodies(self) -> bool:
        """Whether any row's body may be asked for."""
        return bool(self.paths)

    def matches(self, row: Row) -> bool:
        """Tell whether a row passes."""
        return self._predicate(row)

    def passing(self, table: Table) -> Rows:
        """Return the numbers of the rows of a table that pass: those that `matches` says."""
        return rows_passing(self.node, table)


def parse(text: str, *, records: bool = False) -> Filter:
    """
    Read a display filter.

    Args:
        text: The filter.
        records: Whether rows are records, with the columns of `records` before those of `pairs`.

    Raises:
        FilterError: It is none, names what does not exist, or compares what can't be compared; with
            the place in the text.
    """
    return _make_filter(text, parse_node(text, records=records))


def _make_filter(text: str, node: Node) -> Filter:
    return Filter(text, node, tuple(body_paths(node)), predicate(node))
