"""
The texts of many keys or values, for columns: written by kernels, without the values themselves.

Equal to those of the reader, which has what kernels leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from dissector.engine.tables.column_types import Bytes, Coded, Column, Slices
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.query.contents.record_programs import RecordPrograms, buffers_of
from dissector.values.steps.field_arrays import Form
from dissector.values.steps.step_programs import TextProgram
from dissector.values.value_reader import ValueReader


class WrittenTexts(NamedTuple):
    """
    Texts of rows.

    Attributes:
        start: Where each begins in the texts; NONE without one.
        size: Its bytes.
        texts: All of them, in parts that follow each other.
        left: The rows that are left to the reader.
    """

    start: Ints
    size: Ints
    texts: Sequence[Bytes]
    left: Ints


class RecordTexts:
    """Writes the texts of keys, or of values."""

    def __init__(self, reader: ValueReader, *, is_key: bool) -> None:
        """Start; the reader decodes values to know how others are read."""
        self._programs: RecordPrograms[TextProgram] = RecordPrograms(
            reader, partial(reader.text_program, is_key=is_key), is_key=is_key
        )

    def write(self, topics: Coded, data: Slices, headers: Column) -> WrittenTexts:
        """Write the texts of all rows."""
        start = np.full(len(data), NONE)
        size = np.zeros(len(data), np.int64)
        texts: list[Bytes] = []
        buffers = buffers_of(data)

        def write(program: TextProgram, prefix: bytes, group: Ints) -> Ints:
            found = program.write(prefix, data.start[group], data.length[group], buffers)
            is_written = found.form == Form.WRITTEN
            before = sum(map(len, texts))
            start[group[is_written]] = before + found.start[is_written]
            size[group[is_written]] = found.size[is_written]
            texts.extend(found.texts)
            return found.form

        rows = np.arange(len(data))
        left = self._programs.run(topics, data, headers, rows, write)
        return WrittenTexts(start, size, texts, left)
