"""The columns of records that say what keys and values mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.column_catalogue import VALUES, names
from dissector.engine.fields.column_query import ColumnQuery
from dissector.engine.reading.capture import Capture, Window
from dissector.engine.tables.column_types import (
    Coded,
    Column,
    Columns,
    Headers,
    Row,
    Slices,
    Texts,
    row_count,
    select_rows,
    with_bytes,
    with_json_texts,
)
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.filter.evaluate import values_at
from dissector.filter.field_values import FieldValues, field_values
from dissector.hooks.hook_types import Record
from dissector.protocol.embedded.secrecy.hidden_records import (
    header_is_hidden,
    hides_headers,
)
from dissector.query.contents.captured_schemas import learn_schemas, read_schemas
from dissector.query.contents.decoded_column import (
    DecodedColumn,
    coded_texts,
    decode_column,
    json_text,
)
from dissector.query.contents.hooked_records import record_of, records_of
from dissector.query.contents.record_fields import RecordFields
from dissector.query.contents.record_texts import RecordTexts, WrittenTexts
from dissector.values.value_masks import HIDDEN, ValueMasks
from dissector.values.value_reader import NOTHING, DecodedValue, ValueReader
from dissector.values.value_settings import ValueSettings

COLUMNS = names(VALUES)

_SIDES = {"key": True, "value": False}

_PIECE_ROWS = 8_192
"""Rows decoded at a time: a short value may give `MIN_OUTPUT`."""


class RecordValues:
    """
    Decodes the keys and values of records of a capture.

    Attributes:
        settings: How.
    """

    def __init__(self, capture: Capture, settings: ValueSettings | None) -> None:
        """Start; sources are read with the first record."""
        self.settings = settings or ValueSettings()
        self._masks = ValueMasks(self.settings.masks) if self.settings.masks else None
        self._capture = capture
        self._fields: dict[tuple[str, ...], RecordFields] = {}
        self._texts: dict[tuple[str, bool], RecordTexts] = {}

    @cached_property
    def reader(self) -> ValueReader:
        """
        The reader of values.

        Raises:
            UsageError: A source of schemas can't be used.
        """
        reader = self.settings.reader()
        self._capture.notices += reader.store.problems
        reader.store.problems = self._capture.notices
        if self._capture.names.is_rereadable:
            reader.read_more = lambda: read_schemas(self._capture, reader.store)
        return reader

    def learn(self, window: Window) -> None:
        """Take the schemas of a window that can't be read again; before its records."""
        if not self._capture.names.is_rereadable and not self.settings.is_off:
            learn_schemas(self._capture, window, self.reader.store)

    def decoded(self, row: Row, side: str) -> DecodedValue:
        """Return the decoded `key` or `value` of a row of `records`."""
        if self.settings.is_off or row[side] is None:
            return NOTHING
        return self._decoded(record_of(row), is_key=_SIDES[side])

    def shown(self, row: Row, side: str) -> DecodedValue:
        """Return the decoded `key` or `value` of a row of `records`, without hidden fields."""
        found = self.decoded(row, side)
        return found if self._masks is None else self._masks.masked(found, is_key=_SIDES[side])

    def read(self, record: Record, is_key: bool) -> DecodedValue:
        """Return a decoded key or value for a view: without hidden fields."""
        if self.settings.is_off:
            return NOTHING
        found = self._decoded(record, is_key=is_key)
        return found if self._masks is None else self._masks.masked(found, is_key=is_key)

    def record(self, row: Row) -> DecodedRecord:
        """Return a row of `records` with its key and value decoded, on demand."""
        return DecodedRecord(lambda side: self.decoded(row, side))

    def query(self, columns: Columns) -> ValueQuery:
        """Return the rows of columns for a filter of records."""
        return ValueQuery(columns, self)

    def parts(
        self,
        parts: Iterable[Columns],
        chosen: Sequence[str] = COLUMNS,
        fields: Cells | None = None,
    ) -> Iterator[Columns]:
        """
        Yield rows of `records` with more columns.

        Args:
            parts: The rows.
            chosen: Names of the columns.
            fields: Returns more cells of a record.
        """
        pieces = chain.from_iterable(map(_pieces, parts))
        return (self._wider(piece, chosen, fields) for piece in pieces)

    def _wider(self, columns: Columns, chosen: Sequence[str], fields: Cells | None) -> Columns:
        """Return columns with more columns."""
        rows = np.arange(row_count(columns))
        coded: dict[str, Column] = {}
        texts: dict[str, Texts] = {}
        sides = set(_SIDES) if fields is not None else {_parts_of(name)[0] for name in chosen}
        if fields is None:
            for side in sorted(sides):
                parts = [part for each, part in map(_parts_of, chosen) if each == side]
                if self._write_parts(columns, side, parts, coded, texts):
                    sides.remove(side)
        all_texts = fields is not None or self._masks is not None
        found = {
            side: self.decoded_column(
                columns,
                side,
                rows,
                with_text=all_texts or f"{side}_decoded" in chosen,
                with_problem=True,
            )
            for side in sides
        }
        if (masks := self._masks) is not None:
            for side in sides:
                found[side] = found[side].changed(partial(masks.masked, is_key=_SIDES[side]))
            columns = _hidden(columns, rows)
        for name in chosen:
            side, part = _parts_of(name)
            if side not in found:
                continue
            if part == "decoded":
                texts[name] = found[side].texts()
            else:
                coded[name] = found[side].labels(part)[1]
        if fields is not None:
            cells = [
                fields(DecodedRecord({"key": key, "value": value}.__getitem__))
                for key, value in zip(found["key"].rows, found["value"].rows, strict=True)
            ]
            for name in cells[0] if cells else ():
                coded[name] = Coded(rows, [each[name] for each in cells])
        wider = with_json_texts({**columns, **coded}, texts) if texts else {**columns, **coded}
        return {name: wider[name] for name in dict.fromkeys((*columns, *chosen, *wider))}

    def _write_parts(
        self,
        columns: Columns,
        side: str,
        parts: Sequence[str],
        coded: dict[str, Column],
        texts: dict[str, Texts],
    ) -> bool:
        """Add columns of keys or values by their texts; without any, all have to be decoded."""
        is_key, with_format = _SIDES[side], "format" in parts
        topics, data = columns["topic"], columns[side]
        is_off = self.settings.is_off or self._masks is not None or self._has_hooks(is_key)
        if is_off or "decoded" not in parts:
            return False
        if not isinstance(data, Slices) or not isinstance(topics, Coded):
            return False
        place = side, with_format
        if place not in self._texts:
            self._texts[place] = RecordTexts(self.reader, is_key=is_key, with_format=with_format)
        written = self._texts[place].write(topics, data, columns["headers"])
        others = self.decoded_column(columns, side, written.left)
        for part in parts:
            name = f"{side}_{part}"
            if part == "decoded":
                texts[name] = _all_texts(written, others)
            else:
                coded[name] = _all_labels(written, others, part)
        return True

    def fields_column(
        self, columns: Columns, side: str, path: Sequence[str], rows: Ints
    ) -> list[FieldValues]:
        """Return the values at a path of the keys or values of some rows."""
        topics, data = columns["topic"], columns[side]
        is_off = self.settings.is_off or self._has_hooks(_SIDES[side])
        if is_off or not isinstance(data, Slices) or not isinstance(topics, Coded):
            found = self.decoded_column(columns, side, rows, with_text=False).rows
            return [field_values([tuple(values_at(each.value, path)) for each in found])]
        fields = self._fields.get((side, *path))
        if fields is None:
            fields = RecordFields(self.reader, path, is_key=_SIDES[side])
            self._fields[side, *path] = fields
        return fields.values(topics, data, columns["headers"], rows)

    def decoded_column(
        self,
        columns: Columns,
        side: str,
        rows: Ints,
        *,
        with_text: bool = True,
        with_problem: bool = False,
    ) -> DecodedColumn:
        """Return the decoded keys or values of some rows of columns; see `ValueReader.read`."""
        if self.settings.is_off:
            return DecodedColumn(np.zeros(len(rows), np.int64), [NOTHING])
        is_key = _SIDES[side]
        if self._has_hooks(is_key):  # called for each record, equal or not: they may count
            records = records_of(columns, rows)
            needs = {"with_text": with_text, "with_problem": with_problem}
            each = [self._decoded(each, is_key=is_key, **needs) for each in records]
            return DecodedColumn(np.arange(len(rows)), each)
        return decode_column(
            self.reader,
            columns,
            side,
            rows,
            is_key=is_key,
            with_text=with_text,
            with_problem=with_problem,
        )

    def _has_hooks(self, is_key: bool) -> bool:
        """Return whether hooks decode keys, or values."""
        hooks = None if self.settings.is_off else self.reader.hooks
        return hooks is not None and hooks.are_for(is_key=is_key)

    def _decoded(self, record: Record, *, is_key: bool, **needs: bool) -> DecodedValue:
        return self.reader.read_record(record, is_key=is_key, **needs)


