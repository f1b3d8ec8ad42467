"""
Evaluates a filter's tree on all rows of a table.

The results equal those of `evaluate`, for many rows at once: a test is called once for each
distinct value of a column, numbers are compared as arrays, and rows that are decided are not tested
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.filter import kinds
from dissector.filter.evaluate import (
    Row,
    cheap_first,
    column_values,
    predicate,
    reads_only_present,
    value_test,
)
from dissector.filter.field_values import FieldValues
from dissector.filter.kinds import Kind
from dissector.filter.literals import Literal
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
from dissector.filter.operands import BodyPath, Column, Name, apply_steps

Rows: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]


class Table(Protocol):
    """The exchanges of a window, as a filter accesses them; rows are given by their numbers."""

    def __len__(self) -> int: ...

    def number_column(self, name: str, rows: Rows) -> tuple[NDArray[Any], Mask] | None:
        """Return values and validity of a numeric column; None for other columns."""
        ...

    def exchange(self, row: int) -> Row:
        """Return a row as an object."""
        ...

    def distinct_values(self, name: str, rows: Rows) -> tuple[Rows, Sequence[object]]:
        """Return the index of each row's value among the distinct values, and these."""
        ...

    def fields_at(self, name: str, path: Sequence[str], rows: Rows) -> Iterable[FieldValues]:
        """Return the values at a path inside a column, of some rows, in any number of parts."""
        ...

    def any_value_at(
        self,
        path: BodyPath,
        rows: Rows,
        test: Callable[[object], bool],
        matches: Callable[[Row], bool],
    ) -> Mask:
        """
        Return for each row whether any value at a path of a body passes.

        Args:
            path: The side and the path of the field.
            rows: The rows.
            test: Predicate of a value.
            matches: Predicate of a row as an object, for rows without values in columns.
        """
        ...


def rows_passing(node: Node, table: Table) -> Rows:
    """Return the numbers of the rows that pass, in order."""
    return np.flatnonzero(_mask_of(node, table, np.arange(len(table))))


def _mask_of(node: Node, table: Table, rows: Rows) -> Mask:
    """Return the mask of passing rows."""
    match node:
        case Always():
            return np.ones(len(rows), np.bool_)
        case Leaf():
            any_tests = as_any_tests(node)
            if any_tests is not node:
                return _mask_of(any_tests, table, rows)
            if node.name.is_count:
                return _count_mask(node, table, rows)
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
    """Apply functions in turn, each to the rows without a decisive earlier result."""
    result = np.full(len(rows), not decisive)
    undecided = np.arange(len(rows))
    for function in functions:
        if not len(undecided):
            break
        is_decided = function(rows[undecided]) == decisive
        result[undecided[is_decided]] = decisive
        undecided = undecided[~is_decided]
    return result


def _node_function(node: Node, table: Table) -> _MaskFunction:
    return lambda rows: _mask_of(node, table, rows)


def _count_mask(leaf: Leaf, table: Table, rows: Rows) -> Mask:
    """Test the number of values of a name in each row."""
    name = leaf.name
    if any(isinstance(source, BodyPath) for source in name.sources):
        matches = predicate(leaf)
        return np.array([matches(table.exchange(row)) for row in rows.tolist()], np.bool_)
    counts = np.zeros(len(rows), np.int64)
    for source in name.sources:
        assert isinstance(source, Column)
        indexes, values = table.distinct_values(source.name, rows)
        counts += np.array([_count(source, name, each) for each in values], np.int64)[indexes]
    test = value_test(leaf.test, name.kinds)
    return np.array([test(count) for count in counts.tolist()], np.bool_)


def _count(source: Column, name: Name, value: object) -> int:
    """Return the number of values of a name in a column with the given `value`."""
    values = column_values(value, source, True)
    return sum(result is not None for each in values for result in apply_steps(name.steps, each))


def _source_function(leaf: Leaf, source: Column | BodyPath, table: Table) -> _MaskFunction:
    test = value_test(leaf.test, leaf.name.kinds, leaf.name.steps)
    if isinstance(source, BodyPath):
        matches = predicate(leaf)
        return lambda rows: table.any_value_at(source, rows, test, matches)
    exists = reads_only_present(leaf)
    kind = leaf.name.kinds[0]
    is_number = kind.is_number and not source.port and not leaf.name.steps

    def mask_of(rows: Rows) -> Mask:
        numbers = table.number_column(source.name, rows) if is_number else None
        compared = None if numbers is None else _compare_column(leaf.test, kind, *numbers)
        if compared is not None:
            return compared
        if source.path:
            compare = None if leaf.name.steps else leaf.test
            result = np.zeros(len(rows), np.bool_)
            for part in table.fields_at(source.name, source.path, rows):
                passing = _test_distinct(compare, test, part.values)
                result[part.rows[passing[part.code]]] = True
            return result
        indexes, values = table.distinct_values(source.name, rows)
        passes = [
            any(test(value) for value in column_values(each, source, exists)) for each in values
        ]
        return np.array(passes, np.bool_)[indexes]

    return mask_of


def _test_distinct(
    test: Test | None, passes: Callable[[object], bool], values: Sequence[object] | NDArray[Any]
) -> Mask:
    """Test values; those that are all numbers of one type at once, if there is a test for them."""
    is_array = isinstance(values, np.ndarray)
    if test is not None and (is_array or set(map(type, values)) in _NUMBERS):
        numbers = np.asarray(values)
        if numbers.dtype.kind in "if":
            is_present = np.ones(len(numbers), np.bool_)
            compared = _compare_column(test, kinds.number, numbers, is_present)
            if compared is not None:
                return compared
    each = values.tolist() if isinstance(values, np.ndarray) else values
    return np.fromiter(map(passes, each), np.bool_, len(values))


_NUMBERS = {int}, {float}

_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "==": np.equal,
    "!==": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _compare_column(test: Test, kind: Kind, values: NDArray[Any], is_present: Mask) -> Mask | None:
    """Test a numeric column; None if its values must be tested one by one."""
    match test:
        case Exists():
            return is_present
        case Compare(op, literal):
            return _compare_values(op, kind, literal, values, is_present)
        case OneOf(items):
            out = np.zeros(len(values), np.bool_)
            for item in items:
                bounds = (
                    (("==", item),)
                    if isinstance(item, Literal)
                    else ((">=", item.low), ("<=", item.high))
                )
                is_inside = np.ones(len(values), np.bool_)
                for op, literal in bounds:
                    result = _compare_values(op, kind, literal, values, is_present)
                    if result is None:
                        return None
                    is_inside &= result
                out |= is_inside
            return out
        case _:
            return None


_MAX_EXACT_INTEGER = 2**53
"""Integers below this are exact as floats."""


def _compare_values(
    op: str, kind: Kind, literal: Literal, values: NDArray[Any], is_present: Mask
) -> Mask | None:
    if literal.is_null:
        return ~is_present if op == "==" else is_present
    try:
        wanted = kind.parse(literal)
    except ValueError:
        return None
    # Python compares integers with floats exactly, numpy does not.
    if isinstance(wanted, float) != (values.dtype.kind == "f") and not (
        isinstance(wanted, int) and abs(wanted) < _MAX_EXACT_INTEGER
    ):
        return None
    if isinstance(wanted, int) and not -(2**63) <= wanted < 2**63:
        return None
    result: Mask = is_present & _ORDER[op](values, wanted)
    return result
