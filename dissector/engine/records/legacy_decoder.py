"""
The messages of message sets (magic 0 and 1) in columns.

The messages of a wrapper are counted first, then read. Nested wrappers and messages of another
magic than their wrapper's, which no known producer writes, are left to the Python reader.

Source: as of `message_set`.
"""

from __future__ import annotations

from dissector.engine.records.batch_scanner import key_and_value
from dissector.engine.records.batch_table import INVALID, UNDECIDED, VALID, BatchColumns
from dissector.engine.records.checksum import crc_by_table
from dissector.engine.records.record_arrays import PayloadArrays, RecordColumns
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tape.number_kernels import signed, wrapped_sum
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8, Buffers
from dissector.protocol.records import layout
from dissector.protocol.records.compression import CODEC_MASK

_TIMESTAMP_AT = layout.MESSAGE_0.size


@device_function
def _count_wrapped(source: U8, at: int, end: int, batches: BatchColumns, batch: int) -> int:
    """Count the messages of a wrapper, set its base offset, and return the state of its field."""
    magic = batches.magic[batch]
    count = 0
    last = at
    while at < end:
        size = signed(source, at + 8, 4) if end - at >= layout.LENGTH_END else end - at
        if size < layout.MIN_MESSAGE_SIZE or size + layout.LENGTH_END > end - at:
            return INVALID
        if source[at + layout.MAGIC_AT] != magic:
            return UNDECIDED
        if size < layout.MIN_MESSAGE_SIZE + 8 * magic:
            return INVALID
        _, _, _, length = key_and_value(source, at, at + layout.LENGTH_END + size)
        if length < -1:
            return INVALID
        if length >= 0 and source[at + layout.MAGIC_AT + 1] & CODEC_MASK:
            return UNDECIDED
        count += 1
        last = at
        at += layout.LENGTH_END + size
    if count == 0:
        return INVALID
    batches.record_count[batch] = count
    offset = batches.base_offset[batch]
    batches.base_offset[batch] = 0
    # Offsets in magic 1 are relative, unless the client left the wrapper's offset at 0.
    if magic and offset:
        last_offset = signed(source, last, 8)
        if last_offset > offset:
            return INVALID
        batches.base_offset[batch] = wrapped_sum(offset, -last_offset)
    return VALID


@Kernel
def count_messages(buffers: Buffers, payloads: PayloadArrays, batches: BatchColumns) -> None:
    """Count the messages of decompressed wrappers."""
    carry_over_at = len(buffers.data)
    arena_at = carry_over_at + len(buffers.carry_over)
    for i in range(len(payloads.batch)):
        batch = payloads.batch[i]
        field = batches.field[batch]
        is_wrapper = batches.payload_start[batch] != batches.start[batch]
        if batches.magic[batch] < 2 and is_wrapper and payloads.state[field] == VALID:
            begin, end = payloads.start[i], payloads.end[i]
            source = buffers.data
            base = 0
            if begin >= arena_at:
                source = buffers.arena
                base = arena_at
            elif begin >= carry_over_at:
                source = buffers.carry_over
                base = carry_over_at
            payloads.state[field] = _count_wrapped(source, begin - base, end - base, batches, batch)


@device_function
def _read_messages(
    source: U8,
    base: int,
    number: int,
    payloads: PayloadArrays,
    batches: BatchColumns,
    crcs: I64,
    records: RecordColumns,
    write: int,
) -> int:
    """Read one message, or the messages of a wrapper; return the state of their field."""
    batch, row = payloads.batch[number], payloads.first[number]
    at, end = payloads.start[number] - base, payloads.end[number] - base
    magic = batches.magic[batch]
    is_wrapper = batches.payload_start[batch] != batches.start[batch]
    has_append_time = is_wrapper and magic and batches.attributes[batch] & layout.TIMESTAMP_TYPE
    base_offset = batches.base_offset[batch]
    while at < end:
        stop = at + layout.LENGTH_END + signed(source, at + 8, 4)
        if is_wrapper:
            crc = signed(source, at + layout.LENGTH_END, 4) & 0xFFFFFFFF
            if crc_by_table(source, at + layout.MESSAGE_CRC_FROM, stop, crcs) != crc:
                return INVALID
        if write:
            key, key_length, value, length = key_and_value(source, at, stop)
            time = NONE
            if has_append_time:
                time = batches.base_timestamp[batch]
            elif magic:
                time = signed(source, at + _TIMESTAMP_AT, 8)
            records.offset[row] = wrapped_sum(signed(source, at, 8), base_offset)
            records.timestamp[row] = time
            records.key[row] = base + key if key_length >= 0 else NONE
            records.key_length[row] = key_length
            records.value[row] = base + value if length >= 0 else NONE
            records.value_length[row] = length
            records.header_count[row] = 0
            row += 1
        at = stop
    return VALID


@Kernel
def read_messages(
    buffers: Buffers,
    payloads: PayloadArrays,
    batches: BatchColumns,
    crcs: I64,
    records: RecordColumns,
    write: int,
) -> None:
    """Read the messages of message sets; `read_batches` reads the batches of magic 2."""
    carry_over_at = len(buffers.data)
    arena_at = carry_over_at + len(buffers.carry_over)
    for i in range(len(payloads.batch)):
        batch, begin = payloads.batch[i], payloads.start[i]
        field = batches.field[batch]
        if batches.magic[batch] < 2 and payloads.state[field] == VALID:
            source = buffers.data
            base = 0
            if begin >= arena_at:
                source = buffers.arena
                base = arena_at
            elif begin >= carry_over_at:
                source = buffers.carry_over
                base = carry_over_at
            payloads.state[field] = _read_messages(
                source, base, i, payloads, batches, crcs, records, write
            )
