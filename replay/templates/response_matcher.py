"""
The response matcher: processes batches of responses that differ only in offsets and times.

Everything else in a response must equal the response of the template's first request.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from cluster.client.pending_request import LAST_CORRELATION_ID
from dissector.capture.columns import Int64s
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8
from dissector.kernel.named_rows import RowArray, Rows, dtype_of, row_of, table_of
from replay.mapping.offset_map import PartitionOffsets
from replay.plan.request_shapes import ResponseShape
from replay.templates.request_writer import MAX_REQUESTS, RequestRows
from replay.templates.step_arrays import Bytes, StepArrays, number_at
from replay.templates.template_arrays import (
    MatchArrays,
    MatcherState,
    ResponseArrays,
    ResponsePart,
    StepColumns,
    Stretch,
)


class PartKind:
    """Kinds of parts: constant bytes, offset of the records, log start offset, time."""

    LITERAL, OFFSET, START, TIME = range(4)


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
        part = parts[i]
        if part.kind == PartKind.LITERAL:
            for j in range(part.size):
                if data[at + j] != literals[part.place + j]:
                    return False
        elif part.kind == PartKind.TIME and data[at] > 127:
            if part.is_set:
                return False
        elif data[at] > 127 or (part.kind == PartKind.TIME and not part.is_set):
            return False
        at += part.size
    return True


@device_function
def _learn_offsets(
    partition: int,
    captured: int,
    live: int,
    records: int,
    request: int,
    count: int,
    stretches: Rows[Stretch],
    latest: I64,
) -> int:
    """Record the offsets of a request's records; return the new number of stretches."""
    at = latest[partition]
    if at >= 0:
        last = stretches[at]
        if captured == last.captured + last.length and live == last.live + last.length:
            last.length += records
            return count
    latest[partition] = count
    new = stretches[count]
    new.partition = partition
    new.captured = captured
    new.live = live
    new.length = records
    new.request = request
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
    parts, order, requests = expected.parts, expected.order, found.requests
    stretches, latest = found.stretches, found.latest
    size, row, at = found.state.response_bytes, first, start
    count = 0
    for i in range(len(latest)):
        latest[i] = -1
    while row < len(requests) and at + 4 + size <= len(data):
        if not _is_as_expected(data, at, size, correlation_id, expected):
            break
        n = requests[row].step
        requests[row].latency_ns = latency_ns
        captured = steps.positions[n] + steps.sizes[n]
        here, partition = at + 8, 0
        for i in range(len(parts)):
            if parts[i].kind == PartKind.OFFSET:
                old = number_at(steps.frames, captured + parts[i].place, 8)
                new = number_at(data, here, 8)
                records = found.batches[row * len(order) + order[partition]].record_count
                count = _learn_offsets(partition, old, new, records, row, count, stretches, latest)
                partition += 1
            here += parts[i].size
        steps.is_done[n] = 1
        correlation_id = correlation_id % LAST_CORRELATION_ID + 1
        at += 4 + size
        row += 1
    found.state.end, found.state.stretches = at, count
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
        found = [at for at, part in _parts(captured) if part.kind == PartKind.OFFSET]
        places = [found[before.index(each)] for each in order]
        parts = [
            replace(part, place=places.pop(0)) if part.kind == PartKind.OFFSET else part
            for _, part in _parts(live)
        ]
        self._parts: RowArray = table_of(parts, ResponsePart)
        self._literals: Bytes = np.frombuffer(b"".join(live.literals), np.uint8)
        self._logs = logs
        self._order: Int64s = np.array(order, np.int64)
        self._latest: Int64s = np.empty(len(order), np.int64)
        self._state: RowArray = np.array((live.layout.size, 0, 0), dtype_of(MatcherState))

    def match(
        self,
        arrays: StepArrays,
        data: bytes | bytearray,
        start: int,
        correlation_id: int,
        rows: RequestRows,
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
            rows: The requests, as the request writer returns them.
            first: The row of the first response's request.
            latency_ns: The latency of the responses.

        Returns:
            The number of matched responses, and where they end.
        """
        stretches = np.empty(MAX_REQUESTS * len(self._order), dtype_of(Stretch))
        came: Bytes = np.frombuffer(data, np.uint8)
        expected = self._parts, self._literals, self._order
        found = rows.requests, rows.batches, stretches, self._latest, self._state
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
        state = row_of(self._state, MatcherState)
        for row in stretches[: state.stretches].tolist():
            self._learn_stretch(rows, *row)
        return count, state.end

    def _learn_stretch(
        self, rows: RequestRows, partition: int, captured: int, live: int, length: int, request: int
    ) -> None:
        """Learn the offsets of a stretch of records."""
        log = self._logs[partition]
        if log.ends_before(captured, live):
            log.learn_appended(captured, live, length, int(rows.steps[request]))
            return
        counts = rows.batches_by_request()["record_count"][:, self._order[partition]]
        while length:
            count = int(counts[request])
            log.learn_appended(captured, live, count, int(rows.steps[request]))
            captured, live, length = captured + count, live + count, length - count
            request += 1


@cache
def _parts(shape: ResponseShape) -> tuple[tuple[int, ResponsePart], ...]:
    """Return the parts of a response after its correlation id, with their positions."""
    found: list[tuple[int, ResponsePart]] = []
    at, first, kind = 4, 0, PartKind.LITERAL
    times = dict(shape.times)
    for count, code in re.findall(r"(\d*)([sqx])", shape.layout.format.removeprefix(">4x")):
        length = 8 if code == "q" else int(count)
        if code == "s":
            kind = PartKind.LITERAL
        elif code == "q":
            # The first number after a literal is an offset, the next one a log start offset.
            kind = PartKind.OFFSET if kind == PartKind.LITERAL else PartKind.START
        part = ResponsePart(kind, length, first)
        if code == "x":
            part = ResponsePart(PartKind.TIME, length, is_set=times[at])
        found.append((at, part))
        first += length if code == "s" else 0
        at += length
    return tuple(found)
