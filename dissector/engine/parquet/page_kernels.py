"""
The loops over the values of a column: indices of distinct values, and the bytes of pages.

Levels and indices are written as Parquet's hybrid of runs and bit-packed groups.

Source: parquet.apache.org/docs/file-format/data-pages/encodings, "RLE/Bit-Packing Hybrid" and
"Plain".
"""

from __future__ import annotations

from dissector.engine.tables.dictionaries import HASH_MASK, MANY, Dictionary
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I32, I64, U8, AnyColumn, Buffers
from dissector.kernel.memcpy import copy_bytes

GROUP = 8
"""Values of a bit-packed group, and the shortest run that is written as one."""

_LOW_FACTOR, _HIGH_FACTOR = 0x5E3779B1, 0x7FEB352D


@Kernel
def index_int64s(values: I64, is_set: U8, found: Dictionary) -> None:
    """Find the distinct numbers; an empty `is_set` means no nulls."""
    index_numbers(values, is_set, found)


@Kernel
def index_int32s(values: I32, is_set: U8, found: Dictionary) -> None:
    """See `index_int64s`."""
    index_numbers(values, is_set, found)


@device_function
def index_numbers(values: AnyColumn, is_set: U8, found: Dictionary) -> None:
    """Find the distinct numbers; the result is MANY if the dictionary is full."""
    slots, distinct, indices = found.slots, found.values, found.indices
    mask = len(slots) - 1
    has_nulls = len(is_set) > 0
    count = 0
    present = 0
    for row in range(len(values)):
        if has_nulls and is_set[row] == 0:
            continue
        value = values[row]
        at = hash_of_number(value, found.counts.secret) & mask
        place = slots[at]
        while place != 0 and distinct[place - 1] != value:
            at = at + 1 & mask
            place = slots[at]
        if place == 0:
            if count == len(distinct):
                found.counts.distinct = MANY
                return
            distinct[count] = value
            count += 1
            slots[at] = count
            place = count
        indices[present] = place - 1
        present += 1
    found.counts.distinct = count
    found.counts.present = present


@device_function
def hash_of_number(value: int, secret: int) -> int:
    """Return a hash of 32 bits."""
    hashed = ((value & HASH_MASK) ^ secret) * _LOW_FACTOR & HASH_MASK
    hashed ^= hashed >> 15 ^ value >> 32 & HASH_MASK
    hashed = hashed * _HIGH_FACTOR & HASH_MASK
    return hashed ^ hashed >> 15


@Kernel
def write_plain(texts: Buffers, start: I64, length: I64, null: int, out: U8) -> int:
    """Write texts one behind the other, each behind its length; return their bytes."""
    at = 0
    carry_over_at = len(texts.data)
    arena_at = carry_over_at + len(texts.carry_over)
    for row in range(len(start)):
        address = start[row]
        if address == null:
            continue
        size = length[row]
        for shift in (0, 8, 16, 24):
            out[at] = size >> shift & 255
            at += 1
        if size > 0:
            if address < carry_over_at:
                copy_bytes(out, at, texts.data, address, size)
            elif address < arena_at:
                copy_bytes(out, at, texts.carry_over, address - carry_over_at, size)
            else:
                copy_bytes(out, at, texts.arena, address - arena_at, size)
        at += size
    return at


@Kernel
def pack_indices(indices: I32, width: int, out: U8) -> int:
    """Write indices as bit-packed groups; return their bytes."""
    return packed(indices, len(indices), width, out, 0)


@Kernel
def pack_runs(indices: I32, repeats: I64, width: int, waiting: I32, out: U8) -> int:
    """
    Write indices, each for a number of rows, as runs where long enough.

    Args:
        indices: An index for each run.
        repeats: The rows of each.
        width: Bits of an index.
        waiting: Room for the indices of a bit-packed run.
        out: Receives the bytes.
    """
    at = 0
    literals = 0
    run = 0
    while run < len(indices):
        index = indices[run]
        rows = repeats[run]
        run += 1
        while run < len(indices) and indices[run] == index:
            rows += repeats[run]
            run += 1
        # A bit-packed run has whole groups, so it includes the first values of the next one.
        missing = -literals % GROUP
        taken = rows if rows < missing + GROUP else missing
        for _ in range(taken):
            waiting[literals] = index
            literals += 1
        rows -= taken
        if rows > 0:
            if literals > 0:
                at = packed(waiting, literals, width, out, at)
                literals = 0
            at = written_varint(rows << 1, out, at)
            for shift in range(0, width, 8):
                out[at] = index >> shift & 255
                at += 1
    if literals > 0:
        at = packed(waiting, literals, width, out, at)
    return at


@device_function
def packed(indices: I32, count: int, width: int, out: U8, at: int) -> int:
    """Write the first indices as bit-packed groups; return the end."""
    groups = (count + GROUP - 1) // GROUP
    end = written_varint(groups << 1 | 1, out, at)
    at = end
    bits = 0
    filled = 0
    for i in range(count):
        bits |= indices[i] << filled
        filled += width
        while filled >= 8:
            out[at] = bits & 255
            at += 1
            bits >>= 8
            filled -= 8
    end += groups * width
    while at < end:
        out[at] = bits & 255
        bits >>= 8
        at += 1
    return end


@device_function
def written_varint(number: int, out: U8, at: int) -> int:
    """Write an unsigned number, seven bits a byte; return its end."""
    while number > 127:
        out[at] = number & 127 | 128
        at += 1
        number >>= 7
    out[at] = number
    return at + 1
