"""The types of decoded values, so that all values of a topic fit into typed columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from dissector.values.json_values import compact_json

if TYPE_CHECKING:
    import polars

MAX_FIELDS = 1_000
"""Objects with more fields, as maps have, become JSON texts."""

_MAX_INT = 1 << 63

_SCALARS = {bool: "bool", int: "int", float: "float", str: "str"}


class Shape(NamedTuple):
    """
    What some values have in common.

    Attributes:
        kind: `null`, `bool`, `int`, `float`, `str`, `list`, `struct`, or `json` for values of
            different kinds.
        item: Of a list, that of its items.
        fields: Of a struct, those of its fields.
    """

    kind: str
    item: Shape | None = None
    fields: dict[str, Shape] = {}  # noqa: RUF012 - never changed


NULL, JSON = Shape("null"), Shape("json")


def shape_of(value: Any) -> Shape:
    """Return the shape of a value in the types of JSON."""
    if value is None:
        return NULL
    if isinstance(value, list):
        return Shape("list", merged(map(shape_of, value)))
    if isinstance(value, dict):
        if not 0 < len(value) <= MAX_FIELDS:
            return JSON
        return Shape("struct", None, {name: shape_of(each) for name, each in value.items()})
    if isinstance(value, int) and not -_MAX_INT <= value < _MAX_INT:
        return JSON
    return Shape(_SCALARS[type(value)])


def merged(shapes: Iterable[Shape]) -> Shape:
    """Return the shape that values of all these shapes fit into."""
    found = NULL
    for each in shapes:
        found = _merged(found, each)
    return found


def _merged(one: Shape, other: Shape) -> Shape:
    kinds = {one.kind, other.kind}
    if one.kind == "null" or one == other:
        return other
    if other.kind == "null":
        return one
    if kinds == {"int", "float"}:
        return Shape("float")
    if kinds == {"list"}:
        return Shape("list", _merged(one.item or NULL, other.item or NULL))
    if kinds == {"struct"}:
        names = dict.fromkeys((*one.fields, *other.fields))
        if len(names) > MAX_FIELDS:
            return JSON
        return Shape(
            "struct",
            None,
            {
                name: _merged(one.fields.get(name, NULL), other.fields.get(name, NULL))
                for name in names
            },
        )
    return JSON


def fitted(value: Any, shape: Shape) -> Any:
    """Return a value in the types of a shape that it was merged into."""
    if value is None:
        return None
    match shape.kind:
        case "json":
            return compact_json(value)
        case "float":
            return float(value)
        case "list":
            return [fitted(each, shape.item or NULL) for each in value]
        case "struct":
            return {name: fitted(value.get(name), each) for name, each in shape.fields.items()}
    return value


def column_type(shape: Shape) -> polars.DataType:
    """Return the type of a column of a shape; texts where all values are null."""
    from dissector.polars_extra import polars

    match shape.kind:
        case "bool":
            return polars.Boolean()
        case "int":
            return polars.Int64()
        case "float":
            return polars.Float64()
        case "list":
            return polars.List(column_type(shape.item or NULL))
        case "struct":
            return polars.Struct({name: column_type(each) for name, each in shape.fields.items()})
    return polars.String()
