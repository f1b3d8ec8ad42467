"""
The kernel that writes requests of one shape, many at a time.

It copies the constant bytes around the records and the records, and replaces producer id, epoch and
sequence in their batches. CRCs of large batches are left to the caller.
"""

from __future__ import annotations

from dissector.engine.records.checksum import SMALL_BYTES, crc_by_table
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I32, U8
from dissector.kernel.memcpy import copy_bytes
from replay.client.pending_request import LAST_CORRELATION_ID
from replay.templates.step_arrays import number_at, put_number
from replay.templates.template_arrays import StepColumns, TemplateArrays, WrittenArrays

NONE, BUFFER_FULL, PRODUCER_UNKNOWN, UNUSUAL = range(4)
"""
Reason why the kernel stopped: no further step is ready; the buffer is full; a producer is unknown;
a rare case that needs the slow path.
"""

SHAPE, API_AND_VERSION, GROWTH_BYTES, IS_COMPACT, REPLACEABLE, LAST_LITERAL, LAST_LITERAL_BYTES = (
    range(7)
)
"""
Fields of a template: number of the shape; API key and version; size difference to the captured
request; whether sizes are varints; roles that may be replaced, as bits; the literal after the last
records, and its size.
"""

BYTES_BEFORE, LITERAL, LITERAL_BYTES, CAPTURED, LIVE, FIRST_SEQUENCE, PARTITION_COLUMNS = (
    0,
    1,
    2,
    3,
    5,
    7,
    8,
)
"""
Columns of a partition: number of captured bytes before its records; position and length of the
literal sent in their place; captured id and epoch of the producer that wrote last; its live id and
epoch; the captured sequence that is 0 on the target, -1 if unknown.
"""

STOP_REASON, SIZE, STALE_CRCS, UNKNOWN_PRODUCER = range(4)
"""
State returned by the kernel: why it stopped; written bytes; number of changed batches that still
have their old CRC; id, epoch, sequence and partition of an unknown producer.
"""

STEP, LAG, LATENCY = range(3)
"""Columns of a written request: number of its step, its lag, its latency."""

RECORD_COUNT, REPLACED_ROLES, BATCH, BATCH_END = range(3, 7)
PER_PARTITION = 4
"""
Further columns for each of its partitions: number of records; replaced roles, as bits; begin and
end of the batch.
"""

CRC_AT, CRC_FROM = 17, 21
_LARGE_BYTES = 2 * SMALL_BYTES
_BATCH_HEADER = 61
_PRODUCER_AT, _EPOCH_AT, _SEQUENCE_AT, _COUNT_AT = 43, 51, 53, 57


@device_function
def _bounds(frames: U8, at: int, is_compact: int) -> tuple[int, int]:
    """Return begin and end of the content of a `records` field."""
    if not is_compact:
        begin = at + 4
        return begin, begin + number_at(frames, at, 4)
    size, shift, byte = 0, 0, 128
    while byte > 127:
        byte = 0 | frames[at]
        size |= (byte & 127) << shift
        shift += 7
        at += 1
    return at, at + size - 1


@device_function
def _is_ready(arrays: StepColumns, n: int, now_ns: int) -> bool:
    """Return whether a step is due and has the responses that it depends on."""
    if len(arrays.due_ns) and arrays.due_ns[n] > now_ns:
        return False
    at, end = arrays.dependency_ends[n], arrays.dependency_ends[n + 1]
    while at < end and arrays.is_done[arrays.dependencies[at]]:
        at += 1
    return bool(at == end)


