"""
The messages of message sets (magic 0 and 1) in columns.

The messages of a wrapper are counted first, then read. Nested wrappers and messages of another
magic than their wrapper's, which no known producer writes, are left to the Python reader.

Source: as of `message_set`.
"""

from __future__ import annotations

from dissector.engine.records.batch_scanner import key_and_value
from dissector.engine.records.batch_table import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    COUNT,
    FIELD,
    INVALID,
    MAGIC,
    PAYLOAD_START,
    START,
    UNDECIDED,
    VALID,
)
from dissector.engine.records.checksum import crc_by_table
from dissector.engine.records.record_arrays import PayloadArrays
from dissector.engine.records.record_kernel import (
    HEADERS,
    KEY,
    KEY_LENGTH,
    OFFSET,
    TIMESTAMP,
    VALUE,
    VALUE_LENGTH,
)
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tape.number_kernels import signed, wrapped_sum
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8, Buffers, I64Table
from dissector.protocol.records.compression import CODEC_MASK
from dissector.protocol.records.layout import (
    LENGTH_END,
    MAGIC_AT,
    MESSAGE_0,
    MESSAGE_CRC_FROM,
    MIN_MESSAGE_SIZE,
    TIMESTAMP_TYPE,
)

_TIMESTAMP_AT = MESSAGE_0.size


@device_function
def _count_wrapped(source: U8, at: int, end: int, table: I64Table, batch: int) -> int:
    """Count the messages of a wrapper, set its base offset, and return the state of its field."""
    magic = table[MAGIC, batch]
    count = 0
    last = at
    while at < end:
        size = signed(source, at + 8, 4) if end - at >= LENGTH_END else end - at
        if size < MIN_MESSAGE_SIZE or size + LENGTH_END > end - at:
            return INVALID
        if source[at + MAGIC_AT] != magic:
            return UNDECIDED
        if size < MIN_MESSAGE_SIZE + 8 * magic:
            return INVALID
        _, _, _, length = key_and_value(source, at, at + LENGTH_END + size)
        if length < -1:
            return INVALID
        if length >= 0 and source[at + MAGIC_AT + 1] & CODEC_MASK:
            return UNDECIDED
        count += 1
        last = at
        at += LENGTH_END + size
    if count == 0:
        return INVALID
    table[COUNT, batch] = count
    offset = table[BASE_OFFSET, batch]
    table[BASE_OFFSET, batch] = 0
    # Offsets in magic 1 are relative, unless the client left the wrapper's offset at 0.
    if magic and offset:
        last_offset = signed(source, last, 8)
        if last_offset > offset:
            return INVALID
        table[BASE_OFFSET, batch] = wrapped_sum(offset, -last_offset)
    return VALID


@Kernel
def count_messages(buffers: Buffers, payloads: PayloadArrays) -> None:
    """Count the messages of decompressed wrappers."""
    table = payloads.table
    carry_over_at = len(buffers.data)
    arena_at = carry_over_at + len(buffers.carry_over)
    for i in range(len(payloads.batch)):
        batch = payloads.batch[i]
        field = table[FIELD, batch]
        is_wrapper = table[PAYLOAD_START, batch] != table[START, batch]
        if table[MAGIC, batch] < 2 and is_wrapper and payloads.state[field] == VALID:
            begin, end = payloads.start[i], payloads.end[i]
            source = buffers.data
            base = 0
            if begin >= arena_at:
                source = buffers.arena
                base = arena_at
            elif begin >= carry_over_at:
                source = buffers.carry_over
                base = carry_over_at
            payloads.state[field] = _count_wrapped(source, begin - base, end - base, table, batch)


@device_function
def _read_messages(
    source: U8,
    base: int,
    number: int,
    payloads: PayloadArrays,
    crcs: I64,
    out: I64Table,
    write: int,
) -> int:
    """Read one message, or the messages of a wrapper; return the state of their field."""
    table = payloads.table
    batch, row = payloads.batch[number], payloads.first[number]
    at, end = payloads.start[number] - base, payloads.end[number] - base
    magic = table[MAGIC, batch]
    is_wrapper = table[PAYLOAD_START, batch] != table[START, batch]
    has_append_time = is_wrapper and magic and table[ATTRIBUTES, batch] & TIMESTAMP_TYPE
    base_offset = table[BASE_OFFSET, batch]
    while at < end:
        stop = at + LENGTH_END + signed(source, at + 8, 4)
        if is_wrapper:
            crc = signed(source, at + LENGTH_END, 4) & 0xFFFFFFFF
            if crc_by_table(source, at + MESSAGE_CRC_FROM, stop, crcs) != crc:
                return INVALID
        if write:
            key, key_length, value, length = key_and_value(source, at, stop)
            time = NONE
            if has_append_time:
                time = table[BASE_TIMESTAMP, batch]
            elif magic:
                time = signed(source, at + _TIMESTAMP_AT, 8)
            out[OFFSET, row] = wrapped_sum(signed(source, at, 8), base_offset)
            out[TIMESTAMP, row] = time
            out[KEY, row] = base + key if key_length >= 0 else NONE
            out[KEY_LENGTH, row] = key_length
            out[VALUE, row] = base + value if length >= 0 else NONE
            out[VALUE_LENGTH, row] = length
            out[HEADERS, row] = 0
            row += 1
        at = stop
    return VALID


@Kernel
def read_messages(
    buffers: Buffers, payloads: PayloadArrays, crcs: I64, out: I64Table, write: int
) -> None:
    """Read the messages of message sets; `read_batches` reads the batches of magic 2."""
    carry_over_at = len(buffers.data)
    arena_at = carry_over_at + len(buffers.carry_over)
    for i in range(len(payloads.batch)):
        batch, begin = payloads.batch[i], payloads.start[i]
        field = payloads.table[FIELD, batch]
        if payloads.table[MAGIC, batch] < 2 and payloads.state[field] == VALID:
            source = buffers.data
            base = 0
            if begin >= arena_at:
                source = buffers.arena
                base = arena_at
            elif begin >= carry_over_at:
                source = buffers.carry_over
                base = carry_over_at
            payloads.state[field] = _read_messages(source, base, i, payloads, crcs, out, write)
