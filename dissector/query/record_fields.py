"""
One field of many keys or values, for filters: no more is made of a value than the field.

A value is stepped over to its end, so that one that does not decode has no fields here either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dissector.engine.tables.column_types import Coded, Column, Headers, Slices, items_of
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.filter.evaluate import values_at
from dissector.filter.field_values import FieldValues, field_values
from dissector.kernel.arrays import Buffers
from dissector.query.hooked_records import headers_of
from dissector.values.carriers.schema_prefixes import PREFIX_END
from dissector.values.steps.field_arrays import Form
from dissector.values.steps.field_programs import FieldColumns, FieldProgram, Place
from dissector.values.value_reader import ValueReader

_MAX_ROUNDS = 32
"""Values of a topic in a window that are decoded to find out how the others are read."""


class RecordFields:
    """Reads the field at a path."""

    def __init__(self, reader: ValueReader, path: Sequence[str], *, is_key: bool) -> None:
        """Start; the reader decodes what has no faster way."""
        self._reader = reader
        self._path = path
        self._is_key = is_key
        self._programs: dict[tuple[str | None, bytes], list[FieldProgram]] = {}
        self._without: set[tuple[str | None, bytes]] = set()

    def values(self, topics: Coded, data: Slices, headers: Column, rows: Ints) -> list[FieldValues]:
        """Return the values at the path in keys or values; none of those that do not decode."""
        is_plain = headers.count[rows] == 0 if isinstance(headers, Headers) else np.zeros(len(rows))
        codes = topics.codes[rows]
        slow = [np.flatnonzero(is_plain == 0)]
        parts: list[FieldValues] = []
        for topic, group in _groups(topics, codes, np.flatnonzero(is_plain)):
            slow.append(self._find(topic, data, rows, group, parts))
        left = np.sort(np.concatenate(slow))
        if len(left):
            parts.append(self._decode(topics, data, headers, rows, left))
        return parts

    def _find(
        self, topic: str | None, data: Slices, rows: Ints, group: Ints, parts: list[FieldValues]
    ) -> Ints:
        """Find the field in rows of a topic; return those that are left to the reader."""
        buffers = data.buffers
        arrays = Buffers._make((buffers.data, buffers.carry_over, buffers.arena))
        left = []
        for _ in range(_MAX_ROUNDS):
            if not len(group):
                break
            content = data.value(int(rows[group[0]])) or b""
            program = self._program(topic, content)
            if program is None:
                left.append(group[:1])
                group = group[1:]
                continue
            some = rows[group]
            prefix = content[:PREFIX_END]
            found = program.find(prefix, data.start[some], data.length[some], arrays)
            parts += _parts(found, group, data, program.places)
            left.append(group[found.form == Form.REFUSED])
            group = group[found.form == Form.OTHER]
        return np.concatenate([*left, group])

    def _program(self, topic: str | None, content: bytes) -> FieldProgram | None:
        """Return what finds the field in values that begin like this one."""
        place = topic, content[:PREFIX_END]
        known = self._programs.setdefault(place, [])
        for each in known:
            if content.startswith(each.lead, PREFIX_END):
                return each
        if place in self._without:
            return None
        found = self._reader.read(topic, content, is_key=self._is_key, with_text=False)
        if found.problem or found.origin is None:
            return None
        program = self._reader.field_program(topic, content, self._path, is_key=self._is_key)
        if program is None:
            self._without.add(place)
        else:
            known.append(program)
        return program

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


def _groups(topics: Coded, codes: Ints, rows: Ints) -> Iterator[tuple[str | None, Ints]]:
    """Yield rows by their topic."""
    rows = rows[np.argsort(codes[rows], kind="stable")]
    ordered = codes[rows]
    bounds = np.flatnonzero(np.diff(ordered)) + 1
    for group in np.split(rows, bounds) if len(rows) else ():
        code = int(codes[group[0]])
        yield None if code == NONE else topics.values[code], group


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
