"""A parsed display filter: the argument of `-Y`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from dissector.column_catalogue import RECORDS, VALUES
from dissector.errors import FilterError
from dissector.filter.evaluate import Predicate, Row, predicate
from dissector.filter.grammar import parse_node
from dissector.filter.masks import Rows, Table, rows_passing
from dissector.filter.nodes import Node, body_paths, leaves, reads_bodies, tests_values
from dissector.filter.operands import BodyPath, Column, packet_facts
from dissector.filter.weaker_filters import (
    exchange_node,
    tests_record_columns,
    time_node,
    topic_node,
)


@dataclass(frozen=True, slots=True)
class Filter:
    """
    A filter that has been parsed and checked.

    Attributes:
        text: The filter as written.
        node: Its tree.
        paths: The body fields that it tests.
        refinement: A test of the exchanges that pass the tree; None without one.
    """

    text: str
    node: Node
    paths: tuple[BodyPath, ...]
    _predicate: Predicate = field(repr=False, compare=False)
    refinement: Predicate | None = field(default=None, repr=False, compare=False)

    @property
    def uses_record_columns(self) -> bool:
        """Whether it tests columns that differ between records of one exchange."""
        return tests_record_columns(self.node)

    @property
    def tests_only_record_columns(self) -> bool:
        """Whether it needs only columns of `records`."""
        known = {each.name for each in (*RECORDS, *VALUES)}
        return not self.paths and self.columns <= known

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns that it tests."""
        return frozenset(each.name for each in self._columns())

    def _columns(self) -> Iterator[Column]:
        for leaf in leaves(self.node):
            yield from (each for each in leaf.name.sources if isinstance(each, Column))

    @property
    def packet_facts(self) -> frozenset[str]:
        """What it tests of packets that is kept only on request: `lengths`, `comments`."""
        return packet_facts(self._columns())

    @property
    def uses_values(self) -> bool:
        """Whether it tests decoded keys or values."""
        return tests_values(self.node)

    def exchange_filter(self) -> Filter:
        """Return a filter that passes an exchange if any of its records may pass."""
        return _make_filter(self.text, exchange_node(self.node))

    def time_filter(self) -> Filter | None:
        """Return its tests of time, which pass whatever it passes; None without any."""
        return self._weaker(time_node(self.node))

    def topic_filter(self) -> Filter | None:
        """Return its tests of topics, which pass whatever it passes; None without any."""
        return self._weaker(topic_node(self.node))

    def _weaker(self, node: Node) -> Filter | None:
        return _make_filter(self.text, node) if any(True for _ in leaves(node)) else None

    @property
    def needs_bodies(self) -> bool:
        """Whether it may need the decoded body of a row."""
        return reads_bodies(self.node)

    def matches(self, row: Row) -> bool:
        """Return whether a row passes."""
        return self._predicate(row) and (self.refinement is None or self.refinement(row))

    def passing(self, table: Table) -> Rows:
        """Return the numbers of the rows of a table that pass, the same as by `matches`."""
        rows = rows_passing(self.node, table)
        if self.refinement is None:
            return rows
        refined = (self.refinement(table.exchange(row)) for row in rows.tolist())
        return rows[np.fromiter(refined, np.bool_, len(rows))]


def parse(text: str, *, records: bool = False, hooks: bool = False) -> Filter:
    """
    Parse a display filter.

    Args:
        text: The filter.
        records: Whether rows are records; columns of `records` then take precedence over columns of
            `pairs`.
        hooks: Whether the rows have columns of hooks.

    Raises:
        FilterError: A syntax error, an unknown name, or a comparison of incomparable values; with
            the position in the text.
    """
    found = _make_filter(text, parse_node(text, records=records))
    for path in found.paths:
        if path.kind == "hook" and not hooks:
            raise FilterError(text, "no hooks take part here", max(text.find(str(path)), 0))
    return found


def parse_with_values(text: str, *, hooks: bool = False) -> Filter:
    """
    Parse a filter of exchanges, which may test decoded keys and values of their records.

    If it does, it is a filter of records: an exchange is to pass if one of its records does.

    Raises:
        FilterError: See `parse`.
    """
    try:
        return parse(text, hooks=hooks)
    except FilterError:
        with suppress(FilterError):
            found = parse(text, records=True, hooks=hooks)
            if found.uses_values:
                return found
        raise


def _make_filter(text: str, node: Node) -> Filter:
    return Filter(text, node, tuple(body_paths(node)), predicate(node))
