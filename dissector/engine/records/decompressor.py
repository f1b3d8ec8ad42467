"""
The payloads of batches, decompressed if necessary, some tens of megabytes at a time.

Decompressed bytes are in an *arena*; its addresses continue those of the window's other bytes.
Payloads that are not compressed stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.records.batch_scanner import max_bytes, max_records, verify_crcs
from dissector.engine.records.batch_table import (
    INVALID,
    UNDECIDED,
    VALID,
    Batches,
)
from dissector.engine.records.checksum import SMALL_BYTES
from dissector.protocol.records.compression import CODEC_MASK, decompress
from dissector.protocol.records.layout import LENGTH_END, MIN_MESSAGE_SIZE
from dissector.protocol.records.limits import DEFAULT, MIB, Budget
from dissector.protocol.records.payload_kernel import MIN_RECORD_BYTES
from dissector.protocol.records.unpack import unpack

Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]
Bools: TypeAlias = NDArray[np.bool_]

ARENA_BYTES = 4 * MIB
"""Size of an arena: its bytes stay in the CPU cache until they are read."""

MIN_MESSAGE_BYTES = LENGTH_END + MIN_MESSAGE_SIZE
"""Bytes of a message of magic 0 without key and value."""

UNIT_BYTES = 64 * MIB
"""Decompressed bytes of one unit; larger fields are left to the Python reader."""


@dataclass(slots=True, eq=False, repr=False)
class Payloads:
    """
    The payloads of some consecutive batches.

    Attributes:
        batch: Numbers of the batches.
        start: Address of each payload: in `data`, then the carry-over buffer, then `arena`.
        end: Address behind it.
        arena: The decompressed bytes.
    """

    batch: Ints
    start: Ints
    end: Ints
    arena: Bytes

    def select(self, chosen: slice | Bools) -> Payloads:
        """Return the payloads of some of the batches."""
        return Payloads(self.batch[chosen], self.start[chosen], self.end[chosen], self.arena)


def iter_payloads(
    data: Bytes, carry_over: Bytes, batches: Batches, unit: Ints, portion_records: int | None = None
) -> Iterator[Payloads]:
    """
    Yield the payloads of all batches of VALID fields; an error here ends that state.

    CRCs of compressed payloads are checked; large uncompressed payloads do not.

    Args:
        data: The bytes of a window.
        carry_over: Bytes carried over from earlier windows.
        batches: The batches.
        unit: Number of the unit (such as the exchange) of each batch, ascending; units are not
            split.
        portion_records: Approximate number of records per portion; None for all at once.
    """
    batch = np.flatnonzero(batches.state[batches.field] == VALID)
    unit = unit[batch]
    is_compressed = batches.is_compressed[batch]
    decompressor = _Decompressor(data, carry_over, batches)
    for first, last in _portions(unit, batches.record_count[batch], portion_records):
        compressed = np.flatnonzero(is_compressed[first:last]) + first
        decompressor.verify(batch[compressed])
        outputs: list[bytes] = []
        used, last_unit, room = 0, -1, 0
        for batch_unit, each in zip(
            unit[compressed].tolist(), decompressor.batch_rows(batch[compressed]), strict=True
        ):
            if batch_unit != last_unit:
                last_unit, room = batch_unit, UNIT_BYTES
                if used >= ARENA_BYTES:
                    stop = int(np.searchsorted(unit, batch_unit))
                    yield decompressor.payloads(
                        batch[first:stop], is_compressed[first:stop], outputs
                    )
                    first, used, outputs = stop, 0, []
            out = decompressor.decompress(each, room)
            outputs.append(out)
            used += len(out)
            room -= len(out)
        yield decompressor.payloads(batch[first:last], is_compressed[first:last], outputs)


def _portions(unit: Ints, count: Ints, portion_records: int | None) -> list[tuple[int, int]]:
    """Return ranges of about `portion_records` records; each ends at the end of a unit."""
    if portion_records is None or not len(unit):
        return [(0, len(unit))]
    first = np.flatnonzero(np.diff(unit, prepend=-1))
    before = (np.cumsum(count) - count)[first]
    begins = first[np.flatnonzero(np.diff(before // portion_records, prepend=-1))].tolist()
    return list(zip(begins, [*begins[1:], len(unit)], strict=True))


_CompressedBatch: TypeAlias = tuple[int, int, int, int, int, int]
"""A batch: field, magic, start and end of its payload, codec, minimal decompressed size."""


class _Decompressor:
    """Checks and decompresses batches within the limits of their fields."""

    def __init__(self, data: Bytes, carry_over: Bytes, batches: Batches) -> None:
        self._data, self._carry_over, self._batches = data, carry_over, batches
        self._views = data.data, carry_over.data
        self._state = batches.state.data
        self._output = [0] * len(batches.state)
        self._budget = Budget(DEFAULT)
        self._max = max_bytes(batches.field_bytes).tolist()
        self._max_wrapped = _max_wrapped_bytes(batches).tolist()

    def verify(self, batch: Ints) -> None:
        """Check the CRCs that `find_batches` has not checked."""
        batches = self._batches
        size = batches.end[batch] - batches.payload_start[batch]
        is_large = (size >= SMALL_BYTES) & (batches.magic[batch] == 2)
        if is_large.any():
            verify_crcs(self._data, self._carry_over, batches, batch[is_large])

    def batch_rows(self, batch: Ints) -> Iterator[_CompressedBatch]:
        """Return the arguments of `decompress` for some batches."""
        batches = self._batches
        columns = (
            batches.field[batch],
            batches.magic[batch],
            batches.payload_start[batch],
            batches.end[batch],
            batches.attributes[batch] & CODEC_MASK,
            batches.record_count[batch] * MIN_RECORD_BYTES,
        )
        return zip(*(column.tolist() for column in columns), strict=True)

    def decompress(self, batch: _CompressedBatch, room: int) -> bytes:
        """Return the output of a batch, at most `room` bytes; empty if the batch is not valid."""
        field, magic, begin, end, codec, min_bytes = batch
        if self._state[field] != VALID:
            return b""
        source, carry_over = self._views
        if begin >= len(source):
            begin, end, source = begin - len(source), end - len(source), carry_over
        payload, budget = source[begin:end], self._budget
        budget.output_bytes = self._max[field] - self._output[field]
        out = unpack(codec, payload, budget.output_for(end - begin))
        problem = None
        if out is None:
            out, problem, _ = decompress(codec, payload, budget, magic=magic)
        self._output[field] += len(out)
        if problem or len(out) < min_bytes:
            self._state[field] = INVALID
        elif len(out) > room or (magic < 2 and self._output[field] > self._max_wrapped[field]):
            self._state[field] = UNDECIDED
        else:
            return out
        return b""

    def payloads(self, batch: Ints, is_compressed: Bools, outputs: list[bytes]) -> Payloads:
        """Return the payloads of some batches, from the outputs of the compressed ones."""
        start, end = self._batches.payload_start[batch], self._batches.end[batch]
        stop = np.cumsum([len(self._data) + len(self._carry_over), *map(len, outputs)])
        start[is_compressed], end[is_compressed] = stop[:-1], stop[1:]
        return Payloads(batch, start, end, np.frombuffer(b"".join(outputs), np.uint8))


def _max_wrapped_bytes(found: Batches) -> Ints:
    """Return for each field the message size below which its number of records is within limits."""
    batches = np.bincount(found.field, minlength=len(found.state))
    limit: Ints = (max_records(found.field_bytes) - batches) * MIN_MESSAGE_BYTES
    return limit
