"""Fields of the messages of one API in a window, read from the tape into columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dissector.engine.records.produce_results import last_marked
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.engine.tape import tape
from dissector.protocol.api import Kind
from dissector.protocol.apis import api
from dissector.protocol.context import per_schemas
from dissector.protocol.program import programs
from dissector.protocol.schema import Field

ABSENT = NONE
"""A field that a message does not have."""


class MessageFields:
    """
    Some fields of all messages of an API in a window.

    Messages that the tape can't read to the end have no rows.

    Attributes:
        table: The window.
        rows: Rows of the messages that were read, in the window.
    """

    def __init__(
        self,
        table: Exchanges,
        key: int,
        kind: Kind,
        paths: Sequence[str],
        chosen: Ints | None = None,
        *,
        without_nulls: bool = False,
    ) -> None:
        """
        Read.

        Args:
            table: The window.
            key: Key of the API.
            kind: Request or response.
            paths: The fields.
            chosen: The only rows to read; None: all.
            without_nulls: Leave out messages with a null that their version does not allow.
        """
        self.table = table
        frames = table.request if kind == "request" else table.response
        is_whole = (frames.start != NONE) & (frames.captured_bytes == frames.size)
        rows = np.flatnonzero((table.api_key == key) & is_whole)
        if chosen is not None:
            rows = np.intersect1d(rows, chosen, assume_unique=True)
        steps = np.full(len(rows), -1, np.int64)
        versions, index = np.unique(table.api_version[rows], return_inverse=True)
        for number, version in enumerate(versions.tolist()):
            steps[index == number] = programs().start(key, version, kind)
        count = len(programs().field_refs)
        self._places = _places(key, kind, tuple(paths), count)
        required = np.zeros((len(versions), count), np.bool_)
        if without_nulls:
            for number, version in enumerate(versions.tolist()):
                required[number] = _required(key, kind, version, count)
        starts = frames.start[rows]
        fields = tape.read(
            table.data,
            table.carry_over,
            starts,
            starts + frames.captured_bytes[rows],
            steps,
            programs(),
            ((self._places > 0) | required.any(axis=0)).astype(np.uint8),
        )
        fits = fields.state == tape.FITS
        nulls = np.flatnonzero(fields.value == tape.NULL)
        is_odd = required[index[fields.message[nulls]], fields.field[nulls]]
        fits[fields.message[nulls[is_odd]]] = False
        stays = fits[fields.message] & (self._places[fields.field] > 0)
        self.rows = rows[fits]
        self._numbers = {path: number + 1 for number, path in enumerate(paths)}
        self._place = self._places[fields.field[stays]]
        self._row = rows[fields.message[stays]]
        self._start, self._value = fields.start[stays], fields.value[stays]

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, *paths: str) -> Ints:
        """Return the places on the tape of fields."""
        return np.flatnonzero(self._marks(paths))

    def row(self, places: Ints) -> Ints:
        """Return the rows of places in the window."""
        rows: Ints = self._row[places]
        return rows

    def value(self, places: Ints) -> Ints:
        """Return the numbers at places; of texts and arrays the length."""
        values: Ints = self._value[places]
        return values

    def around(self, places: Ints, *paths: str) -> Ints:
        """
        Return the last place of other fields before places, in the same message; -1 without one.

        An array's fields come before those of the structs inside.
        """
        marks = self._marks(paths)
        if not marks.any():
            return np.full(len(places), -1, np.int64)
        found = last_marked(marks)[places]
        is_own = marks[found] & (self._row[found] == self._row[places])
        own: Ints = np.where(is_own, found, -1)
        return own

    def each(self, path: str, absent: int = ABSENT) -> Ints:
        """Return the number of each message of `rows`; `absent` where it has no such field."""
        places = self.at(path)
        at = np.searchsorted(self.rows, self._row[places])
        values = np.full(len(self.rows), absent, np.int64)
        values[at] = self._value[places]
        return values

    def text(self, place: int) -> str | UUID | None:
        """Return the text, or the id, at a place; None for null or no place."""
        length = int(self._value[place]) if place >= 0 else -1
        if length < 0:
            return None
        content = self.table.bytes_at(int(self._start[place]), length)
        if int(self._place[place]) in self._ids:
            return UUID(bytes=content)
        return content.decode("utf-8", "surrogateescape")

    def texts(self, places: Ints) -> tuple[Ints, list[str | UUID | None]]:
        """Return for each place the index of its text among the distinct ones, and these."""
        found, index = np.unique(places, return_inverse=True)
        numbers: dict[str | UUID | None, int] = {}
        codes = [numbers.setdefault(self.text(place), len(numbers)) for place in found.tolist()]
        return np.array(codes, np.int64)[index.ravel()], list(numbers)

    def _marks(self, paths: Sequence[str]) -> Any:
        return np.isin(self._place, [self._numbers[path] for path in paths])

    @property
    def _ids(self) -> set[int]:
        """The numbers of paths whose fields are ids of topics."""
        return {number for path, number in self._numbers.items() if path.endswith("topic_id")}


@per_schemas
def _required(key: int, kind: Kind, version: int, count: int) -> NDArray[np.bool_]:
    """Return which of the first `count` fields of the programs may not be null in a version."""
    found = api(key)
    places = dict(_length_fields(found.schema(kind).fields, version)) if found else {}
    numbers = (
        ref is not None and (ref.key, ref.kind) == (key, kind) and places.get(ref.path, False)
        for ref in programs().field_refs[:count]
    )
    return np.fromiter(numbers, np.bool_, count)


def _length_fields(
    fields: Sequence[Field], version: int, prefix: str = ""
) -> Iterator[tuple[str, bool]]:
    """Yield the paths of texts, bytes and lists, and whether each may not be null."""
    for each in fields:
        if version not in each.versions:
            continue
        path, is_list = prefix + each.name, each.type.startswith("[]")
        if is_list or each.type in ("string", "bytes", "records"):
            yield path, version not in each.null
        if is_list and not each.fields:
            yield f"{path}.[]", each.type == "[]string"
        yield from _length_fields(each.fields, version, f"{path}.")


@per_schemas
def _places(key: int, kind: Kind, paths: tuple[str, ...], count: int) -> Ints:
    """
    Return for each field of the programs the number of its path, from 1; 0 for others.

    Only of the first `count` fields: programs only ever add fields.
    """
    numbers = {path: number + 1 for number, path in enumerate(paths)}
    refs = programs().field_refs[:count]
    return np.array(
        [
            numbers.get(ref.path, 0)
            if ref is not None and (ref.key, ref.kind) == (key, kind)
            else 0
            for ref in refs
        ],
        np.int64,
    )
