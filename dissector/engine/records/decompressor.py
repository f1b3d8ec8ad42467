"""
The payloads of batches, decompressed if necessary, some tens of megabytes at a time.

Decompressed bytes are written to an *arena*, whose addresses continue those of the window's other
bytes. Payloads that are not compressed stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.records.batch_scanner import max_bytes, max_records
from dissector.engine.records.batch_table import (
    ATTRIBUTES,
    COUNT,
    CRC,
    FIELD,
    HEADER_BYTES,
    INVALID,
    MAGIC,
    MIN_RECORD_BYTES,
    UNDECIDED,
    VALID,
    Batches,
)
from dissector.engine.records.checksum import (
    SMALL_BYTES,
    crc32_table,
    crc32c_function,
    crc32c_of,
    crc32c_table,
)
from dissector.engine.records.inline_codecs import LZ4, ZSTD, decompress_inline
from dissector.engine.records.native_libraries import library_addresses
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8, I64Table
from dissector.protocol.records.compression import CODEC_MASK
from dissector.protocol.records.layout import BATCH_CRC_FROM, LENGTH_END, MIN_MESSAGE_SIZE
from dissector.protocol.records.limits import DEFAULT, MIB, Budget
from dissector.protocol.records.unpack import NO_ROOM, InlineDecompressor

Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]
Bools: TypeAlias = NDArray[np.bool_]

BAD_CRC = -2
_CRC_BYTES = HEADER_BYTES - BATCH_CRC_FROM
"""Bytes of a batch's header that its CRC covers, just before the payload."""

ARENA_BYTES = 4 * MIB
"""Fill level at which an arena is read: its bytes are then still in the CPU cache."""

MIN_MESSAGE_BYTES = LENGTH_END + MIN_MESSAGE_SIZE
"""Bytes of a message of magic 0 without key and value."""

MAX_REUSED_BYTES = 3 * ARENA_BYTES
"""An arena with no more bytes written than this is reused for the next window."""

UNIT_BYTES = 64 * MIB
"""Decompressed bytes of one unit; larger fields are left to the Python reader."""


