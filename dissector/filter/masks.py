"""
A filter's tree -> the rows of a whole table that pass.

The same answers as of `evaluate`, for many rows at once: a test is asked once for each distinct
value of a column, numbers are compared all at once, and rows that are decided are asked no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.filter import kinds
from dissector.filter.evaluate import Row, cheap_first, column_values, predicate, value_test
from dissector.filter.literals import Literal
from dissector.filter.names import BodyPath, Column
from dissector.filter.nodes import (
    Always,
    And,
    Compare,
    Exists,
    Leaf,
    Node,
    Not,
    OneOf,
    Or,
    Test,
    as_any_tests,
)

Rows: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]


class Table(Protocol):
    """The exchanges of a window, as a filter sees them; rows are given by their numbers."""

    def __len__(self) -> int: ...

    def number_column(self, name: str, rows: Rows) -> tuple[NDArray[Any], Mask] | None:
        """Return the values of a column of numbers, and which are there; None for other columns."""
        ...

    def distinct_values(self, name: str, rows: Rows) -> tuple[Rows, Sequence[object]]:
        """Return of each row the place of its value among the distinct ones, and these."""
        ...

    def any_value_at(
        self,
        path: BodyPath,
        rows: Rows,
        test: Callable[[object], bool],
        matches: Callable[[Row], bool],
    ) -> Mask:
        """
        Tell of each row whether any value at a path of a body passes.

        Args:
            path: The side and the names that lead to the field.
            rows: The rows.
            test: Tells of a value.
            matches: Tells of a row as an object, where that is what there is.
        """
        ...


def rows_passing(node: Node, table: Table) -> Rows:
    """Return the numbers of the rows that pass, in order."""
    return np.flatnonzero(_mask_of(node, table, np.arange(len(table))))


def _mask_of(node: Node, table: Table, rows: Rows) -> Mask:
    """Tell of each of some rows whether it passes."""
    match node:
        case Always():
            return np.ones(len(rows), np.bool_)
        case Leaf():
            plain = as_any_tests(node)
            if plain is not node:
                return _mask_of(plain, table, rows)
            return _short_circuit(
                True, (_source_function(node, each, table) for each in node.name.sources), rows
            )
        case Not(part):
            return ~_mask_of(part, table, rows)
        case And(parts):
            return _short_circuit(
                False, (_node_function(part, table) for part in cheap_first(parts)), rows
            )
        case Or(parts):
            return _short_circuit(
                True, (_node_function(part, table) for part in cheap_first(parts)), rows
            )


_MaskFunction: TypeAlias = Callable[[Rows], Mask]


def _short_circuit(decisive: bool, functions: Iterable[_MaskFunction], rows: Rows) -> Mask:
    """Ask one after the other, each only of rows for which none before gave the decisive answer."""
    out = np.full(len(rows), not decisive)
    left = np.arange(len(rows))
    for ask in functions:
        if not len(left):
            break
        decided = ask(rows[left]) == decisive
        out[left[decided]] = decisive
        left = left[~decided]
    return out


def _node_function(node: Node, table: Table) -> _MaskFunction:
    return lambda rows: _mask_of(node, table, rows)


def _source_function(leaf: Leaf, source: Column | BodyPath, table: Table) -> _MaskFunction:
    test = value_test(leaf.test, leaf.name.kinds)
    if isinstance(source, BodyPath):
        holds = predicate(leaf)
        return lambda rows: table.any_value_at(source, rows, test, holds)
    exists = isinstance(leaf.test, Exists)

    def ask(rows: Rows) -> Mask:
        numbers = (
            table.number_column(source.name, rows) if leaf.name.kinds == (kinds.number,) else None
        )
        found = None if numbers is None or source.port else _compare_column(leaf.test, *numbers)
        if found is not None:
            return found
        places, values = table.distinct_values(source.name, rows)
        passes = [
            any(test(value) for value in column_values(each, source, exists)) for each in values
        ]
        answer: Mask = np.array(passes, np.bool_)[places]
        return answer

    return ask


_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "==": np.equal,
    "!==": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _compare_column(test: Test, values: NDArray[Any], is_present: Mask) -> Mask | None:
    """Return the answers for a column of numbers; None where they have to be asked one by one."""
    match test:
        case Exists():
            return is_present
        case Compare(op, literal):
            return _compare_values(op, literal, values, is_present)
        case OneOf(items):
            out = np.zeros(len(values), np.bool_)
            for item in items:
                bounds = (
                    (("==", item),)
                    if isinstance(item, Literal)
                    else ((">=", item.low), ("<=", item.high))
                )
                inside = np.ones(len(values), np.bool_)
                for op, literal in bounds:
                    answer = _compare_values(op, literal, values, is_present)
                    if answer is None:
                        return None
                    inside &= answer
                out |= inside
            return out
        case _:
            return None


_MAX_EXACT_INTEGER = 2**53
"""Integers up to here are the same as floats."""


def _compare_values(
    op: str, literal: Literal, values: NDArray[Any], is_present: Mask
) -> Mask | None:
    if literal.is_null:
        return ~is_present if op == "==" else is_present
    try:
        wanted = kinds.number.parse(literal)
    except ValueError:
        return None
    # Python compares integers with floats exactly, numpy does not.
    if isinstance(wanted, float) != (values.dtype.kind == "f") and not (
        isinstance(wanted, int) and abs(wanted) < _MAX_EXACT_INTEGER
    ):
        return None
    if isinstance(wanted, int) and not -(2**63) <= wanted < 2**63:
        return None
    answer: Mask = is_present & _ORDER[op](values, wanted)
    return answer
