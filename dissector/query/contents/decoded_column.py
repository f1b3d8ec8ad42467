"""Keys or values of many records, decoded: those that are equal in a topic once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np

from dissector.engine.tables.column_types import (
    Coded,
    Columns,
    Headers,
    Slices,
    Texts,
    numbered,
    texts_of,
)
from dissector.engine.tables.dictionaries import distinct_texts
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.query.contents.hooked_records import contents_of, headers_of
from dissector.query.contents.record_programs import has_header
from dissector.values.carriers.envelopes import CLOUD_EVENT_HEADER
from dissector.values.carriers.schema_headers import SCHEMA_HEADERS
from dissector.values.value_reader import NOTHING, DecodedValue, ValueReader
from dissector.view.text.escape import safe_json


class DecodedColumn(NamedTuple):
    """
    Decoded keys or values.

    Attributes:
        codes: Of each row, the index of its key or value.
        values: These, by the first row of each.
    """

    codes: Ints
    values: Sequence[DecodedValue]

    @property
    def rows(self) -> list[DecodedValue]:
        """The key or value of each row."""
        return list(map(self.values.__getitem__, self.codes.tolist()))

    def changed(self, change: Callable[[DecodedValue], DecodedValue]) -> DecodedColumn:
        """Return the column with each key or value changed."""
        return DecodedColumn(self.codes, [change(each) for each in self.values])

    def labels(self, part: str, before: Sequence[str | None] = ()) -> tuple[Ints, Coded]:
        """
        Return the formats, schemas or problems.

        Args:
            part: Which of these.
            before: More of them.

        Returns:
            The codes of `before`; and those of the rows, with the texts of both.
        """
        column = coded_texts([*before, *(getattr(each, part) for each in self.values)])
        codes = column.codes[len(before) :]
        return column.codes[: len(before)], Coded(codes[self.codes], column.values)

    def texts(self) -> Texts:
        """Return the keys or values as JSON."""
        found = texts_of([_json_bytes(each) for each in self.values])
        return Texts(found.start[self.codes], found.length[self.codes], found.parts)


def decode_column(
    reader: ValueReader,
    columns: Columns,
    side: str,
    rows: Ints,
    *,
    is_key: bool,
    with_text: bool = True,
    with_problem: bool = False,
) -> DecodedColumn:
    """Return the decoded keys or values of some rows of columns, without hooks; see `read`."""
    topics, data, headers = columns["topic"], columns[side], columns["headers"]
    assert isinstance(topics, Coded)
    # What headers say counts for single records.
    names = {*SCHEMA_HEADERS[is_key], CLOUD_EVENT_HEADER}
    codes, first = _equal_rows(columns, side, rows, names)
    rows = rows[first]
    topic_of = [*topics.values, None]
    known: dict[tuple[int, bytes], int] = {}
    numbers: list[int] = []
    values: list[DecodedValue] = []
    topic_codes = topics.codes[rows]
    for code, content, named in zip(
        np.where(topic_codes == NONE, len(topics.values), topic_codes).tolist(),
        contents_of(data, rows),
        headers_of(headers, rows),
        strict=True,
    ):
        place = None if content is None or not names.isdisjoint(named) else (code, content)
        number = None if place is None else known.get(place)
        if number is None:
            number = len(values)
            values.append(
                NOTHING
                if content is None
                else reader.read(
                    topic_of[code],
                    content,
                    named,
                    is_key=is_key,
                    with_text=with_text,
                    with_problem=with_problem,
                )
            )
            if place is not None:
                known[place] = number
        numbers.append(number)
    return DecodedColumn(np.array(numbers, np.int64)[codes], values)


def _equal_rows(
    columns: Columns, side: str, rows: Ints, names: Collection[str]
) -> tuple[Ints, Ints]:
    """
    Return which of some rows have equal keys or values, as far as that can be seen at once.

    Args:
        columns: The columns of records.
        side: `key` or `value`.
        rows: The rows.
        names: Rows with headers of these names are equal to no others.

    Returns:
        Of each row, the index of those that are equal; and the places of their first rows, in
        order.
    """
    every = np.arange(len(rows))
    topics, data, headers = columns["topic"], columns[side], columns["headers"]
    if not isinstance(data, Slices) or not isinstance(headers, Headers) or not len(rows):
        return every, every
    assert isinstance(topics, Coded)
    start, length = data.start[rows], data.length[rows]
    found = distinct_texts(data.buffers.for_kernels, start, length)
    if found is None:
        return every, every
    content = np.zeros(len(rows), np.int64)
    content[start != NONE] = found[0] + 1
    place = content * (len(topics.values) + 1) + topics.codes[rows] + 1
    is_alone = has_header(headers, rows, {name.encode() for name in names})
    place[is_alone] = place.max() + 1 + every[is_alone]
    return numbered(place)


def coded_texts(values: Sequence[str | None]) -> Coded:
    """Return texts as a column."""
    found = [each for each in dict.fromkeys(values) if each is not None]
    codes: dict[str | None, int] = {None: NONE}
    codes.update(zip(found, range(len(found)), strict=True))
    return Coded(np.fromiter(map(codes.__getitem__, values), np.int64, len(values)), found)


def json_text(found: DecodedValue) -> str | None:
    """Return a key or a value as a line of JSON."""
    text = found.text
    return text if text is None or text.isprintable() else safe_json(text)


def _json_bytes(found: DecodedValue) -> bytes | None:
    text = json_text(found)
    return None if text is None else text.encode()
