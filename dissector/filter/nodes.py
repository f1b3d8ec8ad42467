"""
The tree of a filter; `str` of a node is an equivalent filter.

Leaves test the values of one name; the other nodes only combine results. An evaluator of whole
columns replaces the evaluation of leaves and keeps the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from dissector.column_catalogue import FROM_BODIES, VALUES
from dissector.filter.literals import Literal
from dissector.filter.operands import BodyPath, Column, Name


@dataclass(frozen=True, slots=True)
class Exists:
    """The name has a value that is not null; a list has an element."""

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Compare:
    """
    A comparison: `==`, `!=`, `===`, `!==`, `<`, `<=`, `>` or `>=`.

    `!=` and `===` must be true for all values of a name, the others for any of them.

    Source: Wireshark's manual page of display filters, "Comparison operators".
    """

    op: str
    literal: Literal

    def __str__(self) -> str:
        return f" {self.op} {self.literal}"


@dataclass(frozen=True, slots=True)
class Range:
    """From a value to a value, both included; only inside `in {...}`."""

    low: Literal
    high: Literal

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"


@dataclass(frozen=True, slots=True)
class OneOf:
    """`in {...}`: equal to one of the values, or within one of the ranges."""

    items: tuple[Literal | Range, ...]

    def __str__(self) -> str:
        return f" in {{{', '.join(map(str, self.items))}}}"


@dataclass(frozen=True, slots=True)
class Contains:
    """The value contains the text."""

    literal: Literal

    def __str__(self) -> str:
        return f" contains {self.literal}"


@dataclass(frozen=True, slots=True)
class Matches:
    """The regular expression is found anywhere in the value."""

    pattern: Literal

    def __str__(self) -> str:
        return f" matches {self.pattern}"


@dataclass(frozen=True, slots=True)
class Fails:
    """Another test is false for the value; only made by `as_any_tests`."""

    test: Exists | Compare | OneOf | Contains | Matches


Test: TypeAlias = Exists | Compare | OneOf | Contains | Matches | Fails


@dataclass(frozen=True, slots=True)
class Always:
    """`kafka`, `tcp`, `ip`, `frame`: true for every exchange."""

    def __str__(self) -> str:
        return "kafka"


@dataclass(frozen=True, slots=True)
class Leaf:
    """
    A test on a name.

    Attributes:
        name: The name.
        test: The test.
        every: Whether it must be true for every value of the name, and for at least one.
    """

    name: Name
    test: Test
    every: bool = False

    def __str__(self) -> str:
        return f"{'all ' if self.every else ''}{self.name}{self.test}"


@dataclass(frozen=True, slots=True)
class Not:
    """Negation."""

    part: Node

    def __str__(self) -> str:
        return f"not {_in_parentheses(self.part)}"


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction of two or more parts."""

    parts: tuple[Node, ...]

    def __str__(self) -> str:
        return " and ".join(map(_in_parentheses, self.parts))


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction of two or more parts."""

    parts: tuple[Node, ...]

    def __str__(self) -> str:
        return " or ".join(map(_in_parentheses, self.parts))


Node: TypeAlias = Always | Leaf | Not | And | Or


def _in_parentheses(node: Node) -> str:
    return f"({node})" if isinstance(node, And | Or) else str(node)


def leaves(node: Node) -> Iterator[Leaf]:
    """Yield the leaves from left to right."""
    match node:
        case Leaf():
            yield node
        case Not(part):
            yield from leaves(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from leaves(part)


def as_any_tests(leaf: Leaf) -> Node:
    """Return an equivalent of the leaf with leaves that are true if any value passes."""
    wanted: Test
    unwanted: Test
    match leaf.test:
        case Fails():
            return leaf
        case test if leaf.every:
            wanted, unwanted = test, Fails(test)
        case Compare("!=", literal):
            wanted, unwanted = Compare("!==", literal), Compare("==", literal)
        case Compare("===", literal):
            wanted, unwanted = Compare("==", literal), Compare("!==", literal)
        case _:
            return leaf
    return And((Leaf(leaf.name, wanted), Not(Leaf(leaf.name, unwanted))))


_DECODED = frozenset(each.name for each in VALUES)
_FROM_BODIES = frozenset(each.name for each in FROM_BODIES)


def tests_values(node: Node) -> bool:
    """Return whether a filter tests decoded keys or values."""
    return _tests_column(node, _DECODED)


def reads_bodies(node: Node) -> bool:
    """Return whether a filter tests what only decoded bodies have."""
    return bool(body_paths(node)) or _tests_column(node, _FROM_BODIES)


def _tests_column(node: Node, names: frozenset[str]) -> bool:
    sources = (source for leaf in leaves(node) for source in leaf.name.sources)
    return any(isinstance(each, Column) and each.name in names for each in sources)


def body_paths(node: Node) -> list[BodyPath]:
    """Return the body fields that a filter tests, without duplicates, in the order of the text."""
    sources = (source for leaf in leaves(node) for source in leaf.name.sources)
    return list(dict.fromkeys(source for source in sources if isinstance(source, BodyPath)))
