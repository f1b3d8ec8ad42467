"""
Answers that only tell other offsets than the captured ones are taken many at a time.

What an answer says beside offsets and times is compared with the answer that a stencil was made of.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from dissector.kernel import Kernel, part
from replay.arrays import Arrays, Bytes, Ints, number_at
from replay.asked import LAST_CORRELATION_ID
from replay.offsets import Log
from replay.shapes import Answer
from replay.stamp import MOST, WORK
from replay.stamp_loop import COUNT, LATENCY, PER_HOLE, STEP

_LITERAL, _OFFSET, _START, _TIME = range(4)
"""Parts of an answer: what is always the same; offset of records, begin of the log; a time."""

_KIND, _SIZE, _FIRST, _PART = range(4)
"""Of a part: which it is and how long; of a literal where it is among the literals; of an offset
where the captured answer has it; of a time whether it is set."""

_END, _STRETCHES = range(2)
"""What the kernel tells: where what it took ends, and how many stretches of offsets that are."""

_PARTITION, _CAPTURED, _LIVE, _LENGTH, _FROM, _STRETCH = range(6)
"""
Of a stretch of records that lie in a row in capture and target: number of the partition in the
answer, where they begin, how many they are, and which of the steps has the first of them.
"""


@part
def _is_as_expected(
    data: Any, at: int, size: int, correlation_id: int, parts: Any, literals: Any
) -> bool:
    """Tell whether an answer, which is there as a whole, differs only where answers do."""
    if number_at(data, at, 4) != size or number_at(data, at + 4, 4) != correlation_id:
        return False
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


@part
def _learn(
    partition: int,
    captured: int,
    live: int,
    count: int,
    step: int,
    known: int,
    stretches: Any,
    latest: Any,
) -> int:
    """Note where records of a step are; return how many stretches that makes."""
    at = latest[partition]
    if at >= 0:
        length = stretches[at, _LENGTH]
        if captured == stretches[at, _CAPTURED] + length and live == stretches[at, _LIVE] + length:
            stretches[at, _LENGTH] = length + count
            return known
    latest[partition] = known
    stretches[known, _PARTITION], stretches[known, _LENGTH] = partition, count
    stretches[known, _CAPTURED], stretches[known, _LIVE] = captured, live
    stretches[known, _FROM] = step
    return known + 1


@Kernel
def match(
    data: Any,
    start: int,
    size: int,
    correlation_id: int,
    parts: Any,
    literals: Any,
    order: Any,
    frames: Any,
    places: Any,
    sizes: Any,
    is_done: Any,
    told: Any,
    first: int,
    latency_ns: int,
    stretches: Any,
    latest: Any,
    state: Any,
) -> int:
    """
    Take answers as long as they are as expected; return how many.

    Args:
        data: What came.
        start: Where in it the first answer begins, with its size.
        size: Of each answer.
        correlation_id: Of the first.
        parts: Of an answer.
        literals: What it says the same each time.
        order: For each partition of it, which of the request it is.
        frames: As `Arrays` has it.
        places: See above.
        sizes: See above.
        is_done: See above; those that are answered are noted.
        told: What is known of each request.
        first: Which of them has the first answer.
        latency_ns: How long the answers took.
        stretches: Takes where records are.
        latest: Is used: for each partition its last stretch.
        state: Takes where the answers end, and how many stretches there are.
    """
    known, at = first, start
    count = 0
    for i in range(len(latest)):
        latest[i] = -1
    while known < len(told) and at + 4 + size <= len(data):
        if not _is_as_expected(data, at, size, correlation_id, parts, literals):
            break
        n = told[known, STEP]
        told[known, LATENCY] = latency_ns
        captured = places[n] + sizes[n]
        here, partition = at + 8, 0
        for i in range(len(parts)):
            if parts[i, _KIND] == _OFFSET:
                old = number_at(frames, captured + parts[i, _FIRST], 8)
                new = number_at(data, here, 8)
                records = told[known, order[partition] * PER_HOLE + COUNT]
                count = _learn(partition, old, new, records, known, count, stretches, latest)
                partition += 1
            here += parts[i, _SIZE]
        is_done[n] = 1
        correlation_id = correlation_id % LAST_CORRELATION_ID + 1
        at += 4 + size
        known += 1
    state[_END], state[_STRETCHES] = at, count
    return known - first


def warm_up(requests: int) -> None:
    """Load or compile the kernel where so many answers are worth it, before it is needed."""
    data, small, numbers = (np.empty(0, dtype) for dtype in (np.uint8, np.int32, np.int64))
    rows = np.empty((0, 0), np.int64)
    answer = data, 0, 0, 0, rows, data, numbers
    steps = data, numbers, small, data, rows, 0, 0
    match.ready(*answer, *steps, rows, numbers, numbers, work=WORK * requests)


class Match:
    """
    Takes answers of one shape.

    Args:
        captured: The captured answers.
        live: Those of the target.
        orders: For each partition of the captured and of the live ones, which of the request it is.
        logs: What is known of each partition of the live ones; it learns what answers tell.
    """

    def __init__(
        self,
        captured: Answer,
        live: Answer,
        orders: tuple[Sequence[int], Sequence[int]],
        logs: Sequence[Log],
    ) -> None:
        self._size = live.layout.size
        before, order = orders
        found = [at for at, (kind, *_) in _parts(captured) if kind == _OFFSET]
        places = [found[before.index(each)] for each in order]
        rows: list[tuple[int, int, int]] = []
        for _, (kind, length, first) in _parts(live):
            rows.append((kind, length, places.pop(0) if kind == _OFFSET else first))
        self._parts: Ints = np.array(rows, np.int64)
        self._literals: Bytes = np.frombuffer(b"".join(live.literals), np.uint8)
        self._logs = logs
        self._order: Ints = np.array(order, np.int64)
        self._latest: Ints = np.empty(len(order), np.int64)
        self._state: Ints = np.zeros(2, np.int64)

    def take(
        self,
        arrays: Arrays,
        data: bytes | bytearray,
        start: int,
        correlation_id: int,
        told: Ints,
        first: int,
        latency_ns: int,
    ) -> tuple[int, int]:
        """
        Take answers as long as they are as expected.

        Args:
            arrays: What is known of all steps; those that are answered are noted.
            data: What came.
            start: Where in it the first answer begins, with its size.
            correlation_id: Of the first.
            told: What is known of each request, as `stamp` tells it.
            first: Which of them has the first answer.
            latency_ns: How long the answers took.

        Returns:
            How many there are, and where they end.
        """
        stretches = arrays.table(MOST * len(self._order), _STRETCH)
        came: Bytes = np.frombuffer(data, np.uint8)
        count = match(
            *(came, start, self._size, correlation_id, self._parts, self._literals, self._order),
            *(arrays.frames, arrays.places, arrays.sizes, arrays.is_done, told, first),
            *(latency_ns, stretches, self._latest, self._state),
            work=0,
        )
        end, rows = self._state.tolist()
        for row in stretches[:rows].tolist():
            self._learn(told, *row)
        return count, end

    def _learn(
        self, told: Ints, partition: int, captured: int, live: int, length: int, step: int
    ) -> None:
        """Take over where the records of steps are."""
        log = self._logs[partition]
        if log.ends_before(captured, live):
            log.append(captured, live, length, int(told[step, STEP]))
            return
        while length:
            count = int(told[step, self._order[partition] * PER_HOLE + COUNT])
            log.append(captured, live, count, int(told[step, STEP]))
            captured, live, length, step = captured + count, live + count, length - count, step + 1


@cache
def _parts(answer: Answer) -> tuple[tuple[int, tuple[int, int, int]], ...]:
    """Return the parts of an answer behind its correlation id: where they are, and what."""
    found: list[tuple[int, tuple[int, int, int]]] = []
    at, first, kind = 4, 0, _LITERAL
    times = dict(answer.times)
    for count, code in re.findall(r"(\d*)([sqx])", answer.layout.format.removeprefix(">4x")):
        length = 8 if code == "q" else int(count)
        if code == "s":
            kind = _LITERAL
        elif code == "q":
            # The first number behind a literal is an offset, what follows is where a log begins.
            kind = _OFFSET if kind == _LITERAL else _START
        part = (_TIME, length, int(times[at])) if code == "x" else (kind, length, first)
        found.append((at, part))
        first += length if code == "s" else 0
        at += length
    return tuple(found)