@dataclass(slots=True)
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
    Yield the payloads of all batches of VALID fields; fields that prove otherwise lose that state.

    CRCs of compressed payloads are checked; those of large uncompressed payloads are not. The arena
    is overwritten when the next payloads are requested.

    Args:
        data: The bytes of a window.
        carry_over: Bytes carried over from earlier windows.
        batches: The batches.
        unit: Number of the unit (such as the exchange) of each batch, ascending; units are not
            split.
        portion_records: About how many records to yield at a time; None: all at once.
    """
    batch = np.flatnonzero(batches.state[batches.field] == VALID)
    unit = unit[batch]
    arena = acquire_arena()
    begin, end = batches.payload_start[batch], batches.end[batch]
    all_payloads = Payloads(batch, begin, end, arena)
    is_compressed = batches.is_compressed[batch]
    decompressor = _Decompressor(data, carry_over, batches, all_payloads)
    begins, ends = begin.data, end.data
    arena_at = len(data) + len(carry_over)
    max_used = 0
    for first, last in _portions(unit, batches.count[batch], portion_records):
        while True:
            portion_end, kernel_bytes = decompressor.decompress_small(
                unit, is_compressed, first, last
            )
            used, last_unit, target = kernel_bytes, -1, arena.data
            remaining = (
                np.flatnonzero(
                    is_compressed[first:portion_end] & (begin[first:portion_end] < arena_at)
                )
                + first
            )
            for at, batch_unit, each in zip(
                remaining.tolist(),
                unit[remaining].tolist(),
                decompressor.batch_rows(batch[remaining]),
                strict=True,
            ):
                if batch_unit != last_unit:
                    last_unit = batch_unit
                    if used - kernel_bytes >= ARENA_BYTES:
                        stop = int(np.searchsorted(unit, batch_unit))
                        yield all_payloads.select(slice(first, stop))
                        first, used, max_used = stop, kernel_bytes, max(max_used, used)
                    target = arena.data[: used + UNIT_BYTES]
                stop = decompressor.decompress(each, target, used)
                begins[at], ends[at] = arena_at + used, arena_at + stop
                used = stop
            max_used = max(max_used, used)
            yield all_payloads.select(slice(first, portion_end))
            first = portion_end
            if first == last:
                break
    release_arena(arena, max_used)


_idle_arenas: list[Bytes] = []
"""Arenas that are not in use; memory that was written to before is faster than new memory."""


def acquire_arena() -> Bytes:
    """Return an arena; the operating system allocates its pages when they are written to."""
    try:
        return _idle_arenas.pop()
    except IndexError:
        return np.empty(3 * ARENA_BYTES + UNIT_BYTES, np.uint8)


def release_arena(arena: Bytes, written: int) -> None:
    """Keep an arena for reuse, unless so much of it was written to that it would waste memory."""
    if written <= MAX_REUSED_BYTES:
        _idle_arenas.append(arena)


def _portions(unit: Ints, count: Ints, portion_records: int | None) -> list[tuple[int, int]]:
    """Return ranges of about `portion_records` records; each ends where a unit ends."""
    if portion_records is None or not len(unit):
        return [(0, len(unit))]
    first = np.flatnonzero(np.diff(unit, prepend=-1))
    before = (np.cumsum(count) - count)[first]
    begins = first[np.flatnonzero(np.diff(before // portion_records, prepend=-1))].tolist()
    return list(zip(begins, [*begins[1:], len(unit)], strict=True))


_CompressedBatch: TypeAlias = tuple[int, int, int, int, int, int, int]
"""A batch: field, magic, start and end of its payload, CRC, codec, minimal decompressed size."""


class _Decompressor:
    """Checks and decompresses batches one by one."""

    def __init__(
        self, data: Bytes, carry_over: Bytes, batches: Batches, payloads: Payloads
    ) -> None:
        self._bytes = data, carry_over
        self._data, self._carry_over, self._batches = data.data, carry_over.data, batches
        self._payloads = payloads
        self._data_bytes = len(data)
        self._state = batches.state.data
        self._output_by_field = np.zeros(len(batches.state), np.int64)
        self._output = self._output_by_field.data
        self._budget = Budget(DEFAULT)
        self._max_by_field = max_bytes(batches.field_bytes)
        self._max = self._max_by_field.data
        self._max_wrapped_by_field = _max_wrapped_bytes(batches)
        self._max_wrapped = self._max_wrapped_by_field.data
        self._decompress = InlineDecompressor().decompress_into
        self._crc32c = crc32c_function(int((payloads.end - payloads.start).sum()))
        codecs = np.bincount(batches.attributes[payloads.batch] & CODEC_MASK)
        self._codecs = set(np.flatnonzero(codecs).tolist())

    def decompress_small(
        self, unit: Ints, is_compressed: Bools, first: int, last: int
    ) -> tuple[int, int]:
        """
        Decompress in a kernel all batches that it supports, if it is compiled.

        Returns:
            The batch at which the kernel stopped, where a unit ends; and the bytes written to the
            arena.
        """
        if not _decompress_small.is_compiled:
            return last, 0
        payloads = self._payloads
        done = np.array([first, 0], np.int64)
        arguments = (
            *(
                *self._bytes,
                payloads.arena,
                self._batches.table,
                payloads.batch,
                payloads.start,
                payloads.end,
            ),
            *(unit, is_compressed, first, last, ARENA_BYTES),
            *(self._max_by_field, self._max_wrapped_by_field),
            *(self._batches.state, self._output_by_field, crc32c_table(), crc32_table()),
            *(library_addresses(lz4=LZ4 in self._codecs, zstd=ZSTD in self._codecs), done),
        )
        _decompress_small(*arguments)
        return int(done[0]), int(done[1])

    def batch_rows(self, batch: Ints) -> Iterator[_CompressedBatch]:
        """Return the arguments of `decompress` for some batches."""
        batches = self._batches
        columns = (
            batches.field[batch],
            batches.magic[batch],
            batches.payload_start[batch],
            batches.end[batch],
            batches.column(CRC)[batch],
            batches.attributes[batch] & CODEC_MASK,
            batches.count[batch] * MIN_RECORD_BYTES,
        )
        return zip(*(column.tolist() for column in columns), strict=True)

    def decompress(self, batch: _CompressedBatch, target: memoryview, at: int) -> int:
        """Decompress a batch into `target` and return the end; `at` if the batch is not valid."""
        field, magic, begin, end, crc, codec, min_bytes = batch
        if self._state[field] != VALID:
            return at
        source = self._data
        if begin >= self._data_bytes:
            source, begin, end = self._carry_over, begin - self._data_bytes, end - self._data_bytes
        is_checked = end - begin < SMALL_BYTES or magic < 2
        if not is_checked and self._crc32c(source[begin - _CRC_BYTES : end]) != crc:
            self._state[field] = INVALID
            return at
        self._budget.output_bytes = self._max[field] - self._output[field]
        stop = self._decompress(codec, source[begin:end], self._budget, target, at, magic)
        if stop - at >= min_bytes:
            self._output[field] += stop - at
            if magic < 2 and self._output[field] > self._max_wrapped[field]:
                self._state[field] = UNDECIDED
                return at
            return stop
        self._state[field] = UNDECIDED if stop == NO_ROOM else INVALID
        return at


def _max_wrapped_bytes(found: Batches) -> Ints:
    """Return for each field the bytes of messages up to which they can't be too many."""
    batches = np.bincount(found.field, minlength=len(found.state))
    limit: Ints = (max_records(found.field_bytes) - batches) * MIN_MESSAGE_BYTES
    return limit


