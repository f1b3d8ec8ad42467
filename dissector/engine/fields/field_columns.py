"""
The rows of the tape as readable columns: lengths, texts, offsets in the frame.

Texts stay where they are in the window where possible. Rendered texts (hex of bytes, uuids, masks)
are written to a third buffer, the arena.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.facts.credential_kernel import may_hold_credential
from dissector.engine.fields import field_display
from dissector.engine.fields.field_display import FieldDisplay
from dissector.engine.fields.field_masking import credential_rows, secret_value_rows
from dissector.engine.tables.column_types import SliceBuffers, Slices
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.engine.tables.polars_tables import escape_invalid_utf8
from dissector.engine.tape.tape import Tape
from dissector.kernel import Kernel
from dissector.kernel.arrays import I32, I64, U8
from dissector.protocol.embedded.sasl_tokens import MASK

Int32s: TypeAlias = NDArray[np.int32]

_UUID_CHARS = 36

ABSENT = -1
"""Length of a null; offset of a problem without a position."""


@dataclass(slots=True)
class FieldColumns:
    """
    Rows of fields.

    Attributes:
        message: Number of the message.
        name: Number of path and type; see `FieldNames`.
        item: See `Tape`.
        around: See `Tape`.
        offset: Offset of the content in its frame; ABSENT for a problem without a position.
        length: Bytes of the content; ABSENT for null and for arrays.
        value: The number, where `has_value`.
        has_value: Whether the field has a number.
        text: The text; null without one.
        problem: Number of the problem; 0 means none.
    """

    message: Int32s
    name: Int32s
    item: Int32s
    around: Int32s
    offset: Int32s
    length: Int32s
    value: Ints
    has_value: NDArray[np.uint8]
    text: Slices
    problem: NDArray[np.uint32]


class TapeMessages(Protocol):
    """
    The messages of a tape, in columns.

    Attributes:
        start: Address of the frame.
        connection: Number of the connection.
    """

    start: Ints
    connection: Ints


def tape_columns(
    table: Exchanges, tape: Tape, messages: TapeMessages, display: FieldDisplay
) -> FieldColumns:
    """
    Return the rows of a tape as columns.

    Args:
        table: The exchanges of the messages.
        tape: The fields of the messages.
        messages: The messages.
        display: Display format of each field.
    """
    count = len(tape)
    offset, length = np.empty(count, np.int32), np.empty(count, np.int32)
    has_value = np.empty(count, np.uint8)
    text_start, text_length = np.empty(count, np.int64), np.empty(count, np.int64)
    hex_rows, python_rows = np.empty(count, np.int64), np.empty(count, np.int64)
    # With shown secrets nothing is masked, so no search for credentials is needed.
    suspects = np.empty(0 if display.show_secrets else count, np.int64)
    counts = np.zeros(4, np.int64)
    arena_at = len(table.data) + len(table.carry_over)
    columns = (
        *(tape.message, tape.field, tape.start, tape.value),
        *(messages.start, display.kinds, display.sizes, table.login_signs),
    )
    results = (
        *(offset, length, has_value, text_start, text_length),
        *(hex_rows, python_rows, suspects, counts),
    )
    rows, found = _RowArrays._make(columns), _ColumnArrays._make(results)
    _fill_columns(table.data, table.carry_over, rows, found)
    python_rows = python_rows[: int(counts[_PYTHON_ROWS])]
    arena = np.empty(int(counts[_ARENA_BYTES]), np.uint8)
    arena[: len(MASK)] = np.frombuffer(MASK.encode(), np.uint8)
    _render_hex(table.data, table.carry_over, rows, found, arena)
    text = Slices(text_start, text_length, SliceBuffers(table.data, table.carry_over, arena))
    set_texts(
        text,
        python_rows,
        [_decode_text(table, tape, display.kinds, row) for row in python_rows.tolist()],
    )
    if not display.show_secrets:
        suspects = suspects[: int(counts[_SUSPECTS])]
        credentials = credential_rows(table, tape, suspects, messages.connection)
        secret = np.concatenate((secret_value_rows(table, tape, display.roles), credentials))
        text_start[secret], text_length[secret] = arena_at, len(MASK)
    return FieldColumns(
        tape.message,
        tape.field,
        tape.item,
        tape.around,
        offset,
        length,
        tape.value,
        has_value,
        text,
        np.zeros(count, np.uint32),
    )


def merge_columns(one: FieldColumns, other: FieldColumns) -> FieldColumns:
    """
    Merge the fields of different messages, in the order of these.

    Args:
        one: Fields with texts anywhere.
        other: Fields with all texts in the arena.
    """
    order = np.argsort(np.concatenate([one.message, other.message]), kind="stable")
    buffers, added = one.text.buffers, other.text.buffers.arena
    shift = len(buffers.data) + len(buffers.carry_over) + len(buffers.arena)
    start = np.where(other.text.start == NONE, NONE, other.text.start + shift)
    text = Slices(
        np.concatenate([one.text.start, start])[order],
        np.concatenate([one.text.length, other.text.length])[order],
        SliceBuffers(buffers.data, buffers.carry_over, np.concatenate([buffers.arena, added])),
    )
    columns = {
        each.name: np.concatenate([getattr(one, each.name), getattr(other, each.name)])[order]
        for each in fields(FieldColumns)
        if each.name != "text"
    }
    return FieldColumns(**columns, text=text)


def set_texts(column: Slices, rows: Ints, texts: list[str | None]) -> None:
    """Set the texts of some rows; the bytes are appended to the arena."""
    if not texts:
        return
    contents = [None if each is None else escape_invalid_utf8(each).encode() for each in texts]
    buffers = column.buffers
    at = len(buffers.data) + len(buffers.carry_over) + len(buffers.arena)
    lengths = np.array([len(each or b"") for each in contents], np.int64)
    null = np.array([each is None for each in contents])
    column.start[rows] = np.where(null, NONE, at + np.cumsum(lengths) - lengths)
    column.length[rows] = lengths
    added = np.frombuffer(b"".join(each or b"" for each in contents), np.uint8)
    arena = np.concatenate((buffers.arena, added))
    column.buffers = SliceBuffers(buffers.data, buffers.carry_over, arena)


def _decode_text(table: Exchanges, tape: Tape, kinds: NDArray[np.uint8], row: int) -> str:
    """Return the text of a float or of non-ASCII bytes, which the kernel does not render."""
    content = table.bytes_at(int(tape.start[row]), int(tape.value[row]))
    if kinds[tape.field[row]] == field_display.FLOAT:
        return repr(float(np.frombuffer(content, ">f8")[0]))
    return content.decode("utf-8", "surrogateescape")


_HEX_ROWS, _PYTHON_ROWS, _ARENA_BYTES, _SUSPECTS = range(4)
"""
Results of `_fill_columns`: number of rows to render as hex or uuid, number of rows to render in
Python, bytes of the arena, number of rows that may hold a credential.
"""

_MASK_CHARS = len(MASK)


class _RowArrays(NamedTuple):
    """Rows of the tape, begins of messages' frames, display of fields, and `Logins.signs`."""

    message: I32
    field: I32
    start: I64
    value: I64
    frame_start: I64
    kinds: U8
    sizes: I64
    signs: U8


