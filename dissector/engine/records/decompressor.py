"""
The records of batches, decompressed where they are compressed, some tens of megabytes at a time.

What decompression gives lies in an *arena*, whose addresses go on where those of a window's other
bytes end; records that are not compressed stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

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
from dissector.engine.records.inline_codecs import LZ4, SMALL_PAYLOAD_BYTES, ZSTD, decompress_inline
from dissector.engine.records.native_libraries import library_addresses
from dissector.kernel import Kernel, device_function
from dissector.protocol.records.compression import CODEC_MASK
from dissector.protocol.records.layout import BATCH_CRC_FROM, LENGTH_END, MIN_MESSAGE_SIZE
from dissector.protocol.records.limits import DEFAULT, MIB, Budget
from dissector.protocol.records.unpack import NO_ROOM, InlineDecompressor

Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]
Bools: TypeAlias = NDArray[np.bool_]

BAD_CRC = -2
_CRC_BYTES = HEADER_BYTES - BATCH_CRC_FROM
"""What a batch's CRC covers of its header, just before the payload."""

ARENA_BYTES = 4 * MIB
"""From here on an arena is full: what was just written is still near the processor when read."""

MIN_MESSAGE_BYTES = LENGTH_END + MIN_MESSAGE_SIZE
"""Bytes of a message of magic 0 without key and value."""

MAX_REUSED_BYTES = 3 * ARENA_BYTES
"""An arena of which no more was written to is kept for the next window."""

UNIT_BYTES = 64 * MIB
"""What libraries may add for one unit; fields of a larger one are left to the Python reader."""


@dataclass(slots=True)
class Payloads:
    """
    The records of some batches that follow one another.

    Attributes:
        batch: Numbers of the batches.
        start: Address of each one's records: in `data`, then `carry_over`, then `arena`.
        end: Address behind them.
        arena: What was compressed.
    """

    batch: Ints
    start: Ints
    end: Ints
    arena: Bytes

    def select(self, chosen: slice | Bools) -> Payloads:
        """Return those of some of the batches."""
        return Payloads(self.batch[chosen], self.start[chosen], self.end[chosen], self.arena)


def iter_payloads(
    data: Bytes, carry_over: Bytes, batches: Batches, unit: Ints, portion_records: int | None = None
) -> Iterator[Payloads]:
    """
    Yield the records of all batches of right fields; fields that prove otherwise lose that state.

    The CRCs of those that are compressed are checked; not of the others that are not small.
    What lies in the arena is gone when the next are asked for.

    Args:
        data: The bytes of a window.
        carry_over: More bytes.
        batches: The batches.
        unit: Of each batch the number of what it belongs to (ascending): units are not torn apart.
        portion_records: About how many records to yield at a time.
    """
    batch = np.flatnonzero(batches.state[batches.field] == VALID)
    unit = unit[batch]
    arena = acquire_arena()
    begin, end = batches.payload_start[batch], batches.end[batch]
    these = Payloads(batch, begin, end, arena)
    packed = batches.is_compressed[batch]
    opener = _Decompressor(data, carry_over, batches, these)
    begins, ends = begin.data, end.data
    beyond = len(data) + len(carry_over)
    highest = 0
    for first, last in _portions(unit, batches.count[batch], portion_records):
        while True:
            turn, low = opener.decompress_small(unit, packed, first, last)
            used, last_unit, room = low, -1, arena.data
            places = np.flatnonzero(packed[first:turn] & (begin[first:turn] < beyond)) + first
            for at, owner, each in zip(
                places.tolist(),
                unit[places].tolist(),
                opener.batch_rows(batch[places]),
                strict=True,
            ):
                if owner != last_unit:
                    last_unit = owner
                    if used - low >= ARENA_BYTES:
                        stop = int(np.searchsorted(unit, owner))
                        yield these.select(slice(first, stop))
                        first, used, highest = stop, low, max(highest, used)
                    room = arena.data[: used + UNIT_BYTES]
                stop = opener.decompress(each, room, used)
                begins[at], ends[at] = beyond + used, beyond + stop
                used = stop
            highest = max(highest, used)
            yield these.select(slice(first, turn))
            first = turn
            if first == last:
                break
    release_arena(arena, highest)