def _hidden(columns: Columns, rows: Ints) -> Columns:
    """Return rows with a mask for keys, values and hidden headers; null stays null."""
    mask = HIDDEN.encode()
    moved, buffers, at = with_bytes(columns, [np.frombuffer(mask, np.uint8)])
    found = {**moved}
    for side in _SIDES:
        column = found[side]
        present = np.array([column.value(row) is not None for row in rows.tolist()], np.bool_)
        start, length = np.where(present, at, NONE), np.full(len(rows), len(mask))
        found[side] = Slices(start, length, buffers)
    headers = found["headers"]
    if hides_headers() and isinstance(headers, Headers):
        keys = (key or b"" for key in headers.keys.contents(np.arange(len(headers.keys))))
        names = (key.decode("utf-8", "surrogateescape") for key in keys)
        is_hidden = np.fromiter(map(header_is_hidden, names), np.bool_, len(headers.keys))
        start = np.where(is_hidden, at, headers.values.start)
        length = np.where(is_hidden, len(mask), headers.values.length)
        values = Slices(start, length, buffers)
        found["headers"] = Headers(headers.first, headers.count, headers.keys, values)
    return found


class DecodedRecord:
    """A record as the operands of filters and columns, by its decoded key and value."""

    def __init__(self, decoded: Callable[[str], DecodedValue]) -> None:
        """Start; `decoded` returns the decoded `key` or `value`."""
        self._decode = decoded
        self._found: dict[str, DecodedValue] = {}

    def has(self, name: str) -> bool:
        """Return whether it has a column."""
        return name in COLUMNS

    def column(self, name: str) -> object:
        """Return one of `COLUMNS`."""
        side, part = _parts_of(name)
        if side not in self._found:
            self._found[side] = self._decode(side)
        found = self._found[side]
        return found.value if part == "decoded" else getattr(found, part)

    def body(self, kind: str) -> None:
        """Return no body: only the record is known."""
        return


