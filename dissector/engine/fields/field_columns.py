"""
The rows of the tape as columns that a person can read: lengths, texts, places in the frame.

Texts stay where they are in the window where they can; what must be made (hex of bytes, uuids,
masks) lies in a third buffer, the arena.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.facts.credential_kernel import may_hold_credential
from dissector.engine.fields.field_display import (
    BYTES,
    COUNT,
    FLOAT,
    NUMBER,
    OPAQUE,
    SECRET,
    TEXT,
    UUID,
    FieldDisplay,
)
from dissector.engine.fields.field_masking import credential_rows, secret_value_rows
from dissector.engine.tables.column_types import SliceBuffers, Slices
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.engine.tables.frames import escape_invalid_utf8
from dissector.engine.tape.tape import Tape
from dissector.kernel import Kernel
from dissector.protocol.embedded.sasl_tokens import MASK

Int32s: TypeAlias = NDArray[np.int32]

_UUID_CHARS = 36

ABSENT = -1
"""A length that is null."""


@dataclass(slots=True)
class FieldColumns:
    """
    Rows of fields.

    Attributes:
        message: Number of the message.
        name: Number of path and type.
        item: See `Tape`.
        around: Likewise.
        offset: Where the content begins in its frame; NOT_THERE for a problem without a place.
        length: Bytes of the content; NOT_THERE for null and for arrays.
        value: The number, where `has_value`.
        has_value: Whether there is one.
        text: The text; null where there is none.
        problem: Number of the problem; 0 for none.
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


def tape_columns(
    table: Exchanges, tape: Tape, frame_starts: Ints, display: FieldDisplay
) -> FieldColumns:
    """
    Return the rows of a tape as columns.

    Args:
        table: What the messages are of.
        tape: Their fields.
        frame_starts: Where each message begins.
        display: How they are shown.
    """
    count = len(tape)
    offset, length = np.empty(count, np.int32), np.empty(count, np.int32)
    valued = np.empty(count, np.uint8)
    text_start, text_length = np.empty(count, np.int64), np.empty(count, np.int64)
    made, odd = np.empty(count, np.int64), np.empty(count, np.int64)
    # With secrets shown there are none to look for.
    suspects = np.empty(0 if display.show_secrets else count, np.int64)
    found = np.zeros(4, np.int64)
    arena_at = len(table.data) + len(table.carry_over)
    _fill_columns(
        table.data,
        table.carry_over,
        arena_at,
        tape.message,
        tape.field,
        tape.start,
        tape.value,
        frame_starts,
        display.kinds,
        display.sizes,
        offset,
        length,
        valued,
        text_start,
        text_length,
        made,
        odd,
        suspects,
        found,
        work=count * 2,
    )
    made, odd = made[: int(found[_HEX_ROWS])], odd[: int(found[_PYTHON_ROWS])]
    arena = np.empty(int(found[_ARENA_BYTES]), np.uint8)
    arena[: len(MASK)] = np.frombuffer(MASK.encode(), np.uint8)
    _render_hex(
        table.data,
        table.carry_over,
        arena_at,
        made,
        tape.start,
        tape.value,
        text_start,
        text_length,
        arena,
        work=len(arena) + len(made),
    )
    text = Slices(text_start, text_length, SliceBuffers(table.data, table.carry_over, arena))
    set_texts(text, odd, [_decode_text(table, tape, display.kinds, row) for row in odd.tolist()])
    if not display.show_secrets:
        suspects = suspects[: int(found[_SUSPECTS])]
        secret = np.concatenate(
            (secret_value_rows(table, tape, display.roles), credential_rows(table, tape, suspects))
        )
        text_start[secret], text_length[secret] = arena_at, len(MASK)
    return FieldColumns(
        tape.message,
        tape.field,
        tape.item,
        tape.around,
        offset,
        length,
        tape.value,
        valued,
        text,
        np.zeros(count, np.uint32),
    )


def set_texts(column: Slices, rows: Ints, texts: list[str | None]) -> None:
    """Give rows their texts, which are added to the arena."""
    if not texts:
        return
    contents = [None if each is None else escape_invalid_utf8(each).encode() for each in texts]
    buffers = column.buffers
    at = len(buffers.data) + len(buffers.carry_over) + len(buffers.arena)
    lengths = np.array([len(each or b"") for each in contents], np.int64)
    null = np.array([each is None for each in contents])
    column.start[rows] = np.where(null, NONE, at + np.cumsum(lengths) - lengths)
    column.length[rows] = lengths
    more = np.frombuffer(b"".join(each or b"" for each in contents), np.uint8)
    arena = np.concatenate((buffers.arena, more))
    column.buffers = SliceBuffers(buffers.data, buffers.carry_over, arena)


