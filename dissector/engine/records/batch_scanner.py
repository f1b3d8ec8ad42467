"""
Finds record batches and messages in many `records` fields at once, as columns.

One kernel finds the batches of magic 2 in all fields and, on request, the messages of message sets
(magic 0 and 1): each counts as a batch of one record, or, if it is a compressed wrapper, of
several. A field that may have more records than the limits allow is left to the Python reader,
`parse_records`. Both readers agree: a field is valid here exactly if no batch of it has a problem
there.
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from dissector.engine.records.batch_table import (
    HEADER_BYTES,
    INVALID,
    UNDECIDED,
    VALID,
    BatchColumns,
    Batches,
    Bools,
    Bytes,
    Ints,
)
from dissector.engine.records.checksum import (
    SMALL_BYTES,
    crc32_table,
    crc32c_function,
    crc32c_of,
    crc32c_table,
    crc_by_table,
)
from dissector.engine.records.record_arrays import FieldArrays, ScanLimits, ScanProgress
from dissector.engine.tape.number_kernels import signed
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8
from dissector.kernel.named_rows import dtype_of
from dissector.protocol.records import layout
from dissector.protocol.records.compression import CODEC_MASK, CODECS
from dissector.protocol.records.limits import DEFAULT
from dissector.protocol.records.payload_kernel import MIN_RECORD_BYTES

MAX_RECORDS = DEFAULT.max_records
MAX_WRAPPED_MESSAGES = 3_000_000
"""Upper bound of the messages that a field's wrappers can hold in `decompressor.UNIT_BYTES`."""

LIBRARY_MIN_BYTES = 2048
"""Minimum payload size for library calls; below, our kernel is faster."""

_SIZE_0, _SIZE_1 = layout.MESSAGE_0.size, layout.MESSAGE_1.size
_LAST_CODEC = max(CODECS)


def max_records(field_bytes: Ints) -> Ints:
    """Return the maximum numbers of records in fields of these sizes; see `Limits.records_of`."""
    few = DEFAULT.free_records + DEFAULT.records_a_byte * field_bytes
    many = DEFAULT.many_records + field_bytes // DEFAULT.bytes_a_record
    limit: Ints = np.minimum(np.minimum(few, many), DEFAULT.max_records)
    return limit


def max_bytes(field_bytes: Ints) -> Ints:
    """Return the maximum decompressed bytes of fields of these sizes, as `Limits.bytes_of` does."""
    small = np.minimum(DEFAULT.field_ratio * field_bytes, DEFAULT.field_ratio_bytes)
    large = np.maximum(small, DEFAULT.large_field_ratio * field_bytes)
    limit: Ints = np.clip(large, DEFAULT.field_bytes, DEFAULT.max_decompressed_bytes)
    return limit


def find_batches(
    data: Bytes,
    carry_over: Bytes,
    start: Ints,
    length: Ints,
    may_be_cut: Bools,
    *,
    message_sets: bool = False,
) -> Batches:
    """
    Find the batches of `records` fields; check the CRCs of messages and of small payloads.

    The CRCs of large payloads are checked just before these are read, while they are in the CPU
    cache.

    Args:
        data: The bytes of a window.
        carry_over: Bytes carried over from earlier windows; their addresses continue those of
            `data`.
        start: Address of each field's content.
        length: Bytes of each field's content; 0 for null.
        may_be_cut: Whether the last batch may be cut off.
        message_sets: Whether message sets are read too; otherwise fields with any are UNDECIDED.
    """
    state = np.zeros(len(start), np.uint8)
    tables: list[NDArray[np.int64]] = []
    progress = np.zeros((), dtype_of(ScanProgress))
    total = int(length.sum())
    capacity = len(start) + total // 256 + 16
    cut_flags = np.ascontiguousarray(may_be_cut).view(np.uint8)
    record_limit = np.minimum(max_records(length), MAX_RECORDS)
    limits = np.array((MAX_RECORDS, 0 if message_sets else 2), dtype_of(ScanLimits))
    fields = FieldArrays._make((start, length, cut_flags, state, record_limit, limits))
    while int(progress["fields"]) < len(start):
        out = np.empty((COLUMN_COUNT, capacity), np.int64)
        _scan_fields(data, carry_over, fields, BatchColumns._make(out), progress)
        tables.append(out[:, : int(progress["batches"])])
        # A field that did not fit is read again into the next table, larger if none fitted.
        capacity = capacity if progress["batches"] else capacity * 4
    row_count = sum(each.shape[1] for each in tables)
    # A table that is mostly filled is not copied; otherwise its unused memory is released.
    is_filled = len(tables) == 1 and row_count * 8 > capacity
    table = out if is_filled else np.concatenate([*tables, _NO_BATCHES], axis=1)
    columns = BatchColumns._make(table[:, :row_count])._asdict()
    found = Batches(**columns, field_bytes=length, state=state)
    is_small = (found.end - found.payload_start < SMALL_BYTES) | (found.magic < 2)
    verify_crcs(data, carry_over, found, np.flatnonzero(is_small))
    return found


