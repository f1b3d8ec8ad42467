"""Runs programs over the keys or values of many records: those of a topic and a schema at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.column_types import Coded, Column, Headers, Slices
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.values.carriers.schema_headers import SCHEMA_HEADERS
from dissector.values.carriers.schema_prefixes import PREFIX_END
from dissector.values.steps.field_arrays import Form
from dissector.values.steps.step_programs import StepProgram
from dissector.values.value_reader import ValueReader

_MAX_ROUNDS = 32
"""Values of a topic in a window that are decoded to find out how the others are read."""

_Program = TypeVar("_Program", bound=StepProgram)

Make: TypeAlias = Callable[[str | None, bytes], _Program | None]
"""Returns the program of a topic for values like one that has decoded."""

Use: TypeAlias = Callable[[_Program, bytes, Ints], Ints]
"""Runs a program with a prefix over some rows, and returns their forms."""


class RecordPrograms(Generic[_Program]):
    """The programs of keys, or of values, so far."""

    def __init__(
        self,
        reader: ValueReader,
        make: Make[_Program],
        *,
        is_key: bool,
        without: Collection[str] = (),
    ) -> None:
        """
        Start.

        Args:
            reader: Decodes what has no program, and values to make programs by.
            make: Makes programs.
            is_key: Whether they are for keys.
            without: Headers whose records are left to the reader, besides those that name schemas.
        """
        self._headers = {name.encode() for name in (*SCHEMA_HEADERS[is_key], *without)}
        self._reader = reader
        self._make = make
        self._is_key = is_key
        self._programs: dict[tuple[str | None, bytes], list[_Program]] = {}
        self._without: set[tuple[str | None, bytes]] = set()

    def run(
        self, topics: Coded, data: Slices, headers: Column, rows: Ints, use: Use[_Program]
    ) -> Ints:
        """Run programs over some rows; return which of these are left to the reader."""
        is_plain = ~has_header(headers, rows, self._headers)
        codes = topics.codes[rows]
        left = [np.flatnonzero(~is_plain)]
        for topic, group in _groups(topics, codes, np.flatnonzero(is_plain)):
            left += self._run_topic(topic, data, rows, group, use)
        return np.sort(np.concatenate(left))

    def _run_topic(
        self, topic: str | None, data: Slices, rows: Ints, group: Ints, use: Use[_Program]
    ) -> list[Ints]:
        """Run programs over rows of a topic; return those that are left to the reader."""
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
            form = use(program, content[:PREFIX_END], group)
            left.append(group[form == Form.REFUSED])
            group = group[form == Form.OTHER]
        return [*left, group]

    def _program(self, topic: str | None, content: bytes) -> _Program | None:
        """Return the program for values that begin like this one."""
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
        program = self._make(topic, content)
        if program is None:
            self._without.add(place)
        else:
            known.append(program)
        return program


def has_header(headers: Column, rows: Ints, names: Collection[bytes]) -> NDArray[np.bool_]:
    """Return which rows have a header of some names."""
    found = np.zeros(len(rows), np.bool_)
    if not isinstance(headers, Headers):
        return ~found
    count = headers.count[rows]
    items = Headers(headers.first[rows], count, headers.keys, headers.values).items
    of_size = np.isin(headers.keys.length[items], [len(name) for name in names])
    if of_size.any():
        of_row = np.repeat(np.arange(len(rows)), count)[of_size]
        keys = headers.keys.contents(items[of_size])
        is_name = np.fromiter((key in names for key in keys), np.bool_, len(of_row))
        found[of_row[is_name]] = True
    return found


def _groups(topics: Coded, codes: Ints, rows: Ints) -> Iterator[tuple[str | None, Ints]]:
    """Yield rows by their topic."""
    rows = rows[np.argsort(codes[rows], kind="stable")]
    ordered = codes[rows]
    bounds = np.flatnonzero(np.diff(ordered)) + 1
    for group in np.split(rows, bounds) if len(rows) else ():
        code = int(codes[group[0]])
        yield None if code == NONE else topics.values[code], group
