"""
The bodies of many exchanges as JSON, in bulk: the same texts as by `body_text`.

A kernel writes them from the bytes (`body_kernel`); the bodies that it leaves are decoded and
written by Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.records.batch_scanner import verify_crcs
from dissector.engine.records.batch_table import UNDECIDED, VALID, Batches
from dissector.engine.records.checksum import SMALL_BYTES
from dissector.engine.records.decompressor import iter_payloads
from dissector.engine.records.record_decoder import check_records
from dissector.engine.records.record_locator import RecordFields, find_field_batches, locate_records
from dissector.engine.tables.column_types import Columns, JsonTexts, SliceBuffers, select_rows
from dissector.engine.tables.exchange_table import NONE, Exchanges, Frames, Ints
from dissector.kernel.arrays import Buffers
from dissector.kernel.json_strings import UNSAFE
from dissector.kernel.named_rows import RowArray, dtype_of, table_of
from dissector.protocol.api import KINDS, Kind
from dissector.protocol.embedded.masking import is_secret_topic
from dissector.protocol.records.compression import CODEC_MASK
from dissector.view.json import body_kernel as loop
from dissector.view.json.body import body_text
from dissector.view.json.body_arrays import (
    BodyArrays,
    BodyBatch,
    BodyField,
    BodyMessage,
    JsonProgramArrays,
    OpenArray,
    TagSlot,
    TextPlace,
)
from dissector.view.json.json_constants import HEADER_FIELDS, HeaderField
from dissector.view.json.json_program import BodyPrograms, Step, body_programs
from dissector.view.tables.text_arrays import TextArrays, TextUse

Bytes: TypeAlias = NDArray[np.uint8]

OUT_BYTES = 4 << 20
"""Size of the output buffer; it grows if a single exchange needs more."""

PORTION_RECORDS = 20_000
"""Approximate number of records decompressed at a time."""

_NO_BYTES: Bytes = np.zeros(0, np.uint8)


def with_bodies(
    table: Exchanges, columns: Columns, show_secrets: bool, names: TopicNames | None = None
) -> Iterator[Columns]:
    """
    Yield columns of exchanges with the columns of their bodies appended, some rows at a time.

    They are overwritten when the next are requested.

    Args:
        table: The exchanges.
        columns: The columns of these exchanges.
        show_secrets: Whether passwords, tokens and salts are shown.
        names: The known names of topic ids.
    """
    bodies = BodyWriter(table, show_secrets, names or TopicNames())
    for until, arena in bodies.records.portions(len(table)):
        while bodies.row < until:
            first = bodies.row
            texts = bodies.write(until, arena)
            if bodies.row > first:
                yield {**select_rows(columns, slice(first, bodies.row)), **texts}


class _WindowBatches:
    """The batches of a window, as arrays for the kernel."""

    def __init__(self, table: Exchanges, show_secrets: bool, names: TopicNames) -> None:
        self._table = table
        self._record_fields: RecordFields = locate_records(table)
        fields = self._record_fields
        self._batches: Batches = find_field_batches(table, fields, message_sets=True)
        batches = self._batches
        self.state = batches.state
        if not show_secrets:
            topics = map(names.name, fields.topics)
            is_secret = np.array([is_secret_topic(topic) for topic in topics], np.bool_)
            batches.state[is_secret[fields.topic]] = UNDECIDED
        is_large = (batches.end - batches.payload_start >= SMALL_BYTES) & (
            batches.attributes & CODEC_MASK == 0
        )
        is_large &= (batches.magic == 2) & (batches.state[batches.field] == VALID)
        verify_crcs(table.data, table.carry_over, batches, np.flatnonzero(is_large))
        rows, count = np.arange(len(table) + 1), np.arange(len(fields.row) + 1)
        self.first_field = np.searchsorted(fields.row, rows)
        first_batch = np.searchsorted(batches.field, count)
        self.fields = np.empty(len(count), dtype_of(BodyField))
        self.fields["start"][:-1] = fields.start
        self.fields["start"][-1] = NONE
        self.fields["first_batch"] = first_batch
        self.batches = np.empty(len(batches), dtype_of(BodyBatch))
        self.batches["start"], self.batches["end"] = batches.payload_start, batches.end
        self.batches["base_offset"] = batches.base_offset

    def portions(self, rows: int) -> Iterator[tuple[int, Bytes]]:
        """Yield the end row of available records, and the arena with their bytes."""
        batches, fields = self._batches, self._record_fields
        data, carry_over = self._table.data, self._table.carry_over
        unit, is_wrapper = fields.row[batches.field], batches.is_wrapper
        for payloads in iter_payloads(data, carry_over, batches, unit, PORTION_RECORDS):
            if len(payloads.batch):
                check_records(
                    data, carry_over, batches, payloads.select(is_wrapper[payloads.batch])
                )
                chosen, of = payloads.batch, self.batches
                of["start"][chosen], of["end"][chosen] = payloads.start, payloads.end
                of["base_offset"][chosen] = batches.base_offset[chosen]
                yield int(unit[payloads.batch[-1]]) + 1, payloads.arena
        yield rows, _NO_BYTES


@dataclass(slots=True)
class _ProgramArrays:
    """The programs as arrays for the kernel."""

    code: RowArray
    tags: Ints
    pool: Bytes
    offsets: Ints

    @classmethod
    def from_programs(cls, programs: BodyPrograms) -> _ProgramArrays:
        """Convert programs to arrays."""
        texts = [text.encode() for text in programs.texts]
        return cls(
            table_of(programs.code, Step),
            np.array(programs.tags, np.int64),
            np.frombuffer(b"".join(texts), np.uint8),
            np.concatenate([[0], np.cumsum([len(text) for text in texts])]),
        )


class BodyWriter:
    """
    Writes the bodies of a window, from the first exchange on.

    Attributes:
        row: The next exchange.
    """

    def __init__(self, table: Exchanges, show_secrets: bool, names: TopicNames) -> None:
        self._table = table
        self._show_secrets = show_secrets
        self._names = names
        self.row = 0
        self.records = _WindowBatches(table, show_secrets, names)
        programs = body_programs(show_secrets)
        self._messages = np.zeros(2 * len(table), dtype_of(BodyMessage))
        for side, kind in enumerate(KINDS):
            self._messages[side::2] = _message_table(table, kind, programs)
        self._programs = _ProgramArrays.from_programs(programs)
        self._out = np.empty(OUT_BYTES, np.uint8)
        self._texts = np.zeros(2 * len(table), dtype_of(TextPlace))

    def write(self, until: int, arena: Bytes) -> dict[str, JsonTexts]:
        """Write as many bodies as fit; if none fit, the output buffer grows for the next call."""
        table, records, programs = self._table, self.records, self._programs
        first, used = self.row, np.zeros((), dtype_of(TextUse))
        window = table.data, table.carry_over, arena
        bodies = (
            *(self._messages, records.first_field, records.fields, records.state),
            *(records.batches, _HEADER_FIELDS, table.login_signs),
        )
        stack, tag_slots = (
            np.zeros(loop.DEPTH, dtype_of(OpenArray)),
            np.zeros(loop.MAX_TAG_SLOTS, dtype_of(TagSlot)),
        )
        code = programs.code, programs.tags, stack, tag_slots
        text = programs.pool, programs.offsets, UNSAFE, self._out
        self.row = loop.write_bodies(
            BodyArrays._make(bodies),
            Buffers._make(window),
            JsonProgramArrays._make(code),
            TextArrays._make(text),
            first,
            until,
            self._texts,
            used,
        )
        if self.row == first:
            self._out = np.empty(2 * len(self._out), np.uint8)
        texts = self._texts[2 * first : 2 * self.row]
        slow_path_texts = self._write_slow_path(first, texts, int(used["bytes"]))
        start = np.where(texts["length"] == loop.NO_BODY, NONE, texts["start"])
        buffers = SliceBuffers(self._out[: int(used["bytes"])], slow_path_texts, _NO_BYTES)
        return {
            kind: JsonTexts(start[side::2].copy(), texts["length"][side::2].copy(), buffers)
            for side, kind in enumerate(KINDS)
        }

    def _write_slow_path(self, first: int, texts: RowArray, used: int) -> Bytes:
        """Return the bodies that the kernel left to Python, and set their offsets."""
        buffer = bytearray()
        for number in np.flatnonzero(texts["length"] == loop.SLOW_PATH_BODY).tolist():
            text = self.decode_body(first + number // 2, number % 2)
            texts[number] = (used + len(buffer), len(text)) if text else (0, loop.NO_BODY)
            buffer += text
        return np.frombuffer(bytes(buffer), np.uint8)

    def decode_body(self, row: int, side: int) -> bytes:
        """Return one body as text; empty without one."""
        exchange = Exchange(self._table, row, capture="", client="", broker="", names=self._names)
        message = exchange.response if side else exchange.request
        text = body_text(message, exchange.request, show_secrets=self._show_secrets)
        return (text or "").encode()


def _message_table(table: Exchanges, kind: Kind, programs: BodyPrograms) -> RowArray:
    """Return the requests or the responses."""
    frames: Frames = getattr(table, kind)
    has_body = (
        (frames.start != NONE) & (frames.captured_bytes == frames.size) & (table.api_key != NONE)
    )
    rows = np.flatnonzero(has_body)
    versions, version_numbers = np.unique(
        np.stack([table.api_key[rows], table.api_version[rows]]), axis=1, return_inverse=True
    )
    steps = [programs.start(key, version, kind) for key, version in versions.T.tolist()]
    out = np.zeros(len(table), dtype_of(BodyMessage))
    out["step"] = -1
    out["start"][rows] = frames.start[rows]
    out["end"][rows] = (frames.start + frames.captured_bytes)[rows]
    out["step"][rows] = np.array(steps, np.int64)[version_numbers.ravel()]
    return out


_HEADER_FIELDS = table_of(HEADER_FIELDS, HeaderField)
