"""
The request writer: turns captured requests of one shape into requests for the target, by bytes.

The bytes around the records are the same in all of them; in batches only producer id, epoch and
sequence are replaced.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from struct import Struct
from typing import NamedTuple

import numpy as np

from cluster.fields.batch_rewriter import PRODUCER_ROLES
from dissector.capture.columns import Int64s
from dissector.engine.records.checksum import crc32c_function, crc32c_table
from dissector.kernel.named_rows import RowArray, dtype_of, row_of, rows_of, table_of
from replay.mapping.producer_ids import ProducerMap
from replay.plan.request_shapes import RequestShape
from replay.plan.sequence_gaps import SEQUENCES
from replay.templates.request_kernel import CRC_AT, CRC_FROM, StopReason, write_requests
from replay.templates.step_arrays import Bytes, Int32s, StepArrays
from replay.templates.template_arrays import (
    TemplateArrays,
    TemplateFields,
    TemplatePartition,
    WriterState,
    WrittenArrays,
    WrittenBatch,
    WrittenRequest,
)

MAX_REQUESTS = 64
"""Maximum number of requests written by one call of the kernel."""

_CRC = Struct(">I")


@dataclass(slots=True, eq=False)
class RequestRows:
    """
    Requests of one template.

    Attributes:
        requests: A row for each, `WrittenRequest`.
        batches: A row for each request and partition, `WrittenBatch`.
    """

    requests: RowArray
    batches: RowArray

    @classmethod
    def empty(cls, count: int, partitions: int) -> RequestRows:
        """Return space for a number of requests to some partitions."""
        batches = np.empty(count * partitions, dtype_of(WrittenBatch))
        return cls(np.empty(count, dtype_of(WrittenRequest)), batches)

    def __len__(self) -> int:
        return len(self.requests)

    @property
    def steps(self) -> Int64s:
        """The numbers of their steps."""
        steps: Int64s = self.requests["step"]
        return steps

    def batches_by_request(self) -> RowArray:
        """Return the rows of batches, [requests, partitions]."""
        return self.batches.reshape(len(self), -1)

    def first(self, count: int) -> RequestRows:
        """Return a copy of the first requests."""
        batches = len(self.batches) // len(self) * count
        return RequestRows(self.requests[:count].copy(), self.batches[:batches].copy())


class WrittenRequests(NamedTuple):
    """
    Requests that are ready to be sent.

    Attributes:
        rows: A row for each, and for each of its batches.
        data: The bytes of all requests, each with its size.
    """

    rows: RequestRows
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
        self._growth = growth
        fields = TemplateFields(shape, head, growth, live.is_compact, mask, last, lengths[-1])
        self._template: RowArray = table_of([fields], TemplateFields).reshape(())
        before = map(len, captured.literals[:-1])
        partitions = [
            TemplatePartition(*each) for each in zip(before, starts, lengths[:-1], strict=True)
        ]
        self._partitions: RowArray = table_of(partitions, TemplatePartition)
        self._literals: Bytes = np.frombuffer(b"".join(live.literals), np.uint8)
        self._state: RowArray = np.zeros((), dtype_of(WriterState))
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
            self._partitions["captured_id"] = -1
        a, state = arrays, row_of(self._state, WriterState)
        rows = RequestRows.empty(MAX_REQUESTS, len(self._places))
        while True:
            parts = self._template, self._partitions, self._literals, crc32c_table()
            template = parts
            written = a.buffer, rows.requests, rows.batches, self._state
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
            if state.stop_reason == StopReason.BUFFER_FULL:
                size = a.sizes[steps[first]] + self._growth
                arrays.buffer = np.empty(4 + size, np.uint8)
            elif state.stop_reason != StopReason.PRODUCER_UNKNOWN or not self._learn_producer(
                producers
            ):
                return None
        rows = rows.first(count)
        if state.stale_crcs:
            _put_crcs(arrays.buffer, rows.batches)
        arrays.release_read(state.size)
        return WrittenRequests(rows, arrays.buffer[: state.size].tobytes())

    def _learn_producer(self, producers: ProducerMap) -> bool:
        """Look up the live counterpart of an unknown producer; return whether it exists."""
        state = row_of(self._state, WriterState)
        producer_id, epoch, sequence, hole = (
            *(state.producer_id, state.epoch),
            *(state.sequence, state.partition),
        )
        found = producers.live(producer_id, epoch)
        if found is None or found[1] is None or not 0 <= found[1] < 1 << 15:
            return False
        topic, partition = self._places[hole]
        live = producers.sequence((producer_id, epoch), topic, partition, sequence)
        first = (sequence - live) % SEQUENCES if sequence >= 0 else -1
        to = rows_of(self._partitions, TemplatePartition)[hole]
        to.captured_id, to.captured_epoch = producer_id, epoch
        to.live_id, to.live_epoch = found[0], found[1]
        to.first_sequence = first
        return True


def _put_crcs(out: Bytes, batches: RowArray) -> None:
    """Update the CRCs of the changed batches."""
    view, crc32c = out.data, crc32c_function(sys.maxsize)
    changed = batches[batches["replaced_roles"] != 0]
    for begin, end in zip(changed["start"].tolist(), changed["end"].tolist(), strict=True):
        _CRC.pack_into(view, begin + CRC_AT, crc32c(view[begin + CRC_FROM : end]))
