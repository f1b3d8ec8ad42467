"""
The kernel that reads the records of many batches into columns.

Source: KIP-98 (record), KIP-82 (headers).
"""

from __future__ import annotations

from dissector.engine.records.batch_table import INVALID, VALID, BatchColumns
from dissector.engine.records.record_arrays import PayloadArrays, RecordColumns
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tape.number_kernels import wrapped_sum
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import U8, Buffers
from dissector.protocol.records import layout
from dissector.protocol.records.payload_kernel import (
    NO_ROOM,
    NULL,
    HeaderColumns,
    ReadProgress,
    read_headers,
    read_record,
)

CONTROL_KEY_BYTES = 4


@device_function
def _read_batch(
    source: U8,
    base: int,
    number: int,
    payloads: PayloadArrays,
    batches: BatchColumns,
    records: RecordColumns,
    headers: HeaderColumns,
    progress: ReadProgress,
) -> int:
    """
    Read the records of one batch.

    Args:
        source: The bytes.
        base: Address of the first byte of `source`.
        number: Number of the batch among those to read.
        payloads: These.
        batches: All batches of the window.
        records: The columns of records,
        headers: and of headers.
        progress: The headers read so far.

    Returns:
        0, -1 if the batch is invalid, or NO_ROOM.
    """
    batch, row = payloads.batch[number], payloads.first[number]
    attributes = batches.attributes[batch]
    min_key_length = CONTROL_KEY_BYTES if attributes & layout.CONTROL else NULL
    has_append_time = attributes & layout.TIMESTAMP_TYPE
    base_offset = batches.base_offset[batch]
    time = batches.max_timestamp[batch] if has_append_time else batches.base_timestamp[batch]
    total = payloads.end[number] - base
    # A record begins after the length of its predecessor, not at the end of reading it; so the CPU
    # can begin before the earlier record is read.
    end = payloads.start[number] - base
    for i in range(row, row + batches.record_count[batch]):
        end, time_delta, offset_delta, key, key_length, value, value_length, at, count = (
            read_record(source, end, total)
        )
        if end < 0 or key_length < min_key_length:
            return -1
        if count > 0:
            at = read_headers(source, at, end, base, count, headers, progress)
            if at < 0:
                return at
        if at != end:
            return -1
        if progress.header_capacity >= 0:
            records.offset[i] = wrapped_sum(base_offset, offset_delta)
            records.timestamp[i] = time if has_append_time else wrapped_sum(time, time_delta)
            records.key[i] = base + key if key_length >= 0 else NONE
            records.key_length[i] = key_length
            records.value[i] = base + value if value_length >= 0 else NONE
            records.value_length[i] = value_length
            records.header_count[i] = count
    return 0 if end == total else -1


@Kernel
def read_batches(
    buffers: Buffers,
    payloads: PayloadArrays,
    batches: BatchColumns,
    records: RecordColumns,
    headers: HeaderColumns,
    until: int,
    progress: ReadProgress,
) -> None:
    """
    Read batches, from the next to `until`, or until the columns of headers are full.

    Message sets are skipped.
    """
    state = payloads.state
    carry_over_at = len(buffers.data)
    arena_at = carry_over_at + len(buffers.carry_over)
    i = progress.batch
    while i < until:
        batch, begin = payloads.batch[i], payloads.start[i]
        field = batches.field[batch]
        if state[field] == VALID and batches.magic[batch] == 2:
            source = buffers.data
            base = 0
            if begin >= arena_at:
                source = buffers.arena
                base = arena_at
            elif begin >= carry_over_at:
                source = buffers.carry_over
                base = carry_over_at
            header = progress.header
            result = _read_batch(source, base, i, payloads, batches, records, headers, progress)
            if result < 0:
                progress.header = header
            if result == NO_ROOM:
                break
            if result < 0:
                state[field] = INVALID
        if state[field] != VALID:
            for empty in range(payloads.first[i], payloads.first[i + 1]):
                records.header_count[empty] = 0
        i += 1
    progress.batch = i
