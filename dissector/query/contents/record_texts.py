"""
The texts of many keys or values, for columns: written by kernels, without the values themselves.

Equal to those of the reader, which has what kernels leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dissector.engine.tables.column_types import Bytes, Coded, Column, Slices
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.query.contents.record_programs import RecordPrograms
from dissector.values.carriers.envelopes import CLOUD_EVENT_HEADER
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
        program: Which program has written each; NONE for null, and those that are left.
        programs: What has written them.
    """

    start: Ints
    size: Ints
    texts: Sequence[Bytes]
    left: Ints
    program: Ints
    programs: Sequence[TextProgram]


class RecordTexts:
    """Writes the texts of keys, or of values."""

    def __init__(self, reader: ValueReader, *, is_key: bool, with_format: bool) -> None:
        """
        Start.

        Args:
            reader: Decodes values to know how others are read.
            is_key: Whether they are keys.
            with_format: Whether values are left to it whose format depends on what they say.
        """
        self._reader = reader
        self._is_key = is_key
        self._with_format = with_format
        without = (CLOUD_EVENT_HEADER,) if with_format else ()
        self._programs: RecordPrograms[TextProgram] = RecordPrograms(
            reader, self._program, is_key=is_key, without=without
        )

    def _program(self, topic: str | None, data: bytes) -> TextProgram | None:
        program = self._reader.text_program(topic, data, is_key=self._is_key)
        is_left = program is not None and program.format is None and self._with_format
        return None if is_left else program

    def write(self, topics: Coded, data: Slices, headers: Column) -> WrittenTexts:
        """Write the texts of all rows."""
        start = np.full(len(data), NONE)
        size = np.zeros(len(data), np.int64)
        of_row = np.full(len(data), NONE)
        texts: list[Bytes] = []
        programs: list[TextProgram] = []
        buffers = data.buffers.for_kernels

        def write(program: TextProgram, prefix: bytes, group: Ints) -> Ints:
            found = program.write(prefix, data.start[group], data.length[group], buffers)
            is_written = found.form == Form.WRITTEN
            before = sum(map(len, texts))
            start[group[is_written]] = before + found.start[is_written]
            size[group[is_written]] = found.size[is_written]
            of_row[group[is_written]] = len(programs)
            programs.append(program)
            texts.extend(found.texts)
            return found.form

        rows = np.arange(len(data))
        left = self._programs.run(topics, data, headers, rows, write)
        return WrittenTexts(start, size, texts, left, of_row, programs)