Cells: TypeAlias = Callable[[DecodedRecord], Mapping[str, Any]]
"""Returns cells of a record by name."""


def _parts_of(name: str) -> tuple[str, str]:
    """Return the side and the part that one of `COLUMNS` names."""
    side, _, part = name.partition("_")
    return side, part


def cells_of(found: DecodedValue, side: str) -> dict[str, str | None]:
    """Return the cells of a key or a value by the columns of `side`."""
    cells = {"format": found.format, "schema": found.schema, "problem": found.problem}
    cells["decoded"] = json_text(found)
    return {f"{side}_{part}": cell for part, cell in cells.items()}


def _all_texts(written: WrittenTexts, others: DecodedColumn) -> Texts:
    """Return the texts of all rows; `others` are those of the rows that are left."""
    start, size, parts, left, *_ = written
    more = others.texts()
    start[left] = np.where(more.start == NONE, NONE, sum(map(len, parts)) + more.start)
    size[left] = more.length
    return Texts(start, size, [*parts, *more.parts])


def _all_labels(written: WrittenTexts, others: DecodedColumn, part: str) -> Coded:
    """Return the format, the schema or the problem of all rows; see `_all_texts`."""
    labels = [None if part == "problem" else getattr(each, part) for each in written.programs]
    of_program, of_left = others.labels(part, labels)
    codes = np.append(of_program, NONE)[
        np.where(written.program == NONE, len(labels), written.program)
    ]
    codes[written.left] = of_left.codes
    return Coded(codes, of_left.values)


class ValueQuery(ColumnQuery):
    """Rows of `records` for a filter; keys and values are decoded on demand."""

    def __init__(self, columns: Columns, values: RecordValues) -> None:
        super().__init__(columns)
        self._values = values
        self._found: dict[str, tuple[NDArray[np.bool_], list[DecodedValue]]] = {}

    def number_column(self, name: str, rows: Ints) -> tuple[NDArray[Any], Any] | None:
        """Return values and validity of a numeric column; None for other columns."""
        return None if name in COLUMNS else super().number_column(name, rows)

    def fields_at(self, name: str, path: Sequence[str], rows: Ints) -> list[FieldValues]:
        """Return the values at a path of decoded keys or values."""
        side, _ = _parts_of(name)
        if side not in self._found:
            return self._values.fields_column(self.columns, side, path, rows)
        found = self._decoded(side, rows)
        return [field_values([tuple(values_at(found[row].value, path)) for row in rows.tolist()])]

    def distinct_values(self, name: str, rows: Ints) -> tuple[Ints, Sequence[object]]:
        """Return the index of each row's value among the distinct values, and these."""
        if name not in COLUMNS:
            return super().distinct_values(name, rows)
        side, part = _parts_of(name)
        found = self._decoded(side, rows)
        if part == "decoded":
            return np.arange(len(rows)), [found[row].value for row in rows.tolist()]
        column = coded_texts([getattr(found[row], part) for row in rows.tolist()])
        return np.where(column.codes == NONE, len(column.values), column.codes), [
            *column.values,
            None,
        ]

    def _decoded(self, side: str, rows: Ints) -> list[DecodedValue]:
        """Return a list in which these rows are decoded."""
        if side not in self._found:
            count = len(self)
            self._found[side] = np.zeros(count, np.bool_), [NOTHING] * count
        is_found, found = self._found[side]
        missing = rows[~is_found[rows]]
        column = self._values.decoded_column(
            self.columns, side, missing, with_text=False, with_problem=True
        )
        for row, each in zip(missing.tolist(), column.rows, strict=True):
            found[row] = each
        is_found[missing] = True
        return found


def _pieces(columns: Columns) -> Iterator[Columns]:
    """Yield the rows of a part, not too many at a time."""
    for begin in range(0, max(row_count(columns), 1), _PIECE_ROWS):
        yield select_rows(columns, slice(begin, begin + _PIECE_ROWS))
