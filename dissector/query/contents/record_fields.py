"""
One field of many keys or values, for filters: no more is made of a value than the field.

A value is stepped over to its end, so that one that does not decode has no fields here either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from dissector.engine.tables.column_types import Coded, Column, Slices, items_of
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.filter.evaluate import values_at
from dissector.filter.field_values import FieldValues, field_values
from dissector.query.contents.hooked_records import headers_of
from dissector.query.contents.record_programs import RecordPrograms
from dissector.values.steps.field_arrays import Form
from dissector.values.steps.step_programs import FieldColumns, FieldProgram, Place
from dissector.values.value_reader import ValueReader


class RecordFields:
    """Reads the field at a path."""

    def __init__(self, reader: ValueReader, path: Sequence[str], *, is_key: bool) -> None:
        """Start; the reader decodes what has no faster way."""
        self._reader = reader
        self._path = path
        self._is_key = is_key
        make = partial(reader.field_program, path, is_key=is_key)
        self._programs: RecordPrograms[FieldProgram] = RecordPrograms(reader, make, is_key=is_key)

    def values(self, topics: Coded, data: Slices, headers: Column, rows: Ints) -> list[FieldValues]:
        """Return the values at the path in keys or values; none of those that do not decode."""
        parts: list[FieldValues] = []
        buffers = data.buffers.for_kernels

        def find(program: FieldProgram, prefix: bytes, group: Ints) -> Ints:
            some = rows[group]
            found = program.find(prefix, data.start[some], data.length[some], buffers)
            parts.extend(_parts(found, group, data, program.places))
            return found.form

        left = self._programs.run(topics, data, headers, rows, find)
        if len(left):
            parts.append(self._decode(topics, data, headers, rows, left))
        return parts

    def _decode(
        self, topics: Coded, data: Slices, headers: Column, rows: Ints, left: Ints
    ) -> FieldValues:
        some, names = rows[left], [*topics.values, None]
        codes = topics.codes[some]
        found = [
            tuple(
                values_at(
                    self._reader.read(
                        names[code], content, named, is_key=self._is_key, with_text=False
                    ).value,
                    self._path,
                )
            )
            if content is not None
            else ()
            for code, content, named in zip(
                np.where(codes == NONE, len(topics.values), codes).tolist(),
                data.contents(some),
                headers_of(headers, some),
                strict=True,
            )
        ]
        values = field_values(found)
        return values._replace(rows=left[values.rows])


def _parts(
    found: FieldColumns, rows: Ints, data: Slices, places: Sequence[Place]
) -> Iterator[FieldValues]:
    """Yield what a program found, by its form."""
    for form in np.flatnonzero(np.bincount(found.form)).tolist():
        chosen = np.flatnonzero(found.form == form)
        of_form, number = rows[chosen], found.number[chosen]
        match form:
            case Form.INTEGER:
                yield FieldValues(of_form, np.arange(len(chosen)), number)
            case Form.DOUBLE:
                yield FieldValues(of_form, np.arange(len(chosen)), number.view(np.float64))
            case Form.BOOLEAN:
                yield FieldValues(of_form, number, (False, True))
            case Form.NULL:
                yield FieldValues(of_form, np.zeros(len(chosen), np.int64), (None,))
            case Form.PLACED:
                contents = Slices(number, found.size[chosen], data.buffers)
                yield _placed(contents, found.place[chosen], of_form, places)


def _placed(contents: Slices, at: Ints, rows: Ints, places: Sequence[Place]) -> FieldValues:
    """Return values of fields that were found as bytes; equal ones are read once."""
    known: dict[tuple[int, bytes | None], int] = {}
    codes = np.fromiter(
        (
            known.setdefault(each, len(known))
            for each in zip(at.tolist(), contents.contents(np.arange(len(rows))), strict=True)
        ),
        np.int64,
        len(rows),
    )
    flat: list[object] = []
    counts = []
    for place, content in known:
        read, rest = places[place]
        before = len(flat)
        flat += values_at(read(content or b""), rest)
        counts.append(len(flat) - before)
    count = np.array(counts, np.int64)
    of_row = count[codes]
    index = items_of((np.cumsum(count) - count)[codes], of_row)
    return FieldValues(np.repeat(rows, of_row), index, flat)
