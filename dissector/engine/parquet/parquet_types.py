"""
The columns of a file and their types.

Source: github.com/apache/parquet-format, parquet.thrift and LogicalTypes.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dissector.column_catalogue import Catalogue
from dissector.engine.parquet.thrift import Int, Value

BOOLEAN, INT32, INT64, DOUBLE, BYTE_ARRAY = 0, 1, 2, 5, 6
"""Physical types."""

_OPTIONAL, _REPEATED = 1, 2
_LIST = 3
_ITEMS, _ITEM = "list", "element"
"""The names that the levels of a list have."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """
    A type of columns of values; all may hold nulls.

    Attributes:
        physical: How values are stored.
        converted: The older name of its meaning, by number; None without one.
        logical: The newer one, a union of `LogicalType`.
        item: The type of numbers in numpy.
    """

    physical: int
    converted: int | None = None
    logical: Mapping[int, Value | None] | None = None
    item: str = ""


@dataclass(frozen=True, slots=True)
class ListType:
    """
    A type of columns with lists.

    Attributes:
        fields: Of structs, the type of each field by name; of lists of plain values one type, whose
            name is empty.
    """

    fields: Mapping[str, ColumnType]


FileType: TypeAlias = ColumnType | ListType

_TEXT, _BYTES = ColumnType(BYTE_ARRAY, 0, {1: {}}), ColumnType(BYTE_ARRAY)

TYPES: Mapping[str, FileType] = {
    "str": _TEXT,
    "bytes": _BYTES,
    "bool": ColumnType(BOOLEAN),
    "int": ColumnType(INT64, item="<i8"),
    "int32": ColumnType(INT32, item="<i4"),
    "int16": ColumnType(INT32, 16, {10: {1: Int(16, 8), 2: True}}, item="<i4"),
    "int8": ColumnType(INT32, 15, {10: {1: Int(8, 8), 2: True}}, item="<i4"),
    "float": ColumnType(DOUBLE, item="<f8"),
    "strs": ListType({"": _TEXT}),
    "headers": ListType({"key": _TEXT, "value": _BYTES}),
}
"""By the names of `column_catalogue`."""


def types_of(
    columns: Catalogue, chosen: Sequence[str] = (), more: Sequence[str] = ()
) -> Mapping[str, FileType]:
    """Return the types of columns and of `more`, or of those chosen; others are text."""
    known = {each.name: TYPES[each.type] for each in columns} | dict.fromkeys(more, _TEXT)
    return {name: known.get(name, _TEXT) for name in chosen or known}


def list_of(fields: Mapping[str, str]) -> ListType:
    """Return the type of lists of structs with fields of plain types."""
    found = {name: TYPES[kind] for name, kind in fields.items()}
    return ListType({name: kind for name, kind in found.items() if isinstance(kind, ColumnType)})


def schema_elements(columns: Mapping[str, FileType]) -> Iterator[Value]:
    """Yield the elements of the schema: the root, then the columns."""
    yield {4: "root", 5: len(columns)}
    for name, kind in columns.items():
        if isinstance(kind, ColumnType):
            yield _leaf(name, kind)
            continue
        yield {3: _OPTIONAL, 4: name, 5: 1, 6: _LIST, 10: {3: {}}}
        yield {3: _REPEATED, 4: _ITEMS, 5: 1}
        if "" in kind.fields:
            yield _leaf(_ITEM, kind.fields[""])
        else:
            yield {3: _OPTIONAL, 4: _ITEM, 5: len(kind.fields)}
            yield from (_leaf(field, each) for field, each in kind.fields.items())


def leaves(columns: Mapping[str, FileType]) -> Iterator[tuple[list[str], ColumnType]]:
    """Yield the path and the type of each column of values, in order."""
    for name, kind in columns.items():
        if isinstance(kind, ColumnType):
            yield [name], kind
        else:
            for field, each in kind.fields.items():
                yield [name, _ITEMS, _ITEM, *([field] if field else [])], each


def _leaf(name: str, kind: ColumnType) -> Value:
    return {1: kind.physical, 3: _OPTIONAL, 4: name, 6: kind.converted, 10: kind.logical}