class _ColumnArrays(NamedTuple):
    """
    The columns to fill, see `FieldColumns`.

    Attributes:
        offset: As there, and so are the next.
        length: As there.
        has_value: As there.
        text_start: Address of the text.
        text_length: Its bytes.
        hex_rows: Receives the rows to render as hex or uuid.
        python_rows: Receives those to render in Python.
        suspects: Receives the fields with possible credentials.
        counts: Receives their numbers; see above.
    """

    offset: I32
    length: I32
    has_value: U8
    text_start: I64
    text_length: I64
    hex_rows: I64
    python_rows: I64
    suspects: I64
    counts: I64


@Kernel
def _fill_columns(data: U8, carry_over: U8, rows: _RowArrays, found: _ColumnArrays) -> None:
    """Fill the columns, and list the rows with texts to render later."""
    hex_rows, python_rows, suspects = found.hex_rows, found.python_rows, found.suspects
    data_end = len(data)
    arena_at = data_end + len(carry_over)
    hex_count = 0
    python_count = 0
    suspect_count = 0
    filled = _MASK_CHARS
    for row in range(len(rows.field)):
        field = rows.field[row]
        kind = rows.kinds[field]
        at = rows.start[row]
        value = rows.value[row]
        length = ABSENT
        has_number = 0
        text_at = NONE
        text_length = 0
        found.offset[row] = at - rows.frame_start[rows.message[row]]
        if kind == field_display.NUMBER:
            length = rows.sizes[field]
            has_number = 1
        elif kind == field_display.COUNT:
            has_number = 1 if value >= 0 else 0
        elif value >= 0:
            length = value
            if kind == field_display.SECRET:
                text_at = arena_at
                text_length = _MASK_CHARS
            elif kind == field_display.TEXT:
                # ASCII bytes lack the highest bit; OR-ed in any order, they can be vectorised.
                all_bits = 0
                if at < data_end:
                    for i in range(at, at + value):
                        all_bits |= data[i]
                else:
                    first = at - data_end
                    for i in range(first, first + value):
                        all_bits |= carry_over[i]
                if all_bits < 128:
                    text_at = at
                    text_length = value
                else:
                    python_rows[python_count] = row
                    python_count += 1
            elif kind == field_display.FLOAT:
                python_rows[python_count] = row
                python_count += 1
            elif kind != field_display.OPAQUE:
                text_at = arena_at + filled
                text_length = _UUID_CHARS if kind == field_display.UUID else 2 * value
                filled += text_length
                hex_rows[hex_count] = row
                hex_count += 1
            if kind in (field_display.TEXT, field_display.BYTES) and len(suspects) > 0:
                may_hold = (
                    may_hold_credential(data, at, value, rows.signs)
                    if at < data_end
                    else may_hold_credential(carry_over, at - data_end, value, rows.signs)
                )
                if may_hold:
                    suspects[suspect_count] = row
                    suspect_count += 1
        found.length[row] = length
        found.has_value[row] = has_number
        found.text_start[row] = text_at
        found.text_length[row] = text_length
    found.counts[_HEX_ROWS] = hex_count
    found.counts[_PYTHON_ROWS] = python_count
    found.counts[_ARENA_BYTES] = filled
    found.counts[_SUSPECTS] = suspect_count


@Kernel
def _render_hex(
    data: U8, carry_over: U8, rows: _RowArrays, found: _ColumnArrays, arena: U8
) -> None:
    """Write bytes as hex, and uuids with their dashes."""
    data_end = len(data)
    arena_at = data_end + len(carry_over)
    for i in range(found.counts[_HEX_ROWS]):
        row = found.hex_rows[i]
        out = found.text_start[row] - arena_at
        size = rows.value[row]
        dashes = found.text_length[row] != 2 * size
        for j in range(size):
            at = rows.start[row] + j
            byte = data[at] if at < data_end else carry_over[at - data_end]
            if dashes and (j == 4 or j == 6 or j == 8 or j == 10):
                arena[out] = 45
                out += 1
            high = byte >> 4
            low = byte & 15
            arena[out] = high + 48 if high < 10 else high + 87
            arena[out + 1] = low + 48 if low < 10 else low + 87
            out += 2
