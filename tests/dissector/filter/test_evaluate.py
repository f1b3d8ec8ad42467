"""Evaluation compared with a minimal reference implementation."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.filter.evaluate import predicate, values_at
from dissector.filter.literals import Literal
from dissector.filter.nodes import (
    Always,
    And,
    Compare,
    Contains,
    Exists,
    Leaf,
    Matches,
    Node,
    Not,
    OneOf,
    Or,
    Range,
    Test,
)
from tests.dissector.filter.filter_rows import FakeRow
from tests.dissector.filter.filter_strategies import nodes

names = st.sampled_from(["orders", "pay", "", "é", "b7"])
rows = st.builds(
    lambda version, number, client, topics, request: FakeRow(
        {"api_version": version, "correlation_id": number, "client_id": client, "topics": topics},
        {"request": request},
    ),
    st.none() | st.integers(0, 12),
    st.integers(-2, 12),
    st.none() | names,
    st.lists(names, max_size=3),
    st.none()
    | st.fixed_dictionaries(
        {
            "acks": st.integers(-1, 1),
            "topic_data": st.none()
            | st.lists(
                st.fixed_dictionaries(
                    {
                        "name": names,
                        "partition_data": st.lists(
                            st.fixed_dictionaries({"index": st.integers(0, 12)}), max_size=3
                        ),
                    }
                ),
                max_size=3,
            ),
        },
        optional={"transactional_id": st.none() | names},
    ),
)


def plain_values(name: str, row: FakeRow) -> list[Any]:
    request = row.bodies["request"] or {}
    topics = request.get("topic_data") or []
    match name:
        case "request.acks" | "request.transactional_id":
            key = name.removeprefix("request.")
            return [request[key]] if key in request else []
        case "request.topic_data.name":
            return [topic["name"] for topic in topics]
        case "request.topic_data.partition_data.index":
            return [p["index"] for topic in topics for p in topic["partition_data"]]
        case "topic" | "topics":
            return list(row.columns["topics"])
    return [row.columns[name]]


def plain_test(test: Test, value: Any) -> bool:
    def read(literal: Literal) -> Any:
        if literal == Literal("null"):
            return None
        return literal.text if literal.quoted else int(literal.text)

    match test:
        case Exists():
            return value is not None
        case Compare("==", Literal("null", False)):
            return value is None
        case Compare("!==", Literal("null", False)):
            return value is not None
        case OneOf(items):
            return any(
                plain_test(Compare("==", item), value)
                if isinstance(item, Literal)
                else value is not None and read(item.low) <= value <= read(item.high)
                for item in items
            )
    if value is None:
        return False
    match test:
        case Compare(op, literal):
            wanted = read(literal)
            return bool(
                {
                    "==": value == wanted,
                    "!==": value != wanted,
                    "<": value < wanted,
                    "<=": value <= wanted,
                    ">": value > wanted,
                    ">=": value >= wanted,
                }[op]
            )
        case Contains(literal):
            return literal.text in value
        case Matches(pattern):
            return re.search(pattern.text, value, re.IGNORECASE) is not None
    raise AssertionError(test)


def plain(node: Node, row: FakeRow) -> bool:
    match node:
        case Always():
            return True
        case Leaf(name, Compare("!=" | "===" as op, literal)):
            # All comparable values, at least one.
            values = [v for v in plain_values(name.text, row) if literal.is_null or v is not None]
            equal = [plain_test(Compare("==", literal), value) for value in values]
            return bool(equal) and (not any(equal) if op == "!=" else all(equal))
        case Leaf(name, test):
            return any(plain_test(test, value) for value in plain_values(name.text, row))
        case Not(part):
            return not plain(part, row)
        case And(parts):
            return all(plain(part, row) for part in parts)
        case Or(parts):
            return any(plain(part, row) for part in parts)


@given(nodes(), rows)
def test_evaluation_equals_the_reference(node: Node, row: FakeRow) -> None:
    assert predicate(node)(row) is plain(node, row)


@pytest.mark.parametrize(
    ("value", "path", "expected"),
    [
        ({"a": 1}, ["a"], [1]),
        ({"a": None}, ["a"], [None]),
        ({"a": None}, ["a", "b"], []),
        ({}, ["a"], []),
        (None, ["a"], []),
        ({"a": []}, ["a"], []),
        ({"a": [1, None]}, ["a"], [1, None]),
        ({"a": [{"b": [1, 2]}, {"b": 3}, {"c": 4}, None]}, ["a", "b"], [1, 2, 3]),
        ({"a": 1}, ["a", "b"], []),
    ],
)
def test_values_at_a_path(value: Any, path: list[str], expected: list[Any]) -> None:
    assert list(values_at(value, path)) == expected


def test_a_range_includes_both_ends() -> None:
    test = OneOf((Range(Literal("2"), Literal("3")),))
    found = [plain_test(test, n) for n in range(5)]
    assert found == [False, False, True, True, False]