def verify_crcs(data: Bytes, carry_over: Bytes, batches: Batches, chosen: Ints) -> None:
    """Check the CRCs of some batches; a mismatch makes the field INVALID."""
    size = batches.end[chosen] - batches.start[chosen]
    tables = batches.state, crc32c_table(), crc32_table()
    if verify_kernel.is_compiled:
        is_small = size < LIBRARY_MIN_BYTES
        verify_kernel(data, carry_over, batches.columns, chosen[is_small], *tables)
        chosen = chosen[~is_small]
    data_view, carry_over_view, data_end = data.data, carry_over.data, len(data)
    crc32c = crc32c_function(int(size.sum()))
    columns = batches.field, batches.start, batches.end, batches.crc, batches.magic
    for field, at, end, crc, magic in zip(
        *(each[chosen].tolist() for each in columns), strict=True
    ):
        begin = at + (layout.MESSAGE_CRC_FROM if magic < 2 else layout.BATCH_CRC_FROM)
        covered = (
            data_view[begin:end]
            if at < data_end
            else carry_over_view[begin - data_end : end - data_end]
        )
        if crc != (zlib.crc32(covered) if magic < 2 else crc32c(covered)):
            batches.state[field] = INVALID


@Kernel
def verify_kernel(
    data: U8,
    carry_over: U8,
    batches: BatchColumns,
    chosen: I64,
    state: U8,
    crc32cs: I64,
    crc32s: I64,
) -> None:
    """Check the CRCs without libraries."""
    data_end = len(data)
    for i in range(len(chosen)):
        batch = chosen[i]
        at, end = batches.start[batch], batches.end[batch]
        source = data
        if at >= data_end:
            source = carry_over
            at, end = at - data_end, end - data_end
        if batches.magic[batch] < 2:
            crc = crc_by_table(source, at + layout.MESSAGE_CRC_FROM, end, crc32s)
        else:
            crc = crc32c_of(source, at + layout.BATCH_CRC_FROM, end, crc32cs)
        if crc != batches.crc[batch]:
            state[batches.field[batch]] = INVALID


COLUMN_COUNT = len(BatchColumns._fields)
_NO_BATCHES = np.empty((COLUMN_COUNT, 0), np.int64)


@device_function
def _read_length(source: U8, at: int, end: int) -> int:
    """Read the length of a key or value: -1 is null, -2 does not fit."""
    if end - at < 4:
        return -2
    size = signed(source, at, 4)
    return size if -1 <= size <= end - at - 4 else -2


@device_function
def key_and_value(source: U8, at: int, end: int) -> tuple[int, int, int, int]:
    """Return offset and length of a message's key and value; length -2 if they do not fit."""
    key = at + (_SIZE_1 if source[at + layout.MAGIC_AT] else _SIZE_0) + 4
    key_length = _read_length(source, key - 4, end)
    if key_length < -1:
        return key, -2, key, -2
    value = key + max(key_length, 0) + 4
    length = _read_length(source, value - 4, end)
    if value + max(length, 0) != end:
        length = -2
    return key, key_length, value, length


