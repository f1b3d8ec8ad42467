"""
Compiles a filter's tree to a predicate of a row.

The test of a leaf is built once, for the kinds of its name, and then called for each value. Parts
that need a decoded body are evaluated last in each `and` and `or`, because decoding is the most
expensive.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from dissector.filter.kinds import Kind
from dissector.filter.literals import Literal, compile_pattern
from dissector.filter.nodes import (
    Always,
    And,
    Compare,
    Contains,
    Exists,
    Fails,
    Leaf,
    Matches,
    Node,
    Not,
    OneOf,
    Or,
    Range,
    Test,
    as_any_tests,
    reads_bodies,
    tests_values,
)
from dissector.filter.operands import BodyPath, Column, Name, Source, Step, apply_steps
from dissector.protocol.records.header_text import header_text


class Row(Protocol):
    """An exchange or a record, as a filter accesses it."""

    def column(self, name: str) -> object:
        """Return a column of `pairs`: a value, a list of values, or None."""
        ...

    def body(self, kind: str) -> Mapping[str, Any] | None:
        """Return the decoded body of the `request` or the `response`, or None."""
        ...


Predicate = Callable[[Row], bool]
_ValueTest = Callable[[object], bool]
_TypedTest = Callable[[Any], object]

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def predicate(node: Node) -> Predicate:
    """Return the predicate of a tree."""
    match node:
        case Always():
            return lambda _: True
        case Leaf():
            any_tests = as_any_tests(node)
            return _leaf_predicate(node) if any_tests is node else predicate(any_tests)
        case Not(part):
            inner = predicate(part)
            return lambda row: not inner(row)
        case And(parts):
            all_of = [predicate(part) for part in cheap_first(parts)]
            return lambda row: all(each(row) for each in all_of)
        case Or(parts):
            any_of = [predicate(part) for part in cheap_first(parts)]
            return lambda row: any(each(row) for each in any_of)


def cheap_first(parts: Iterable[Node]) -> list[Node]:
    """Return parts in the order of evaluation: tests of values, then of bodies are last."""
    return sorted(parts, key=lambda part: (reads_bodies(part), tests_values(part)))


def _leaf_predicate(leaf: Leaf) -> Predicate:
    name = leaf.name
    if name.is_count:
        test = value_test(leaf.test, name.kinds)
        return lambda row: test(values_of(row, name)[0])
    test = value_test(leaf.test, name.kinds, name.steps)
    exists = reads_only_present(leaf)

    def holds(row: Row) -> bool:
        return any(test(value) for source in name.sources for value in _values(row, source, exists))

    return holds


def reads_only_present(leaf: Leaf) -> bool:
    """Return whether a leaf ignores the value of an empty list."""
    return isinstance(leaf.test, Exists) or bool(leaf.name.steps)


def _values(row: Row, source: Source, exists: bool) -> Iterable[object]:
    """Return the values to test; none if the row lacks the source."""
    if isinstance(source, BodyPath):
        return values_at(row.body(source.kind), source.path)
    return column_values(row.column(source.name), source, exists)


def column_values(value: object, source: Column, exists: bool) -> Iterable[object]:
    """Return the values to test in a column with the given `value`."""
    if source.path:
        return values_at(value, source.path)
    if source.part is not None and isinstance(value, list):
        chosen = [each for each in value if source.header in (None, each["key"])]
        if source.part == "text":
            return [header_text(each["key"], each["value"]) for each in chosen]
        return [each[source.part] for each in chosen]
    if isinstance(value, list | tuple):
        return value or ([source.empty] if source.empty and not exists else [])
    if exists and source.empty is not None and value == source.empty:
        return []
    return [_port(value) if source.port else value]


def values_of(row: Row, name: Name) -> list[object]:
    """Return the values of a name in a row; through arrays, the values of all elements."""
    values = (value for source in name.sources for value in _values(row, source, True))
    found = [result for value in values for result in apply_steps(name.steps, value)]
    return [sum(each is not None for each in found)] if name.is_count else found


def _port(endpoint: object) -> int | None:
    port = endpoint.rpartition(":")[2] if isinstance(endpoint, str) else ""
    return int(port) if port.isdecimal() else None


def values_at(value: Any, path: Sequence[str]) -> Iterable[object]:
    """
    Return the values at a path of a decoded body; of arrays, the values of all elements.

    A null field gives None; an absent field, or one inside a null, gives nothing.
    """
    for depth, name in enumerate(path):
        if isinstance(value, list):
            return [each for element in value for each in values_at(element, path[depth:])]
        if not isinstance(value, dict | Mapping) or name not in value:
            return ()
        value = value[name]
    if isinstance(value, list):
        return [each for element in value for each in values_at(element, ())]
    return (value,)


def value_test(test: Test, kinds: Iterable[Kind], steps: tuple[Step, ...] = ()) -> _ValueTest:
    """Return the predicate of a single value, which may be null, before its steps."""
    holds = _plain_test(test, kinds)
    return (lambda raw: any(map(holds, apply_steps(steps, raw)))) if steps else holds


def _plain_test(test: Test, kinds: Iterable[Kind]) -> _ValueTest:
    match test:
        case Fails(other):
            passes = _plain_test(other, kinds)
            return lambda raw: not passes(raw)
        case Exists():
            return lambda raw: raw is not None
        case Compare(op, literal) if literal.is_null:
            return (lambda raw: raw is None) if op == "==" else (lambda raw: raw is not None)
        case Compare(op, literal):
            return _typed_test(kinds, lambda kind: _comparison_test(kind, op, literal))
        case OneOf(items):
            tests = [_item_test(item, kinds) for item in items]
            return lambda raw: any(each(raw) for each in tests)
        case Contains(Literal(text)):
            return _typed_test(
                kinds, lambda kind: _search_test(kind, lambda v: kind.contains(v, text))
            )
        case Matches(Literal(pattern)):
            search = compile_pattern(pattern).search
            return _typed_test(
                kinds, lambda kind: _search_test(kind, lambda v: search(kind.text(v)))
            )


def _item_test(item: Literal | Range, kinds: Iterable[Kind]) -> _ValueTest:
    if isinstance(item, Literal):
        return value_test(Compare("==", item), kinds)
    low = value_test(Compare(">=", item.low), kinds)
    high = value_test(Compare("<=", item.high), kinds)
    return lambda raw: low(raw) and high(raw)


def _typed_test(kinds: Iterable[Kind], make: Callable[[Kind], _TypedTest | None]) -> _ValueTest:
    """Return a test by the first kind that accepts the value; without one, nothing matches."""
    tests = [(kind, test) for kind in kinds if (test := make(kind)) is not None]

    def holds(raw: object) -> bool:
        for kind, test in tests:
            value = kind.value(raw)
            if value is not None:
                return bool(test(value))
        return False

    return holds


def _comparison_test(kind: Kind, op: str, literal: Literal) -> _TypedTest | None:
    """Return the comparison; None if the kind lacks the literal or the operator."""
    try:
        wanted = kind.parse(literal)
    except ValueError:
        return None
    if op == "==":
        return lambda value: kind.equal(value, wanted)
    if op == "!==":
        return lambda value: not kind.equal(value, wanted)
    compare = _ORDER[op]
    return (lambda value: compare(value, wanted)) if kind.ordered else None


def _search_test(kind: Kind, test: _TypedTest) -> _TypedTest | None:
    return test if kind.searchable else None
