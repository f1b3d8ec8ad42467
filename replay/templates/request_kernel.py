"""
The kernel that writes requests of one shape, many at a time.

It copies the constant bytes around the records and the records, and replaces producer id, epoch and
sequence in their batches. CRCs of large batches are left to the caller.
"""

from __future__ import annotations

from cluster.client.pending_request import LAST_CORRELATION_ID
from dissector.engine.records.checksum import SMALL_BYTES, crc_by_table
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I32, U8
from dissector.kernel.memcpy import copy_bytes
from replay.templates.step_arrays import number_at, put_number
from replay.templates.template_arrays import StepColumns, TemplateArrays, WrittenArrays


class StopReason:
    """
    Reason why the kernel stopped.

    No further step is ready; the buffer is full; a producer is unknown; a rare case that needs the
    slow path.
    """

    NONE, BUFFER_FULL, PRODUCER_UNKNOWN, UNUSUAL = range(4)


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
    out, state = written.out, written.state
    for h in range(len(partitions)):
        partition, sent = partitions[h], written.batches[row * len(partitions) + h]
        copy_bytes(out, to, literals, partition.literal, partition.literal_bytes)
        to += partition.literal_bytes
        at += partition.bytes_before
        begin, end = _bounds(frames, at, template.is_compact)
        if end - begin < _BATCH_HEADER:
            state.stop_reason = StopReason.UNUSUAL
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
            is_known = partition.captured_id == producer_id and partition.captured_epoch == epoch
            if not is_known or (sequence >= 0 and partition.first_sequence < 0):
                state.stop_reason = StopReason.PRODUCER_UNKNOWN
                state.producer_id, state.epoch = producer_id, epoch
                state.sequence, state.partition = sequence, h
                return -1
            live = sequence
            if sequence >= 0:
                live = (sequence - partition.first_sequence) & 0x7FFFFFFF
            if partition.live_id != producer_id:
                changed |= 1
            if partition.live_epoch != epoch:
                changed |= 2
            if live != sequence:
                changed |= 4
            if changed & ~template.replaceable:
                state.stop_reason = StopReason.UNUSUAL
                return -1
            put_number(out, batch + _PRODUCER_AT, partition.live_id, 8)
            put_number(out, batch + _EPOCH_AT, partition.live_epoch, 2)
            put_number(out, batch + _SEQUENCE_AT, live, 4)
            if changed and end - begin > _LARGE_BYTES:
                state.stale_crcs += 1
            elif changed:
                put_number(
                    out, batch + CRC_AT, crc_by_table(out, batch + CRC_FROM, to, request.crcs), 4
                )
        sent.record_count = number_at(frames, begin + _COUNT_AT, 4)
        sent.replaced_roles = changed
        sent.start = batch
        sent.end = to
    copy_bytes(out, to, literals, template.last_literal, template.last_literal_bytes)
    return to + template.last_literal_bytes


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
    out, requests, state = written.out, written.requests, written.state
    count, at = 0, 0
    state.stop_reason, state.stale_crcs = StopReason.NONE, 0
    while count < len(requests) and first + count < len(steps):
        n = steps[first + count]
        if arrays.shapes[n] != template.shape or not _is_ready(arrays, n, now_ns):
            break
        size = arrays.sizes[n] + template.growth_bytes
        if at + 4 + size > len(out):
            state.stop_reason = StopReason.BUFFER_FULL
            break
        put_number(out, at, size, 4)
        put_number(out, at + 4, template.api_and_version, 4)
        put_number(out, at + 8, correlation_id, 4)
        begin, to = arrays.positions[n] + 8, at + 12
        end = _write_body(arrays.frames, begin, request, written, to, count)
        if end < 0:
            break
        at = end
        correlation_id = correlation_id % LAST_CORRELATION_ID + 1
        requests[count].step, requests[count].lag_ns = n, 0
        if len(due_ns):
            requests[count].lag_ns = now_ns - due_ns[n]
        count += 1
    state.size = at
    return count
