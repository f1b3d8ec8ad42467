"""The fields of a window as a polars table."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dissector.engine.fields.field_columns import ABSENT, FieldColumns, Int32s
from dissector.engine.tables.arrow import integers_series, text_series
from dissector.engine.tables.column_types import Coded
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.engine.tables.frames import escape_invalid_utf8
from dissector.engine.tape.tape import NO_ITEM

if TYPE_CHECKING:
    import polars


def field_schema() -> dict[str, Any]:
    """
    Return the columns of fields and their polars types.

    capture, connection, packet (from 1, as `dissect` counts), time_ns, kind, api, api_version and
    correlation_id are those of the message; `message` is a number that no other message of the
    capture has, and grows with the packets.

    `path` has Kafka's names in snake_case, without indexes: `topic_data.partition_data.index`;
    `topics[]` is an element of an array of plain values; fields of the header begin with `header.`.
    `type` is Kafka's word. `item` is the item of an array that holds the field: items are numbered
    through each message from 1 in wire order, 0 is the message itself; `around` is the item that
    holds that one. So fields with the same message and item belong together, and `around` leads
    from a partition to its topic. `offset` and `length` say where the content lies in the frame.
    `value` is the number, of booleans 0 or 1, of arrays the count. `text` is the text; of bytes
    hex, of uuids the canonical form; of what `records` hold nothing. Null has neither. A row with a
    `add_problem` says what does not fit, and where.
    """
    import polars as pl

    word = pl.Categorical()
    return {
        "capture": word,
        "connection": pl.Int64(),
        "message": pl.Int64(),
        "packet": pl.Int64(),
        "time_ns": pl.Int64(),
        "kind": word,
        "api": word,
        "api_version": pl.Int16(),
        "correlation_id": pl.Int32(),
        "path": word,
        "type": word,
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
        number: Of the message in the capture.
        row: Of its exchange in the window.
        side: 0 for a request, 1 for a response.
        start: Where the frame begins.
        captured_bytes: How many bytes of it are there.
        size: How many it has.
        packet: The packet that completed it.
        time_ns: When that was captured.
        file: The file that holds it.
        connection: Its connection.
        api: Name of the API.
        api_version: The version that the body is read in; NONE where there is none.
        correlation_id: NONE where there is none.
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
        """Return some of the messages, which share memory with these."""
        return MessageColumns(*(_select(getattr(self, each.name), rows) for each in fields(self)))


def _select(column: Any, rows: slice) -> Any:
    if isinstance(column, Coded):
        return Coded(column.codes[rows], column.values)
    return column[rows]


@dataclass(slots=True)
class FieldNames:
    """
    Paths and types of fields, by number; more are added for what no declaration names.

    Attributes:
        paths_and_types: Pairs of path and type.
        problems: Texts of problems, by number; 0 is none.
    """

    paths_and_types: list[tuple[str, str]]
    problems: list[str | None] = field(default_factory=lambda: [None])
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)

    def number_of(self, path: str, word: str) -> int:
        """Return the number of a path and type."""
        if not self._numbers:
            self._numbers = {each: number for number, each in enumerate(self.paths_and_types)}
        if (path, word) not in self._numbers:
            self._numbers[path, word] = len(self.paths_and_types)
            self.paths_and_types.append((path, word))
        return self._numbers[path, word]

    def add_problem(self, text: str | None) -> int:
        """Return the number of a problem."""
        if text is None:
            return 0
        self.problems.append(text)
        return len(self.problems) - 1


_MAX_CHUNKS = 100
"""Pieces that a table may lie in; more of them cost more than a copy."""


def field_frame(
    messages: MessageColumns, columns: FieldColumns, names: FieldNames
) -> polars.DataFrame:
    """Return the fields of a window as a table with the columns of `field_schema`."""
    import polars as pl

    schema = field_schema()
    counts = np.bincount(columns.message, minlength=len(messages))
    name = pl.Series(values=columns.name.astype(np.uint32))

    def coded(column: Coded) -> polars.Series:
        nothing = len(column.values)
        codes = np.where(column.codes == NONE, nothing, column.codes).astype(np.uint32)
        places = pl.Series(values=np.repeat(codes, counts))
        return _categories((*column.values, None)).gather(places)

    def repeated(column: Ints, type_name: str = "int64") -> polars.Series:
        values = np.repeat(column.astype(type_name), counts)
        there = column != NONE
        return integers_series(values, None if there.all() else np.repeat(there, counts))

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
    """Return words as a column; they are often the same for one window after the other."""
    import polars as pl

    return pl.Series(values=[*map(escape_invalid_utf8, values)], dtype=pl.Categorical())


def merge_frames(
    one: polars.DataFrame, one_messages: Int32s, other: polars.DataFrame, other_messages: Int32s
) -> polars.DataFrame:
    """
    Return two tables of fields as one, in the order of messages.

    Args:
        one: Fields of some messages.
        one_messages: Of each row, the number of its message.
        other: Fields of other messages, of which there are few.
        other_messages: Likewise.
    """
    import polars as pl

    begins = np.flatnonzero(np.diff(other_messages, prepend=-1))
    places = np.searchsorted(one_messages, other_messages[begins])
    pieces = []
    at = 0
    ends = [*begins[1:].tolist(), len(other)]
    for place, begin, end in zip(places.tolist(), begins.tolist(), ends, strict=True):
        pieces += [one[at:place], other[begin:end]]
        at = place
    return pl.concat([*pieces, one[at:]], rechunk=len(pieces) > _MAX_CHUNKS)
