"""The fields of a window as rows of a Parquet file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dissector.engine.fields.field_columns import ABSENT
from dissector.engine.fields.field_frame import FieldTable
from dissector.engine.parquet.parquet_types import TYPES, FileType
from dissector.engine.parquet.row_groups import Column, Names, Numbers, RowGroup, Texts
from dissector.engine.tables.column_types import Coded
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.engine.tape.tape import NO_ITEM

_TYPES: Mapping[str, str] = {
    "capture": "str",
    "connection": "int",
    "message": "int",
    "packet": "int",
    "time_ns": "int",
    "kind": "str",
    "api": "str",
    "api_version": "int16",
    "correlation_id": "int32",
    "path": "str",
    "type": "str",
    "item": "int32",
    "around": "int32",
    "offset": "int32",
    "length": "int32",
    "value": "int",
    "text": "str",
    "problem": "str",
}
FIELD_TYPES: Mapping[str, FileType] = {name: TYPES[kind] for name, kind in _TYPES.items()}
"""The columns of `field_schema`."""


def field_rows(table: FieldTable) -> RowGroup:
    """Return fields as columns; values of a message are repeated for its fields."""
    messages, columns, names = table.messages, table.columns, table.names
    counts = table.counts()

    def coded(column: Coded) -> Names:
        return Names(column.codes, column.values, counts)

    def numbers(column: Ints) -> Numbers:
        return Numbers(column, column != NONE, counts)

    def named(texts: Sequence[str | None]) -> Names:
        return Names(columns.name, [text or None for text in texts])

    values: tuple[Column, ...] = (
        coded(messages.file),
        numbers(messages.connection),
        numbers(messages.number),
        numbers(messages.packet + 1),
        numbers(messages.time_ns),
        coded(Coded(messages.side, ["request", "response"])),
        coded(messages.api),
        numbers(messages.api_version),
        numbers(messages.correlation_id),
        named([path for path, _ in names.paths_and_types]),
        named([kind for _, kind in names.paths_and_types]),
        Numbers(columns.item),
        Numbers(columns.around, columns.around != NO_ITEM),
        Numbers(columns.offset, columns.offset != ABSENT),
        Numbers(columns.length, columns.length != ABSENT),
        Numbers(columns.value, columns.has_value.view(np.bool_)),
        Texts(columns.text),
        Names(columns.problem, names.problems),
    )
    return RowGroup(len(columns.message), dict(zip(FIELD_TYPES, values, strict=True)))