@device_function
def _decompress_batch(
    source: U8,
    begin: int,
    end: int,
    codec: int,
    magic: int,
    crc: int,
    table: I64,
    gzip_table: I64,
    functions: I64,
    arena: U8,
    to: int,
) -> int:
    """Decompress one batch; return the end of its output, USE_LIBRARY, or BAD_CRC."""
    out_end = len(arena)
    stop = decompress_inline(
        codec, source, begin, end, magic, gzip_table, arena, to, out_end, functions
    )
    # `find_batches` has checked the CRCs of small payloads and of messages.
    is_checked = end - begin < SMALL_BYTES or magic < 2
    if stop >= 0 and not is_checked and crc32c_of(source, begin - _CRC_BYTES, end, table) != crc:
        return BAD_CRC
    return stop


@Kernel
def _decompress_small(
    data: U8,
    carry_over: U8,
    arena: U8,
    table: I64Table,
    batches: I64,
    begins: I64,
    ends: I64,
    units: I64,
    is_compressed: U8,
    first: int,
    last: int,
    arena_bytes: int,
    max_output: I64,
    max_wrapped: I64,
    state: U8,
    output: I64,
    crcs: I64,
    gzip_crcs: I64,
    functions: I64,
    done: I64,
) -> None:
    """Decompress batches up to `last`, or up to the end of the unit that fills the arena."""
    data_end = len(data)
    arena_at = data_end + len(carry_over)
    to = 0
    i = first
    while i < last:
        if to >= arena_bytes and units[i] != units[i - 1]:
            break
        batch = batches[i]
        field = table[FIELD, batch]
        if is_compressed[i] and state[field] == VALID and to < 2 * arena_bytes:
            codec = table[ATTRIBUTES, batch] & CODEC_MASK
            magic, crc = table[MAGIC, batch], table[CRC, batch]
            begin, end = begins[i], ends[i]
            source = data
            if begin >= data_end:
                source = carry_over
                begin, end = begin - data_end, end - data_end
            stop = _decompress_batch(
                source, begin, end, codec, magic, crc, crcs, gzip_crcs, functions, arena, to
            )
            if stop == BAD_CRC:
                state[field] = INVALID
            elif stop >= 0:
                if stop - to < table[COUNT, batch] * MIN_RECORD_BYTES:
                    state[field] = INVALID
                begins[i] = arena_at + to
                ends[i] = arena_at + stop
                output[field] += stop - to
                if output[field] > max_output[field] or (
                    magic < 2 and output[field] > max_wrapped[field]
                ):
                    state[field] = UNDECIDED
                to = stop
        i += 1
    done[0] = i
    done[1] = to
