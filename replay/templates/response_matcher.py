"""
The response matcher: processes batches of responses that differ only in offsets and times.

Everything else in a response must equal the response of the template's first request.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np

from dissector.capture.columns import Int64s
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8, I64Table
from replay.client.pending_request import LAST_CORRELATION_ID
from replay.mapping.offset_map import PartitionOffsets
from replay.plan.request_shapes import ResponseShape
from replay.templates.request_kernel import LATENCY, PER_PARTITION, RECORD_COUNT, STEP
from replay.templates.request_writer import MAX_REQUESTS
from replay.templates.step_arrays import Bytes, StepArrays, number_at
from replay.templates.template_arrays import MatchArrays, ResponseArrays, StepColumns

_LITERAL, _OFFSET, _START, _TIME = range(4)
"""Kinds of parts of a response: constant bytes, offset of the records, log start offset, time."""

_KIND, _SIZE, _FIRST, _PART = range(4)
"""
Columns of a part: its kind; its size; its position among the literals, for an offset its position
in the captured response, for a time whether it is set.
"""

_END, _STRETCHES, _RESPONSE_BYTES = range(3)
"""
State of the kernel: the end of the matched responses, the number of stretches; the size of each
response.
"""

_PARTITION, _CAPTURED, _LIVE, _LENGTH, _FROM, _STRETCH = range(6)
"""
Columns of a stretch of records that are contiguous in capture and target: index of the partition in
the response, first captured offset, first live offset, number of records, index of the request with
the first of them.
"""


@device_function
def _is_as_expected(
    data: U8, at: int, size: int, correlation_id: int, expected: ResponseArrays
) -> bool:
    """Return whether a complete response differs only in offsets and times."""
    if number_at(data, at, 4) != size or number_at(data, at + 4, 4) != correlation_id:
        return False
    parts, literals = expected.parts, expected.literals
    at += 8
    for i in range(len(parts)):
        kind, length = parts[i, _KIND], parts[i, _SIZE]
        if kind == _LITERAL:
            first = parts[i, _FIRST]
            for j in range(length):
                if data[at + j] != literals[first + j]:
                    return False
        elif kind == _TIME and data[at] > 127:
            if parts[i, _FIRST]:
                return False
        elif data[at] > 127 or (kind == _TIME and not parts[i, _FIRST]):
            return False
        at += length
    return True


@device_function
def _learn_offsets(
    partition: int,
    captured: int,
    live: int,
    records: int,
    step: int,
    count: int,
    stretches: I64Table,
    latest: I64,
) -> int:
    """Record the offsets of a request's records; return the new number of stretches."""
    at = latest[partition]
    if at >= 0:
        length = stretches[at, _LENGTH]
        if captured == stretches[at, _CAPTURED] + length and live == stretches[at, _LIVE] + length:
            stretches[at, _LENGTH] = length + records
            return count
    latest[partition] = count
    stretches[count, _PARTITION], stretches[count, _LENGTH] = partition, records
    stretches[count, _CAPTURED], stretches[count, _LIVE] = captured, live
    stretches[count, _FROM] = step
    return count + 1


@Kernel
def match_responses(
    data: U8,
    start: int,
    correlation_id: int,
    expected: ResponseArrays,
    steps: StepColumns,
    first: int,
    latency_ns: int,
    found: MatchArrays,
) -> int:
    """
    Match responses while they are as expected; return their number.

    Args:
        data: The received bytes.
        start: Begin of the first response, with its size.
        correlation_id: The correlation id of the first response.
        expected: The expected response.
        steps: The arrays of all steps; answered steps are marked.
        first: The row of the first response's request.
        latency_ns: The latency of the responses.
        found: The requests; receives the stretches of records.
    """
    parts, order, request_rows = expected.parts, expected.order, found.request_rows
    stretches, latest = found.stretches, found.latest
    size = found.state[_RESPONSE_BYTES]
    row, at = first, start
    count = 0
    for i in range(len(latest)):
        latest[i] = -1
    while row < len(request_rows) and at + 4 + size <= len(data):
        if not _is_as_expected(data, at, size, correlation_id, expected):
            break
        n = request_rows[row, STEP]
        request_rows[row, LATENCY] = latency_ns
        captured = steps.positions[n] + steps.sizes[n]
        here, partition = at + 8, 0
        for i in range(len(parts)):
            if parts[i, _KIND] == _OFFSET:
                old = number_at(steps.frames, captured + parts[i, _FIRST], 8)
                new = number_at(data, here, 8)
                records = request_rows[row, order[partition] * PER_PARTITION + RECORD_COUNT]
                count = _learn_offsets(partition, old, new, records, row, count, stretches, latest)
                partition += 1
            here += parts[i, _SIZE]
        steps.is_done[n] = 1
        correlation_id = correlation_id % LAST_CORRELATION_ID + 1
        at += 4 + size
        row += 1
    found.state[_END], found.state[_STRETCHES] = at, count
    return row - first


