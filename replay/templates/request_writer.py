"""
Requests of a shape become those for the target, many at a time, by their bytes.

What stands around the records is the same in all of them; in batches only the numbers of producers
are replaced.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import accumulate
from struct import Struct
from typing import NamedTuple

import numpy as np

from dissector.capture.columns import Int64s
from dissector.engine.records.checksum import crc32c_function, crc32c_table
from replay.fields.batch_rewriter import PRODUCER_ROLES
from replay.mapping.producer_ids import ProducerMap
from replay.plan.request_shapes import Request
from replay.plan.sequence_gaps import SEQUENCES
from replay.templates.request_kernel import (
    BATCH,
    BATCH_END,
    CAPTURED,
    CHANGED,
    COUNT,
    CRC_AT,
    CRC_FROM,
    FULL,
    HOLE,
    ID,
    LARGE,
    LONGER,
    PER_HOLE,
    PRODUCER,
    SIZE,
    WHY,
    stamp,
)
from replay.templates.step_arrays import Arrays, Bytes, Int32s

MOST = 64
"""Requests that are written at once."""

WORK = 60
"""Of a request: so much longer it takes where a kernel is not compiled, in microseconds."""

_CRC = Struct(">I")

_NOBODY = (-1,) * (HOLE - CAPTURED)
"""Has written to a partition yet."""


def warm_up(requests: int) -> None:
    """Load or compile the kernel where so many requests are worth it, before it is needed."""
    empty, small, numbers = (np.empty(0, dtype) for dtype in (np.uint8, np.int32, np.int64))
    rows = np.empty((0, 0), np.int64)
    steps = empty, numbers, small, small, small, numbers, empty, numbers, 0, small, 0, 0
    stamp.ready(*steps, numbers, rows, empty, empty, rows, numbers, numbers, work=WORK * requests)


class Written(NamedTuple):
    """
    Requests that are ready to be sent.

    Attributes:
        told: A row for each; see `STEP` and so on.
        data: All their bytes, with sizes.
    """

    told: Int64s
    data: bytes


class Stamp:
    """
    Writes requests of one shape.

    Args:
        shape: The number of the shape.
        captured: The captured requests.
        sent: Those that are sent.
        places: Captured topic and number of each partition that they write to.
        replaced: Roles that may be replaced in batches.
    """

    def __init__(
        self,
        shape: int,
        captured: Request,
        sent: Request,
        places: Sequence[tuple[str, int]],
        replaced: frozenset[str],
    ) -> None:
        lengths = [len(each) for each in sent.literals]
        *starts, last = accumulate(lengths[:-1], initial=0)
        mask = sum(1 << at for at, role in enumerate(PRODUCER_ROLES) if role in replaced)
        longer = sum(lengths) - sum(map(len, captured.literals))
        head = int.from_bytes(sent.head, "big")
        about = shape, head, longer, sent.is_compact, mask, last, lengths[-1]
        self._about: Int64s = np.array(about, np.int64)
        before = map(len, captured.literals[:-1])
        holes = [(*each, *_NOBODY) for each in zip(before, starts, lengths[:-1], strict=True)]
        self._holes: Int64s = np.array(holes, np.int64)
        self._literals: Bytes = np.frombuffer(b"".join(sent.literals), np.uint8)
        self._state: Int64s = np.zeros(ID + 4, np.int64)
        self._places = places
        self._producers_age = 0

    def write(
        self,
        arrays: Arrays,
        steps: Int32s,
        first: int,
        correlation_id: int,
        now_ns: int,
        producers: ProducerMap,
    ) -> Written | None:
        """
        Write the requests of steps that are ready and have the shape; None where there are none.

        Args:
            arrays: What is known of all steps.
            steps: Numbers of those of a connection.
            first: Which of them is the first to be sent.
            correlation_id: Of the first request.
            now_ns: The time, from the beginning of the pass.
            producers: What the target has in the place of captured producers.
        """
        if self._producers_age != producers.revision:
            self._producers_age = producers.revision
            self._holes[:, CAPTURED] = -1
        a, state = arrays, self._state
        told = arrays.table(MOST, COUNT + PER_HOLE * len(self._places))
        while True:
            count = stamp(
                *(a.frames, a.places, a.sizes, a.shapes, a.causes, a.cause_ends, a.is_done),
                *(a.due_ns, now_ns, steps, first, correlation_id),
                *(self._about, self._holes, self._literals, a.room, told),
                *(crc32c_table(), state),
                work=0,
            )
            if count:
                break
            if state[WHY] == FULL:
                size = a.sizes[steps[first]] + self._about[LONGER]
                arrays.room = np.empty(4 + size, np.uint8)
            elif state[WHY] != PRODUCER or not self._meet(producers):
                return None
        told = told[:count].copy()
        size, large = state[SIZE : LARGE + 1].tolist()
        if large:
            _put_crcs(arrays.room, told)
        arrays.have_read(size)
        return Written(told, arrays.room[:size].tobytes())

    def _meet(self, producers: ProducerMap) -> bool:
        """Note who writes on the target what a producer wrote; False where that is not known."""
        producer_id, epoch, sequence, hole = self._state[ID:].tolist()
        found = producers.live(producer_id, epoch)
        if found is None or found[1] is None or not 0 <= found[1] < 1 << 15:
            return False
        topic, partition = self._places[hole]
        live = producers.sequence((producer_id, epoch), topic, partition, sequence)
        first = (sequence - live) % SEQUENCES if sequence >= 0 else -1
        self._holes[hole, CAPTURED:] = producer_id, epoch, *found, first
        return True


def _put_crcs(out: Bytes, told: Int64s) -> None:
    """Put into batches in which something was replaced the CRC that they then have."""
    view, crc32c = out.data, crc32c_function(sys.maxsize)
    for row in told.tolist():
        for at in range(0, len(row) - COUNT, PER_HOLE):
            if row[at + CHANGED]:
                begin, end = row[at + BATCH], row[at + BATCH_END]
                _CRC.pack_into(view, begin + CRC_AT, crc32c(view[begin + CRC_FROM : end]))
