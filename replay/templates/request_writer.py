"""
The request writer: turns captured requests of one shape into requests for the target, by bytes.

The bytes around the records are the same in all of them; in batches only producer id, epoch and
sequence are replaced.
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
from replay.plan.request_shapes import RequestShape
from replay.plan.sequence_gaps import SEQUENCES
from replay.templates.request_kernel import (
    BATCH,
    BATCH_END,
    BUFFER_FULL,
    CAPTURED,
    CRC_AT,
    CRC_FROM,
    GROWTH_BYTES,
    PARTITION_COLUMNS,
    PER_PARTITION,
    PRODUCER_UNKNOWN,
    RECORD_COUNT,
    REPLACED_ROLES,
    SIZE,
    STALE_CRCS,
    STOP_REASON,
    UNKNOWN_PRODUCER,
    write_requests,
)
from replay.templates.step_arrays import Bytes, Int32s, StepArrays
from replay.templates.template_arrays import TemplateArrays, WrittenArrays

MAX_REQUESTS = 64
"""Maximum number of requests written by one call of the kernel."""

_CRC = Struct(">I")

_NO_PRODUCER = (-1,) * (PARTITION_COLUMNS - CAPTURED)
"""The producer columns of a partition without any producer yet."""


class WrittenRequests(NamedTuple):
    """
    Requests that are ready to be sent.

    Attributes:
        request_rows: A row for each, with the columns `STEP`, `LAG`, ... of the kernel.
        data: The bytes of all requests, each with its size.
    """

    request_rows: Int64s
    data: bytes


class RequestWriter:
    """
    Writes requests of one shape.

    Args:
        shape: The number of the shape.
        captured: The shape of the captured requests.
        live: The shape of the requests to the target.
        places: Captured topic and number of each partition that they write to.
        replaced: Roles that may be replaced in batches.
    """

    def __init__(
        self,
        shape: int,
        captured: RequestShape,
        live: RequestShape,
        places: Sequence[tuple[str, int]],
        replaced: frozenset[str],
    ) -> None:
        lengths = [len(each) for each in live.literals]
        *starts, last = accumulate(lengths[:-1], initial=0)
        mask = sum(1 << at for at, role in enumerate(PRODUCER_ROLES) if role in replaced)
        growth = sum(lengths) - sum(map(len, captured.literals))
        head = int.from_bytes(live.head, "big")
        template = shape, head, growth, live.is_compact, mask, last, lengths[-1]
        self._template: Int64s = np.array(template, np.int64)
        before = map(len, captured.literals[:-1])
        partitions = [
            (*each, *_NO_PRODUCER) for each in zip(before, starts, lengths[:-1], strict=True)
        ]
        self._partitions: Int64s = np.array(partitions, np.int64)
        self._literals: Bytes = np.frombuffer(b"".join(live.literals), np.uint8)
        self._state: Int64s = np.zeros(UNKNOWN_PRODUCER + 4, np.int64)
        self._places = places
        self._producers_revision = 0

    def write(
        self,
        arrays: StepArrays,
        steps: Int32s,
        first: int,
        correlation_id: int,
        now_ns: int,
        producers: ProducerMap,
    ) -> WrittenRequests | None:
        """
        Write the requests of steps that are ready and have the shape; None without any.

        Args:
            arrays: The arrays of all steps.
            steps: Numbers of the steps of a connection.
            first: Index of the first of them to be sent.
            correlation_id: The correlation id of the first request.
            now_ns: Time since the start of the pass.
            producers: The mapping of producer ids, epochs and sequences.
        """
        if self._producers_revision != producers.revision:
            self._producers_revision = producers.revision
            self._partitions[:, CAPTURED] = -1
        a, state = arrays, self._state
        request_rows = arrays.table(MAX_REQUESTS, RECORD_COUNT + PER_PARTITION * len(self._places))
        while True:
            parts = self._template, self._partitions, self._literals, crc32c_table()
            template = parts
            written = a.buffer, request_rows, state
            count = write_requests(
                a.columns,
                now_ns,
                steps,
                first,
                correlation_id,
                TemplateArrays._make(template),
                WrittenArrays._make(written),
            )
            if count:
                break
            if state[STOP_REASON] == BUFFER_FULL:
                size = a.sizes[steps[first]] + self._template[GROWTH_BYTES]
                arrays.buffer = np.empty(4 + size, np.uint8)
            elif state[STOP_REASON] != PRODUCER_UNKNOWN or not self._learn_producer(producers):
                return None
        request_rows = request_rows[:count].copy()
        size, large = state[SIZE : STALE_CRCS + 1].tolist()
        if large:
            _put_crcs(arrays.buffer, request_rows)
        arrays.release_read(size)
        return WrittenRequests(request_rows, arrays.buffer[:size].tobytes())

    def _learn_producer(self, producers: ProducerMap) -> bool:
        """Look up the live counterpart of an unknown producer; return whether it exists."""
        producer_id, epoch, sequence, hole = self._state[UNKNOWN_PRODUCER:].tolist()
        found = producers.live(producer_id, epoch)
        if found is None or found[1] is None or not 0 <= found[1] < 1 << 15:
            return False
        topic, partition = self._places[hole]
        live = producers.sequence((producer_id, epoch), topic, partition, sequence)
        first = (sequence - live) % SEQUENCES if sequence >= 0 else -1
        self._partitions[hole, CAPTURED:] = producer_id, epoch, *found, first
        return True


def _put_crcs(out: Bytes, request_rows: Int64s) -> None:
    """Update the CRCs of the changed batches."""
    view, crc32c = out.data, crc32c_function(sys.maxsize)
    for row in request_rows.tolist():
        for at in range(0, len(row) - RECORD_COUNT, PER_PARTITION):
            if row[at + REPLACED_ROLES]:
                begin, end = row[at + BATCH], row[at + BATCH_END]
                _CRC.pack_into(view, begin + CRC_AT, crc32c(view[begin + CRC_FROM : end]))