class ResponseMatcher:
    """
    Matches the responses of one shape.

    Args:
        captured: The layout of the captured responses.
        live: The layout of the target's responses.
        orders: For each partition of the captured and of the live response its index in the
            request.
        logs: The log of each partition of the live response; they learn the offsets.
    """

    def __init__(
        self,
        captured: ResponseShape,
        live: ResponseShape,
        orders: tuple[Sequence[int], Sequence[int]],
        logs: Sequence[PartitionOffsets],
    ) -> None:
        before, order = orders
        found = [at for at, (kind, *_) in _parts(captured) if kind == _OFFSET]
        places = [found[before.index(each)] for each in order]
        rows: list[tuple[int, int, int]] = []
        for _, (kind, length, first) in _parts(live):
            rows.append((kind, length, places.pop(0) if kind == _OFFSET else first))
        self._parts: Int64s = np.array(rows, np.int64)
        self._literals: Bytes = np.frombuffer(b"".join(live.literals), np.uint8)
        self._logs = logs
        self._order: Int64s = np.array(order, np.int64)
        self._latest: Int64s = np.empty(len(order), np.int64)
        self._state: Int64s = np.array([0, 0, live.layout.size], np.int64)

    def match(
        self,
        arrays: StepArrays,
        data: bytes | bytearray,
        start: int,
        correlation_id: int,
        request_rows: Int64s,
        first: int,
        latency_ns: int,
    ) -> tuple[int, int]:
        """
        Match responses while they are as expected.

        Args:
            arrays: The arrays of all steps; answered steps are marked.
            data: The received bytes.
            start: Begin of the first response, with its size.
            correlation_id: The correlation id of the first response.
            request_rows: A row for each request, as the request writer returns it.
            first: The row of the first response's request.
            latency_ns: The latency of the responses.

        Returns:
            The number of matched responses, and where they end.
        """
        stretches = arrays.table(MAX_REQUESTS * len(self._order), _STRETCH)
        came: Bytes = np.frombuffer(data, np.uint8)
        expected = self._parts, self._literals, self._order
        found = request_rows, stretches, self._latest, self._state
        count = match_responses(
            came,
            start,
            correlation_id,
            ResponseArrays._make(expected),
            arrays.columns,
            first,
            latency_ns,
            MatchArrays._make(found),
        )
        end, rows, _ = self._state.tolist()
        for row in stretches[:rows].tolist():
            self._learn_stretch(request_rows, *row)
        return count, end

    def _learn_stretch(
        self, request_rows: Int64s, partition: int, captured: int, live: int, length: int, step: int
    ) -> None:
        """Learn the offsets of a stretch of records."""
        log = self._logs[partition]
        if log.ends_before(captured, live):
            log.learn_appended(captured, live, length, int(request_rows[step, STEP]))
            return
        while length:
            count = int(request_rows[step, self._order[partition] * PER_PARTITION + RECORD_COUNT])
            log.learn_appended(captured, live, count, int(request_rows[step, STEP]))
            captured, live, length, step = captured + count, live + count, length - count, step + 1


@cache
def _parts(shape: ResponseShape) -> tuple[tuple[int, tuple[int, int, int]], ...]:
    """Return the parts of a response after its correlation id, with their positions."""
    found: list[tuple[int, tuple[int, int, int]]] = []
    at, first, kind = 4, 0, _LITERAL
    times = dict(shape.times)
    for count, code in re.findall(r"(\d*)([sqx])", shape.layout.format.removeprefix(">4x")):
        length = 8 if code == "q" else int(count)
        if code == "s":
            kind = _LITERAL
        elif code == "q":
            # The first number after a literal is an offset, the next one a log start offset.
            kind = _OFFSET if kind == _LITERAL else _START
        part = (_TIME, length, int(times[at])) if code == "x" else (kind, length, first)
        found.append((at, part))
        first += length if code == "s" else 0
        at += length
    return tuple(found)
