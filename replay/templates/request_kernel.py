"""
The kernel that writes requests of a shape, many at a time.

It copies what stands around the records, which is the same in all of them, and the records, and
replaces in their batches the numbers of producers; CRCs of large ones are left to do.
"""

from __future__ import annotations

from typing import Any

from dissector.engine.records.checksum import SMALL_BYTES, crc_by_table
from dissector.kernel import Kernel, device_function
from dissector.kernel.memcpy import copy_bytes
from replay.client.pending_request import LAST_CORRELATION_ID
from replay.templates.step_arrays import number_at, put_number

NONE, FULL, PRODUCER, UNUSUAL = range(4)
"""Why no more were written: no more are ready; no room; a producer is not known; what is rare."""

SHAPE, HEAD, LONGER, COMPACT, REPLACED, LAST, LAST_BYTES = range(7)
"""What is known of all requests: number of the shape, API key and version, ..."""

BEFORE, LITERAL, LITERAL_BYTES, CAPTURED, LIVE, FIRST, HOLE = 0, 1, 2, 3, 5, 7, 8
"""
Of each partition: how many captured bytes stand before its records; what is sent instead: where it
begins among the literals, and its length; the captured producer that wrote last, with its epoch,
and that of the target; the captured sequence that is 0 there, -1 where that is not known.
"""

WHY, SIZE, LARGE, ID = range(4)
"""
What the kernel tells: why it ended, bytes, changed batches that still have their old CRC; an
unknown producer and its hole.
"""

STEP, LAG, LATENCY = range(3)
"""What is told of a request: number of its step, how late it is, how long its answer took."""

COUNT, CHANGED, BATCH, BATCH_END = range(3, 7)
PER_HOLE = 4
"""And of each of its partitions: records, which roles were replaced, where such a batch is."""

CRC_AT, CRC_FROM = 17, 21
_LARGE_BYTES = 2 * SMALL_BYTES
_BATCH_HEADER = 61
_PRODUCER_AT, _EPOCH_AT, _SEQUENCE_AT, _COUNT_AT = 43, 51, 53, 57


@device_function
def _bounds(frames: Any, at: int, is_compact: int) -> tuple[int, int]:
    """Return where what a `records` field holds begins and ends."""
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
def _is_ready(n: int, causes: Any, cause_ends: Any, is_done: Any, due_ns: Any, now_ns: int) -> bool:
    """Tell whether a step may be sent now."""
    if len(due_ns) and due_ns[n] > now_ns:
        return False
    at, end = cause_ends[n], cause_ends[n + 1]
    while at < end and is_done[causes[at]]:
        at += 1
    return bool(at == end)


@device_function
def _fill(
    frames: Any,
    at: int,
    about: Any,
    holes: Any,
    literals: Any,
    out: Any,
    to: int,
    told: Any,
    row: int,
    table: Any,
    state: Any,
) -> int:
    """Write what follows the correlation id; return where it ends, or -1 where it can't be."""
    for h in range(len(holes)):
        copy_bytes(out, to, literals, holes[h, LITERAL], holes[h, LITERAL_BYTES])
        to += holes[h, LITERAL_BYTES]
        at += holes[h, BEFORE]
        begin, end = _bounds(frames, at, about[COMPACT])
        if end - begin < _BATCH_HEADER:
            state[WHY] = UNUSUAL
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
            is_known = holes[h, CAPTURED] == producer_id and holes[h, CAPTURED + 1] == epoch
            if not is_known or (sequence >= 0 and holes[h, FIRST] < 0):
                state[WHY] = PRODUCER
                state[ID], state[ID + 1] = producer_id, epoch
                state[ID + 2], state[ID + 3] = sequence, h
                return -1
            live = sequence if sequence < 0 else (sequence - holes[h, FIRST]) & 0x7FFFFFFF
            if holes[h, LIVE] != producer_id:
                changed |= 1
            if holes[h, LIVE + 1] != epoch:
                changed |= 2
            if live != sequence:
                changed |= 4
            if changed & ~about[REPLACED]:
                state[WHY] = UNUSUAL
                return -1
            put_number(out, batch + _PRODUCER_AT, holes[h, LIVE], 8)
            put_number(out, batch + _EPOCH_AT, holes[h, LIVE + 1], 2)
            put_number(out, batch + _SEQUENCE_AT, live, 4)
            if changed and end - begin > _LARGE_BYTES:
                state[LARGE] += 1
            elif changed:
                put_number(out, batch + CRC_AT, crc_by_table(out, batch + CRC_FROM, to, table), 4)
        told[row, h * PER_HOLE + COUNT] = number_at(frames, begin + _COUNT_AT, 4)
        told[row, h * PER_HOLE + CHANGED] = changed
        told[row, h * PER_HOLE + BATCH] = batch
        told[row, h * PER_HOLE + BATCH_END] = to
    copy_bytes(out, to, literals, about[LAST], about[LAST_BYTES])
    to += about[LAST_BYTES]
    return to


@Kernel
def stamp(
    frames: Any,
    places: Any,
    sizes: Any,
    shapes: Any,
    causes: Any,
    cause_ends: Any,
    is_done: Any,
    due_ns: Any,
    now_ns: int,
    steps: Any,
    first: int,
    correlation_id: int,
    about: Any,
    holes: Any,
    literals: Any,
    out: Any,
    told: Any,
    table: Any,
    state: Any,
) -> int:
    """
    Write requests as long as steps have the shape and are ready; return how many.

    Args:
        frames: As `Arrays` has it, and what follows.
        places: See above.
        sizes: See above.
        shapes: See above.
        causes: See above.
        cause_ends: See above.
        is_done: See above.
        due_ns: See above.
        now_ns: The time, from the beginning of the pass.
        steps: Numbers of the steps of a connection.
        first: Which of them is the first to be sent.
        correlation_id: Of the first request.
        about: What is known of all requests.
        holes: And of the partitions that they write to.
        literals: What stands around records.
        out: Takes the requests, with their sizes.
        told: Takes what is to be known of each.
        table: For CRCs.
        state: Takes why there are no more of them, and their bytes.
    """
    count, at = 0, 0
    state[WHY], state[LARGE] = NONE, 0
    while count < len(told) and first + count < len(steps):
        n = steps[first + count]
        if shapes[n] != about[SHAPE] or not _is_ready(
            n, causes, cause_ends, is_done, due_ns, now_ns
        ):
            break
        size = sizes[n] + about[LONGER]
        if at + 4 + size > len(out):
            state[WHY] = FULL
            break
        put_number(out, at, size, 4)
        put_number(out, at + 4, about[HEAD], 4)
        put_number(out, at + 8, correlation_id, 4)
        begin, to = places[n] + 8, at + 12
        end = _fill(frames, begin, about, holes, literals, out, to, told, count, table, state)
        if end < 0:
            break
        at = end
        correlation_id = correlation_id % LAST_CORRELATION_ID + 1
        told[count, STEP], told[count, LAG] = n, 0
        if len(due_ns):
            told[count, LAG] = now_ns - due_ns[n]
        count += 1
    state[SIZE] = at
    return count
