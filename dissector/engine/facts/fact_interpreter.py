"""
Interprets the fact program of a message: a device function that notes fields with a role.

A note is the role of a field, where its content lies, and its length; of an error its code.
"""

from __future__ import annotations

from dissector.engine.tape.primitive_kernels import find_tag, varint_at
from dissector.kernel import device_function
from dissector.kernel.arrays import U8, I64Table
from dissector.protocol.facts import ERROR, NO_FACT
from dissector.protocol.program import (
    ARRAY_COMPACT,
    BYTES16,
    BYTES_COMPACT,
    END,
    FIXED,
    ITEMS32,
    ITEMS_COMPACT,
    NEXT,
    NULLABLE,
    TAGS,
)

FALLBACK, OUT_OF_ROOM = -1, -2
"""Why a message was not read to its last byte: the codecs have to read it; an array is full."""

_ID_BYTES = 16


@device_function
def extract_message(
    src: U8,
    base: int,
    at: int,
    end: int,
    step: int,
    code: I64Table,
    tags: I64Table,
    stack: I64Table,
    notes: I64Table,
    count: int,
) -> int:
    """
    Run one message through its program.

    Args:
        src: Bytes.
        base: Where they begin among all.
        at: Where the message begins in them.
        end: Where it ends.
        step: The first instruction.
        code: The programs.
        tags: The known tags of the programs.
        stack: Space for open arrays and tag sections.
        notes: Receives the notes.
        count: How many there are already.

    Returns:
        The new number of notes; FALLBACK or OUT_OF_ROOM.
    """
    depth = 0
    while True:
        op = code[step, 0]
        if op == FIXED:
            length = code[step, 1]
            if length > end - at:
                return FALLBACK
            role = code[step, 3]
            if role != NO_FACT:
                field_start = at + code[step, 2]
                value = _ID_BYTES
                if role == ERROR:
                    value = ((src[field_start] << 8 | src[field_start + 1]) ^ 0x8000) - 0x8000
                if value:
                    if count >= len(notes):
                        return OUT_OF_ROOM
                    notes[count, 0] = role
                    notes[count, 1] = base + field_start
                    notes[count, 2] = value
                    count += 1
            at += length
            step += 1
        elif op == NEXT:
            stack[depth - 1, 1] -= 1
            if stack[depth - 1, 1] > 0:
                step = stack[depth - 1, 0]
            else:
                depth -= 1
                step = stack[depth, 2]
        elif op == TAGS and at < end and src[at] == 0:
            at += 1
            step = code[step, 3]
        elif op <= ARRAY_COMPACT or op >= ITEMS32:
            if op <= BYTES_COMPACT:
                at += code[step, 2]
            if op in (BYTES_COMPACT, ARRAY_COMPACT, ITEMS_COMPACT):
                if at < end and src[at] < 128:
                    length = src[at] - 1
                    at += 1
                else:
                    length, at = varint_at(src, at, end)
                    length -= 1
                    if at < 0:
                        return FALLBACK
            elif op == BYTES16:
                if end - at < 2:
                    return FALLBACK
                length = ((src[at] << 8 | src[at + 1]) ^ 0x8000) - 0x8000
                at += 2
            else:
                if end - at < 4:
                    return FALLBACK
                length = src[at] << 24 | src[at + 1] << 16 | src[at + 2] << 8 | src[at + 3]
                length = (length ^ 0x80000000) - 0x80000000
                at += 4
            if length < -1:
                return FALLBACK
            if op <= BYTES_COMPACT:
                if length > end - at:
                    return FALLBACK
                role = code[step, 3]
                if role != NO_FACT:
                    if count >= len(notes):
                        return OUT_OF_ROOM
                    notes[count, 0] = role
                    notes[count, 1] = base + at
                    notes[count, 2] = length
                    count += 1
                if length > 0:
                    at += length
                at += code[step, 1]
                step += 1
            elif op <= ARRAY_COMPACT:
                if length * code[step, 2] > end - at:
                    return FALLBACK
                if length > 0:
                    stack[depth, 0] = step + 1
                    stack[depth, 1] = length
                    stack[depth, 2] = code[step, 1]
                    depth += 1
                    step += 1
                else:
                    step = code[step, 1]
            else:
                if length * code[step, 1] > end - at:
                    return FALLBACK
                if length > 0:
                    at += length * code[step, 1]
                at += code[step, 2]
                step += 1
        elif op == END:
            return count if at == end else FALLBACK
        elif op == NULLABLE:
            if at >= end:
                return FALLBACK
            step = code[step, 1] if src[at] >= 128 else step + 1
            at += 1
        else:
            if op == TAGS:
                section = step
                last = -1
                left, at = varint_at(src, at, end)
                if at < 0 or left * 2 > end - at:
                    return FALLBACK
            else:
                depth -= 1
                if at != stack[depth, 0]:
                    return FALLBACK
                left = stack[depth, 1]
                last = stack[depth, 2]
                section = code[step, 1]
            # Skip unknown tags, up to the next known one or the end of the section.
            step = code[section, 3]
            while left > 0:
                tag, at = varint_at(src, at, end)
                size, at = varint_at(src, at, end) if at >= 0 else (0, -1)
                # The codec reads tags out of order: one may occur twice.
                if at < 0 or tag <= last or size > end - at:
                    return FALLBACK
                last = tag
                left -= 1
                inside = find_tag(tags, code[section, 1], code[section, 2], tag)
                if inside >= 0:
                    stack[depth, 0] = at + size
                    stack[depth, 1] = left
                    stack[depth, 2] = last
                    depth += 1
                    step = inside
                    break
                at += size