def _decode_text(table: Exchanges, tape: Tape, kinds: NDArray[np.uint8], row: int) -> str:
    """Return the text of a field that the loop can't make."""
    content = table.bytes_at(int(tape.start[row]), int(tape.value[row]))
    if kinds[tape.field[row]] == FLOAT:
        return repr(float(np.frombuffer(content, ">f8")[0]))
    return content.decode("utf-8", "surrogateescape")


_HEX_ROWS, _PYTHON_ROWS, _ARENA_BYTES, _SUSPECTS = range(4)
"""
What the loop finds: rows whose text is made by a loop, by Python; bytes of the arena; rows that may
hold a credential.
"""

_MASK_CHARS = len(MASK)


@Kernel
def _fill_columns(
    data: Any,
    held: Any,
    arena_at: int,
    messages: Any,
    fields: Any,
    starts: Any,
    values: Any,
    frame_starts: Any,
    kinds: Any,
    sizes: Any,
    offsets: Any,
    lengths: Any,
    valued: Any,
    text_starts: Any,
    text_lengths: Any,
    made: Any,
    odd: Any,
    suspects: Any,
    found: Any,
) -> None:
    """Fill the columns of rows; take note of those whose texts have yet to be made."""
    made_count = 0
    odd_count = 0
    suspect_count = 0
    beyond = arena_at - len(held)
    filled = _MASK_CHARS
    for row in range(len(fields)):
        field = fields[row]
        kind = kinds[field]
        at = starts[row]
        value = values[row]
        length = ABSENT
        there = 0
        text_at = NONE
        text_length = 0
        offsets[row] = at - frame_starts[messages[row]]
        if kind == NUMBER:
            length = sizes[field]
            there = 1
        elif kind == COUNT:
            there = 1 if value >= 0 else 0
        elif value >= 0:
            length = value
            if kind == SECRET:
                text_at = arena_at
                text_length = _MASK_CHARS
            elif kind == TEXT:
                # Of ASCII only: eight letters are looked at by their highest bits in any order.
                seen = 0
                if at < beyond:
                    for i in range(at, at + value):
                        seen |= data[i]
                else:
                    first = at - beyond
                    for i in range(first, first + value):
                        seen |= held[i]
                if seen < 128:
                    text_at = at
                    text_length = value
                else:
                    odd[odd_count] = row
                    odd_count += 1
            elif kind == FLOAT:
                odd[odd_count] = row
                odd_count += 1
            elif kind != OPAQUE:
                text_at = arena_at + filled
                text_length = _UUID_CHARS if kind == UUID else 2 * value
                filled += text_length
                made[made_count] = row
                made_count += 1
            if kind in (TEXT, BYTES) and len(suspects) > 0:
                may_hold = (
                    may_hold_credential(data, at, value)
                    if at < beyond
                    else may_hold_credential(held, at - beyond, value)
                )
                if may_hold:
                    suspects[suspect_count] = row
                    suspect_count += 1
        lengths[row] = length
        valued[row] = there
        text_starts[row] = text_at
        text_lengths[row] = text_length
    found[_HEX_ROWS] = made_count
    found[_PYTHON_ROWS] = odd_count
    found[_ARENA_BYTES] = filled
    found[_SUSPECTS] = suspect_count


@Kernel
def _render_hex(
    data: Any,
    held: Any,
    arena_at: int,
    made: Any,
    starts: Any,
    values: Any,
    text_starts: Any,
    text_lengths: Any,
    arena: Any,
) -> None:
    """Write bytes as hex, uuids with their dashes."""
    beyond = arena_at - len(held)
    for i in range(len(made)):
        row = made[i]
        out = text_starts[row] - arena_at
        dashes = text_lengths[row] != 2 * values[row]
        for j in range(values[row]):
            at = starts[row] + j
            byte = data[at] if at < beyond else held[at - beyond]
            if dashes and (j == 4 or j == 6 or j == 8 or j == 10):
                arena[out] = 45
                out += 1
            high = byte >> 4
            low = byte & 15
            arena[out] = high + 48 if high < 10 else high + 87
            arena[out + 1] = low + 48 if low < 10 else low + 87
            out += 2