_idle_arenas: list[Bytes] = []
"""Arenas that nobody uses: memory that was written to before is quicker than new memory."""


def acquire_arena() -> Bytes:
    """Return an arena; memory is taken only where it is written to."""
    try:
        return _idle_arenas.pop()
    except IndexError:
        return np.empty(3 * ARENA_BYTES + UNIT_BYTES, np.uint8)


def release_arena(arena: Bytes, written: int) -> None:
    """Keep an arena for another time, unless so much of it was written to that it is a burden."""
    if written <= MAX_REUSED_BYTES:
        _idle_arenas.append(arena)


def _portions(unit: Ints, count: Ints, portion_records: int | None) -> list[tuple[int, int]]:
    """Return spans of batches with about so many records; each ends where a unit ends."""
    if portion_records is None or not len(unit):
        return [(0, len(unit))]
    first = np.flatnonzero(np.diff(unit, prepend=-1))
    before = (np.cumsum(count) - count)[first]
    begins = first[np.flatnonzero(np.diff(before // portion_records, prepend=-1))].tolist()
    return list(zip(begins, [*begins[1:], len(unit)], strict=True))


_CompressedBatch: TypeAlias = tuple[int, int, int, int, int, int, int]
"""A batch: field, magic, address of its payload, of its end, CRC, codec, least that it may hold."""


class _Decompressor:
    """Checks and decompresses batches, one after the other."""

    def __init__(self, data: Bytes, held: Bytes, found: Batches, these: Payloads) -> None:
        self._bytes = data, held
        self._data, self._carry_over, self._batches = data.data, held.data, found
        self._payloads = these
        self._data_bytes = len(data)
        self._state = found.state.data
        self._output_by_field = np.zeros(len(found.state), np.int64)
        self._output = self._output_by_field.data
        self._budget = Budget(DEFAULT)
        self._max_by_field = max_bytes(found.field_bytes)
        self._max = self._max_by_field.data
        self._max_wrapped_by_field = _max_wrapped_bytes(found)
        self._max_wrapped = self._max_wrapped_by_field.data
        self._decompress = InlineDecompressor().decompress_into
        self._crc32c = crc32c_function(int((these.end - these.start).sum()))
        codecs = np.bincount(found.attributes[these.batch] & CODEC_MASK)
        self._codecs = set(np.flatnonzero(codecs).tolist())

    def decompress_small(self, unit: Ints, packed: Bools, first: int, last: int) -> tuple[int, int]:
        """
        Write the records of batches that a loop can open, if there are many.

        Returns:
            At which batch that stopped, where a unit ends; and how much of the arena it took.
        """
        these = self._payloads
        done = np.array([first, 0], np.int64)
        work = int(np.minimum(these.end - these.start, SMALL_PAYLOAD_BYTES)[packed].sum()) // 4
        arguments = (
            *(*self._bytes, these.arena, self._batches.table, these.batch, these.start, these.end),
            *(unit, packed, first, last, ARENA_BYTES),
            *(self._max_by_field, self._max_wrapped_by_field),
            *(self._batches.state, self._output_by_field, crc32c_table(), crc32_table()),
            *(library_addresses(lz4=LZ4 in self._codecs, zstd=ZSTD in self._codecs), done),
        )
        if not _decompress_small.ready(*arguments, work=work):
            return last, 0
        _decompress_small(*arguments, work=work)
        return int(done[0]), int(done[1])

    def batch_rows(self, batch: Ints) -> Iterator[_CompressedBatch]:
        """Return what `decompress` needs of some batches."""
        found = self._batches
        columns = (
            found.field[batch],
            found.magic[batch],
            found.payload_start[batch],
            found.end[batch],
            found.column(CRC)[batch],
            found.attributes[batch] & CODEC_MASK,
            found.count[batch] * MIN_RECORD_BYTES,
        )
        return zip(*(column.tolist() for column in columns), strict=True)

    def decompress(self, batch: _CompressedBatch, room: memoryview, at: int) -> int:
        """Write the records of a batch, and return where they end; none if it is not right."""
        field, magic, begin, end, crc, codec, least = batch
        if self._state[field] != VALID:
            return at
        source = self._data
        if begin >= self._data_bytes:
            source, begin, end = self._carry_over, begin - self._data_bytes, end - self._data_bytes
        checked = end - begin < SMALL_BYTES or magic < 2
        if not checked and self._crc32c(source[begin - _CRC_BYTES : end]) != crc:
            self._state[field] = INVALID
            return at
        self._budget.output_bytes = self._max[field] - self._output[field]
        stop = self._decompress(codec, source[begin:end], self._budget, room, at, magic)
        if stop - at >= least:
            self._output[field] += stop - at
            if magic < 2 and self._output[field] > self._max_wrapped[field]:
                self._state[field] = UNDECIDED
                return at
            return stop
        self._state[field] = UNDECIDED if stop == NO_ROOM else INVALID
        return at


def _max_wrapped_bytes(found: Batches) -> Ints:
    """Return of each field how many bytes of wrapped messages can't be too many messages."""
    batches = np.bincount(found.field, minlength=len(found.state))
    most: Ints = (max_records(found.field_bytes) - batches) * MIN_MESSAGE_BYTES
    return most


@device_function
def _decompress_batch(
    source: Any,
    begin: int,
    end: int,
    codec: int,
    magic: int,
    crc: int,
    table: Any,
    gzip_table: Any,
    functions: Any,
    arena: Any,
    to: int,
) -> int:
    """Write the records of one batch; return their end, NOT_TAKEN, or BAD_CRC."""
    room = len(arena)
    stop = decompress_inline(
        codec, source, begin, end, magic, gzip_table, arena, to, room, functions
    )
    # The CRCs of smaller ones are checked already.
    is_checked = end - begin < SMALL_BYTES or magic < 2
    if stop >= 0 and not is_checked and crc32c_of(source, begin - _CRC_BYTES, end, table) != crc:
        return BAD_CRC
    return stop


@Kernel
def _decompress_small(
    data: Any,
    held: Any,
    arena: Any,
    table: Any,
    batches: Any,
    begins: Any,
    ends: Any,
    units: Any,
    packed: Any,
    first: int,
    last: int,
    full: int,
    most: Any,
    most_wrapped: Any,
    state: Any,
    given: Any,
    crcs: Any,
    gzip_crcs: Any,
    functions: Any,
    done: Any,
) -> None:
    """Open those that the loop can up to `last`, or to a unit with which the arena is full."""
    beyond = len(data)
    further = beyond + len(held)
    to = 0
    i = first
    while i < last:
        if to >= full and units[i] != units[i - 1]:
            break
        batch = batches[i]
        field = table[FIELD, batch]
        if packed[i] and state[field] == VALID and to < 2 * full:
            codec = table[ATTRIBUTES, batch] & CODEC_MASK
            magic, crc = table[MAGIC, batch], table[CRC, batch]
            begin, end = begins[i], ends[i]
            source = data
            if begin >= beyond:
                source = held
                begin, end = begin - beyond, end - beyond
            stop = _decompress_batch(
                source, begin, end, codec, magic, crc, crcs, gzip_crcs, functions, arena, to
            )
            if stop == BAD_CRC:
                state[field] = INVALID
            elif stop >= 0:
                if stop - to < table[COUNT, batch] * MIN_RECORD_BYTES:
                    state[field] = INVALID
                begins[i] = further + to
                ends[i] = further + stop
                given[field] += stop - to
                if given[field] > most[field] or (magic < 2 and given[field] > most_wrapped[field]):
                    state[field] = UNDECIDED
                to = stop
        i += 1
    done[0] = i
    done[1] = to