@device_function
def _write_body(
    frames: U8, at: int, request: TemplateArrays, written: WrittenArrays, to: int, row: int
) -> int:
    """Write a request after its correlation id; return its end, or -1 if it can't be written."""
    template, partitions, literals = request.fields, request.partitions, request.literals
    out, request_rows, state = written.out, written.request_rows, written.state
    for h in range(len(partitions)):
        copy_bytes(out, to, literals, partitions[h, LITERAL], partitions[h, LITERAL_BYTES])
        to += partitions[h, LITERAL_BYTES]
        at += partitions[h, BYTES_BEFORE]
        begin, end = _bounds(frames, at, template[IS_COMPACT])
        if end - begin < _BATCH_HEADER:
            state[STOP_REASON] = UNUSUAL
            return -1
        copy_bytes(out, to, frames, at, end - at)
        batch = to + begin - at
        to += end - at
        at = end
        changed = 0
        producer_id = number_at(frames, begin + _PRODUCER_AT, 8)
        if producer_id >= 0:
            epoch = number_at(frames, begin + _EPOCH_AT, 2)
            sequence = number_at(frames, begin + _SEQUENCE_AT, 4)
            is_known = (
                partitions[h, CAPTURED] == producer_id and partitions[h, CAPTURED + 1] == epoch
            )
            if not is_known or (sequence >= 0 and partitions[h, FIRST_SEQUENCE] < 0):
                state[STOP_REASON] = PRODUCER_UNKNOWN
                state[UNKNOWN_PRODUCER], state[UNKNOWN_PRODUCER + 1] = producer_id, epoch
                state[UNKNOWN_PRODUCER + 2], state[UNKNOWN_PRODUCER + 3] = sequence, h
                return -1
            live = (
                sequence
                if sequence < 0
                else (sequence - partitions[h, FIRST_SEQUENCE]) & 0x7FFFFFFF
            )
            if partitions[h, LIVE] != producer_id:
                changed |= 1
            if partitions[h, LIVE + 1] != epoch:
                changed |= 2
            if live != sequence:
                changed |= 4
            if changed & ~template[REPLACEABLE]:
                state[STOP_REASON] = UNUSUAL
                return -1
            put_number(out, batch + _PRODUCER_AT, partitions[h, LIVE], 8)
            put_number(out, batch + _EPOCH_AT, partitions[h, LIVE + 1], 2)
            put_number(out, batch + _SEQUENCE_AT, live, 4)
            if changed and end - begin > _LARGE_BYTES:
                state[STALE_CRCS] += 1
            elif changed:
                put_number(
                    out, batch + CRC_AT, crc_by_table(out, batch + CRC_FROM, to, request.crcs), 4
                )
        request_rows[row, h * PER_PARTITION + RECORD_COUNT] = number_at(
            frames, begin + _COUNT_AT, 4
        )
        request_rows[row, h * PER_PARTITION + REPLACED_ROLES] = changed
        request_rows[row, h * PER_PARTITION + BATCH] = batch
        request_rows[row, h * PER_PARTITION + BATCH_END] = to
    copy_bytes(out, to, literals, template[LAST_LITERAL], template[LAST_LITERAL_BYTES])
    to += template[LAST_LITERAL_BYTES]
    return to


@Kernel
def write_requests(
    arrays: StepColumns,
    now_ns: int,
    steps: I32,
    first: int,
    correlation_id: int,
    request: TemplateArrays,
    written: WrittenArrays,
) -> int:
    """
    Write requests for as long as steps have the shape and are ready; return their number.

    Args:
        arrays: The arrays of all steps.
        now_ns: Time since the start of the pass.
        steps: Numbers of the steps of a connection.
        first: Index of the first of them to be sent.
        correlation_id: The correlation id of the first request.
        request: The template.
        written: Receives the requests.
    """
    template, due_ns = request.fields, arrays.due_ns
    out, request_rows, state = written.out, written.request_rows, written.state
    count, at = 0, 0
    state[STOP_REASON], state[STALE_CRCS] = NONE, 0
    while count < len(request_rows) and first + count < len(steps):
        n = steps[first + count]
        if arrays.shapes[n] != template[SHAPE] or not _is_ready(arrays, n, now_ns):
            break
        size = arrays.sizes[n] + template[GROWTH_BYTES]
        if at + 4 + size > len(out):
            state[STOP_REASON] = BUFFER_FULL
            break
        put_number(out, at, size, 4)
        put_number(out, at + 4, template[API_AND_VERSION], 4)
        put_number(out, at + 8, correlation_id, 4)
        begin, to = arrays.positions[n] + 8, at + 12
        end = _write_body(arrays.frames, begin, request, written, to, count)
        if end < 0:
            break
        at = end
        correlation_id = correlation_id % LAST_CORRELATION_ID + 1
        request_rows[count, STEP], request_rows[count, LAG] = n, 0
        if len(due_ns):
            request_rows[count, LAG] = now_ns - due_ns[n]
        count += 1
    state[SIZE] = at
    return count
