"""The fields of a window as a polars table."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dissector.engine.fields.field_columns import ABSENT, FieldColumns
from dissector.engine.tables.arrow import integers_series, text_series
from dissector.engine.tables.column_types import Coded
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.engine.tables.polars_tables import escape_invalid_utf8
from dissector.engine.tape.tape import NO_ITEM

if TYPE_CHECKING:
    import polars


def field_schema() -> dict[str, Any]:
    """
    Return the columns of fields and their polars types.

    capture, connection, packet (from 1, as `dissect` counts), time_ns, kind, api, api_version and
    correlation_id belong to the message. `message` is a number that is unique in the capture and
    grows with the packets.

    `path` has Kafka's names in snake_case, without indexes: `topic_data.partition_data.index`;
    `topics[]` is an element of an array of scalars; paths of header fields begin with `header.`.
    `type` is Kafka's type name. `item` is the number of the array item that contains the field:
    items are numbered through each message from 1 in wire order, 0 is the message itself. `around`
    is the number of the item that contains `item`. So fields with the same message and item belong
    together, and `around` leads from a partition to its topic. `offset` and `length` locate the
    content in the frame. `value` is the number: 0 or 1 for booleans, the count for arrays. `text`
    is the text: hex for bytes, the canonical form for uuids, empty for the content of `records`.
    Null has neither value nor text. A row with a `problem` names the error and its offset.
    """
    from dissector.polars_extra import polars as pl

    category = pl.Categorical()
    return {
        "capture": category,
        "connection": pl.Int64(),
        "message": pl.Int64(),
        "packet": pl.Int64(),
        "time_ns": pl.Int64(),
        "kind": category,
        "api": category,
        "api_version": pl.Int16(),
        "correlation_id": pl.Int32(),
        "path": category,
        "type": category,
        "item": pl.Int32(),
        "around": pl.Int32(),
        "offset": pl.Int32(),
        "length": pl.Int32(),
        "value": pl.Int64(),
        "text": pl.String(),
        "problem": pl.String(),
    }


@dataclass(slots=True)
class MessageColumns:
    """
    The messages of a window, in order.

    Attributes:
        number: Number of the message, unique in the capture.
        row: Row of its exchange in the window.
        side: 0 for a request, 1 for a response.
        start: Address of the frame.
        captured_bytes: Bytes of the frame that were captured.
        size: Bytes of the whole frame.
        packet: The packet that completed the message.
        time_ns: Capture time of that packet.
        file: The capture file.
        connection: Number of the connection.
        api: Name of the API.
        api_version: The version that the body is read in; NONE without one.
        correlation_id: NONE without one.
    """

    number: Ints
    row: Ints
    side: Ints
    start: Ints
    captured_bytes: Ints
    size: Ints
    packet: Ints
    time_ns: Ints
    file: Coded
    connection: Ints
    api: Coded
    api_version: Ints
    correlation_id: Ints

    def __len__(self) -> int:
        return len(self.row)

    def select(self, rows: slice) -> MessageColumns:
        """Return some of the messages; the columns are views of these."""
        return MessageColumns(*(_select(getattr(self, each.name), rows) for each in fields(self)))


def _select(column: Any, rows: slice) -> Any:
    if isinstance(column, Coded):
        return Coded(column.codes[rows], column.values)
    return column[rows]


@dataclass(slots=True)
class FieldNames:
    """
    Paths and types of fields, by number; undeclared ones are added on demand.

    Attributes:
        paths_and_types: Pairs of path and type.
        problems: Texts of problems, by number; 0 means none.
    """

    paths_and_types: list[tuple[str, str]]
    problems: list[str | None] = field(default_factory=lambda: [None])
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)

    def number_of(self, path: str, type_name: str) -> int:
        """Return the number of a path and type; a new pair is added."""
        if not self._numbers:
            self._numbers = {each: number for number, each in enumerate(self.paths_and_types)}
        if (path, type_name) not in self._numbers:
            self._numbers[path, type_name] = len(self.paths_and_types)
            self.paths_and_types.append((path, type_name))
        return self._numbers[path, type_name]

    def add_problem(self, text: str | None) -> int:
        """Add a problem and return its number; 0 for None."""
        if text is None:
            return 0
        self.problems.append(text)
        return len(self.problems) - 1


@dataclass(slots=True)
class FieldTable:
    """
    The fields of some messages, before they become a table of polars or a part of a file.

    Attributes:
        messages: The messages.
        columns: Their fields, a row each, ordered by messages.
        names: The names of these.
    """

    messages: MessageColumns
    columns: FieldColumns
    names: FieldNames

    def counts(self) -> Ints:
        """Return the number of fields of each message."""
        return np.bincount(self.columns.message, minlength=len(self.messages))


def field_frame(table: FieldTable) -> polars.DataFrame:
    """Return fields as a table with the columns of `field_schema`."""
    from dissector.polars_extra import polars as pl

    messages, columns, names = table.messages, table.columns, table.names
    schema = field_schema()
    counts = table.counts()
    name = pl.Series(values=columns.name.astype(np.uint32))

    def coded(column: Coded) -> polars.Series:
        null_code = len(column.values)
        codes = np.where(column.codes == NONE, null_code, column.codes).astype(np.uint32)
        row_codes = pl.Series(values=np.repeat(codes, counts))
        return _categories((*column.values, None)).gather(row_codes)

    def repeated(column: Ints, type_name: str = "int64") -> polars.Series:
        values = np.repeat(column.astype(type_name), counts)
        is_present = column != NONE
        return integers_series(values, None if is_present.all() else np.repeat(is_present, counts))

    problem = pl.Series(values=names.problems, dtype=pl.String())
    series = (
        coded(messages.file),
        repeated(messages.connection),
        repeated(messages.number),
        repeated(messages.packet + 1),
        repeated(messages.time_ns),
        coded(Coded(messages.side, ["request", "response"])),
        coded(messages.api),
        repeated(messages.api_version, "int16"),
        repeated(messages.correlation_id, "int32"),
        _categories(tuple(path or None for path, _ in names.paths_and_types)).gather(name),
        _categories(tuple(kind or None for _, kind in names.paths_and_types)).gather(name),
        integers_series(columns.item, None),
        integers_series(columns.around, columns.around != NO_ITEM),
        integers_series(columns.offset, columns.offset != ABSENT),
        integers_series(columns.length, columns.length != ABSENT),
        integers_series(columns.value, columns.has_value.view(np.bool_)),
        text_series(columns.text),
        problem.gather(pl.Series(values=columns.problem)),
    )
    return pl.DataFrame(dict(zip(schema, series, strict=True)))


@lru_cache(maxsize=16)
def _categories(values: tuple[str | None, ...]) -> polars.Series:
    """Return strings as a categorical column; cached, as consecutive windows often share them."""
    from dissector.polars_extra import polars as pl

    return pl.Series(values=[*map(escape_invalid_utf8, values)], dtype=pl.Categorical())
