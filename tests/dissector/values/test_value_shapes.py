"""Types that all values of a column fit into."""

from __future__ import annotations

import json
from typing import Any

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.values.value_shapes import (
    JSON,
    MAX_FIELDS,
    NULL,
    Shape,
    column_type,
    fitted,
    merged,
    shape_of,
)
from tests.example_counts import examples

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", "c d"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def same(value: Any, shown: Any, shape: Shape) -> bool:
    """Return whether a cell has a value, with nulls for fields that it lacks."""
    if value is None:
        return shown is None
    match shape.kind:
        case "json":
            return bool(json.loads(shown) == value)
        case "list":
            pairs = zip(value, shown, strict=True)
            return all(same(one, other, shape.item or NULL) for one, other in pairs)
        case "struct":
            fields = shape.fields.items()
            return all(same(value.get(name), shown[name], each) for name, each in fields)
    return bool(value == shown)


@settings(max_examples=examples(100))
@given(values=st.lists(VALUES.filter(lambda each: "Infinity" not in json.dumps(each)), max_size=6))
def test_values_of_any_kinds_fit_into_one_column(values: list[Any]) -> None:
    shape = merged(map(shape_of, values))
    column = polars.Series("a", [fitted(each, shape) for each in values], column_type(shape))
    assert all(same(one, two, shape) for one, two in zip(values, column.to_list(), strict=True))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([None], "null"),
        ([1, None, 2.5], "float"),
        ([1, "a"], "json"),
        ([1, True], "json"),
        ([1 << 63], "json"),
        ([{}, {"a": 1}], "json"),
        ([{"a": 1}, {"b": "x"}], "struct"),
        ([[], [1], [None]], "list"),
    ],
)
def test_kinds(values: list[Any], kind: str) -> None:
    assert merged(map(shape_of, values)).kind == kind


def test_maps_of_many_keys_are_texts() -> None:
    many = {str(number): number for number in range(MAX_FIELDS + 1)}
    assert shape_of(many) is JSON
    singles = [{name: number} for name, number in many.items()]
    assert merged(map(shape_of, singles)) is JSON
