"""
The columns of a file and their types.

Source: github.com/apache/parquet-format, parquet.thrift and LogicalTypes.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dissector.engine.parquet.thrift import Int, Value

INT32, INT64, DOUBLE, BYTE_ARRAY = 1, 2, 5, 6
"""Physical types."""

_OPTIONAL = 1


@dataclass(frozen=True, slots=True)
class ColumnType:
    """
    A type of columns; all may hold nulls.

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


TYPES: Mapping[str, ColumnType] = {
    "str": ColumnType(BYTE_ARRAY, 0, {1: {}}),
    "bytes": ColumnType(BYTE_ARRAY),
    "int": ColumnType(INT64, item="<i8"),
    "int32": ColumnType(INT32, item="<i4"),
    "int16": ColumnType(INT32, 16, {10: {1: Int(16, 8), 2: True}}, item="<i4"),
    "int8": ColumnType(INT32, 15, {10: {1: Int(8, 8), 2: True}}, item="<i4"),
    "float": ColumnType(DOUBLE, item="<f8"),
}
"""By the names of `column_catalogue`."""


def schema_elements(columns: Mapping[str, str]) -> Iterator[Value]:
    """Yield the elements of the schema: the root, then the columns."""
    yield {4: "root", 5: len(columns)}
    for name, type_name in columns.items():
        kind = TYPES[type_name]
        yield {1: kind.physical, 3: _OPTIONAL, 4: name, 6: kind.converted, 10: kind.logical}