@device_function
def _add_message(
    source: U8, at: int, stop: int, base: int, field: int, out: BatchColumns, row: int
) -> tuple[int, int]:
    """Write the row of a message; return (1 if it is valid, 1 if it is a wrapper)."""
    magic = 0 | source[at + layout.MAGIC_AT]
    attributes = 0 | source[at + layout.MAGIC_AT + 1]
    codec = attributes & CODEC_MASK
    _, _, value, length = key_and_value(source, at, stop)
    is_wrapper = 1 if codec and length >= 0 else 0
    if length < -1 or (is_wrapper and (length == 0 or codec > _LAST_CODEC)):
        return 0, is_wrapper
    crc = signed(source, at + layout.LENGTH_END, 4)
    out.field[row] = field
    out.start[row] = base + at
    out.end[row] = base + stop
    out.base_offset[row] = signed(source, at, 8) if is_wrapper else 0
    out.crc[row] = crc & 0xFFFFFFFF
    out.attributes[row] = attributes & (CODEC_MASK | layout.TIMESTAMP_TYPE)
    out.base_timestamp[row] = signed(source, at + _SIZE_0, 8) if magic else 0
    out.max_timestamp[row] = 0
    out.producer_id[row] = -1
    out.producer_epoch[row] = -1
    out.base_sequence[row] = -1
    out.record_count[row] = 1 - is_wrapper
    out.magic[row] = magic
    out.payload_start[row] = base + (value if is_wrapper else at)
    return 1, is_wrapper


@device_function
def _scan_field(
    source: U8, base: int, field: int, fields: FieldArrays, out: BatchColumns, row: int
) -> tuple[int, int]:
    """
    Find the batches of one field; `base` is the address of the first byte of `source`.

    Returns:
        The next row, or -1 if `out` is full; and the state of the field.
    """
    at = fields.start[field] - base
    end = at + fields.length[field]
    wrapped_limit, min_magic = fields.limits.wrapped_records, fields.limits.min_magic
    record_limit, capacity = fields.record_limit[field], len(out.field)
    records = 0
    has_wrapper = 0
    while at < end:
        length = signed(source, at + 8, 4) if end - at >= layout.LENGTH_END else end - at
        if length + layout.LENGTH_END > end - at:
            return row, VALID if fields.may_be_cut[field] else INVALID
        if length < layout.MIN_MESSAGE_SIZE:
            return row, INVALID
        magic = 0 | source[at + layout.MAGIC_AT]
        if magic < min_magic:
            return row, UNDECIDED
        stop = at + layout.LENGTH_END + length
        if magic < 2 and row < capacity and length >= layout.MIN_MESSAGE_SIZE + 8 * magic:
            is_valid, is_wrapper = _add_message(source, at, stop, base, field, out, row)
            if not is_valid:
                return row, INVALID
            has_wrapper |= is_wrapper
            records += 1
            if (
                records > record_limit
                or records + has_wrapper * MAX_WRAPPED_MESSAGES > wrapped_limit
            ):
                return row, UNDECIDED
            row += 1
            at = stop
            continue
        if row >= capacity:
            return -1, VALID
        if magic != 2 or length < layout.MIN_BATCH_LENGTH:
            return row, INVALID
        attributes = signed(source, at + 21, 2)
        count = signed(source, at + 57, 4)
        if count < 0 or (
            attributes & 7 == 0 and count * MIN_RECORD_BYTES > stop - at - HEADER_BYTES
        ):
            return row, INVALID
        records += count + 1
        if records > record_limit or records + has_wrapper * MAX_WRAPPED_MESSAGES > wrapped_limit:
            return row, UNDECIDED
        out.field[row] = field
        out.start[row] = base + at
        out.end[row] = base + stop
        out.base_offset[row] = signed(source, at, 8)
        crc = signed(source, at + 17, 4)
        out.crc[row] = crc & 0xFFFFFFFF
        out.attributes[row] = attributes
        out.base_timestamp[row] = signed(source, at + 27, 8)
        out.max_timestamp[row] = signed(source, at + 35, 8)
        out.producer_id[row] = signed(source, at + 43, 8)
        out.producer_epoch[row] = signed(source, at + 51, 2)
        out.base_sequence[row] = signed(source, at + 53, 4)
        out.record_count[row] = count
        out.magic[row] = 2
        out.payload_start[row] = base + at + HEADER_BYTES
        row += 1
        at = stop
    return row, VALID


@Kernel
def _scan_fields(
    data: U8, carry_over: U8, fields: FieldArrays, out: BatchColumns, progress: ScanProgress
) -> None:
    """Read fields, from the next on, until the columns are full."""
    row = 0
    field = progress.fields
    while field < len(fields.start):
        if fields.length[field] > 0:
            source = data
            base = 0
            if fields.start[field] >= len(data):
                source = carry_over
                base = len(data)
            next_row, field_state = _scan_field(source, base, field, fields, out, row)
            if next_row < 0:
                break
            row = next_row
            fields.state[field] = field_state
        field += 1
    progress.fields = field
    progress.batches = row
