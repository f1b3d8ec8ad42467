"""
Rows of named fields at rest: compressed in blocks, and read again by the number of their owner.

Within a block many fields become differences, as they resemble another one. Of all fields only the
bytes that are not the same in all rows are compressed: a field that says little costs little, and a
new field needs no code.
"""

from __future__ import annotations

import mmap
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.kernel.named_rows import NamedRow, RowArray, dtype_of, field_of
from dissector.kernel.numbered_values import NumberedValues

BLOCK_ROWS = 1024
"""Most rows of a block."""

NOWHERE = -1
"""The place of a number without a row; lower ones are those of packed rows."""

_FIRST_PLACE = NOWHERE - 1
_CACHED_BLOCKS = 4
_LEVEL = 6
_MEMORY_BYTES = 1 << 20

BEFORE = "the row before"
"""Instead of a base: the field resembles the same one of the row before."""

_RAW, _PREVIOUS = -2, -1

Numbers: TypeAlias = "NDArray[np.int64]"
Cells: TypeAlias = "NDArray[np.int64]"


class _Block(NamedTuple):
    """
    Rows in compressed form.

    Attributes:
        rows: Their number.
        packed: The fields of the first row; the differences of the second one; as bits, which bytes
            of the differences, [fields, 8], are not those of the second; these bytes of all rows
            but the first, by field, compressed.
    """

    rows: int
    packed: NDArray[np.uint8]


class PackedRows:
    """
    The rows at rest of owners with numbers, at most one for each.

    They take the compressed bytes, and 4 bytes for each number.

    Attributes:
        places: Where the row of each number is: `NOWHERE`, below that here; others are for its
            owner to set, as the places of rows that are not at rest.
    """

    def __init__(self, row: type[NamedRow], bases: dict[str, str]) -> None:
        """
        Start without rows.

        Args:
            row: The kind of the rows.
            bases: The field that a field resembles, by names such as `streams.0.next`, or `BEFORE`;
                the others are compressed as they are.
        """
        self._dtype = dtype_of(row)
        names = [*_names(self._dtype)]
        self._bases = np.array(
            [
                names.index(bases[name]) if bases.get(name, BEFORE) != BEFORE else _RAW
                for name in names
            ]
        )
        self._bases[[names.index(name) for name in bases if bases[name] == BEFORE]] = _PREVIOUS
        self.places = NumberedValues(np.int32, NOWHERE)
        self._blocks: list[_Block] = []
        self._memory: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._dead = 0
        self._cache: OrderedDict[int, RowArray] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cache": OrderedDict(), "_memory": self._memory[:0]}

    @property
    def size_bytes(self) -> int:
        """The memory of all."""
        return self.places.nbytes + sum(len(block.packed) for block in self._blocks)

    def number_up_to(self, count: int) -> None:
        """Make places for this many numbers."""
        self.places.number_up_to(count)

    def add(self, numbers: Numbers, rows: RowArray) -> None:
        """Pack the rows of owners, whose numbers have places."""
        for at in range(0, len(numbers), BLOCK_ROWS):
            part = numbers[at : at + BLOCK_ROWS]
            first = len(self._blocks) * BLOCK_ROWS
            self.places[part] = _FIRST_PLACE - np.arange(first, first + len(part), dtype=np.int32)
            self._blocks.append(self._packed(rows[at : at + BLOCK_ROWS]))

    def has(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Return of which owners the rows are here."""
        known = numbers < len(self.places)
        known[known] = self.places[numbers[known]] < NOWHERE
        return known

    def read(self, numbers: Numbers) -> RowArray:
        """Return the rows of owners, which must be here."""
        found = np.zeros(len(numbers), self._dtype)
        for chosen, block, rows in self._chosen(numbers):
            found[chosen] = block[rows]
        return found

    def read_fields(self, numbers: Numbers, names: Sequence[str]) -> list[NDArray[Any]]:
        """Return fields of the rows of owners, which must be here; see `field_of`."""
        none = np.zeros(0, self._dtype)
        kinds = [field_of(none, name) for name in names]
        found = [np.zeros((len(numbers), *each.shape[1:]), each.dtype) for each in kinds]
        for chosen, block, rows in self._chosen(numbers):
            for name, each in zip(names, found, strict=True):
                each[chosen] = field_of(block, name)[rows]
        return found

    def _chosen(self, numbers: Numbers) -> Iterator[tuple[NDArray[np.bool_], RowArray, Numbers]]:
        """Yield each block with rows of owners: which these are, the block, and its rows."""
        places = _FIRST_PLACE - self.places[numbers]
        if places.min(initial=0) < 0:
            raise IndexError("a number has no row here")
        blocks = places // BLOCK_ROWS
        for block in sorted(set(blocks.tolist())):
            chosen = blocks == block
            yield chosen, self._block(block), places[chosen] % BLOCK_ROWS

    def take(self, numbers: Numbers) -> RowArray:
        """Return the rows of owners, which are not here afterwards."""
        found = self.read(numbers)
        self.places[numbers] = NOWHERE
        self._drop(len(numbers))
        return found

    def forget(self, numbers: Numbers) -> None:
        """Drop the rows of owners, which may be here; nobody will ask for one of them again."""
        count = int(np.count_nonzero(self.has(numbers)))
        self.places.forget(numbers)
        self._drop(count)

    def _drop(self, count: int) -> None:
        """Count rows without an owner; drop their memory when they are most."""
        self._dead += count
        if self._dead > sum(each.rows for each in self._blocks) // 2:
            self._compact()

    def numbers_in_parts(self) -> Iterator[Numbers]:
        """Yield all numbers, in parts whose rows lie together."""
        numbers = self.in_order()
        for at in range(0, len(numbers), BLOCK_ROWS):
            yield numbers[at : at + BLOCK_ROWS]

    def parts(self) -> Iterator[tuple[Numbers, RowArray]]:
        """Yield all numbers and rows, in parts; rows must not be added or taken meanwhile."""
        for part in self.numbers_in_parts():
            yield part, self.read(part)

    def in_order(self) -> Numbers:
        """Return the numbers with rows here, in the order in which these were added."""
        numbers, places = self.places.items()
        is_here = places < NOWHERE
        ordered: Numbers = numbers[is_here][np.argsort(-places[is_here], kind="stable")]
        return ordered

    def clear(self) -> None:
        """Drop all rows and places."""
        self.places.clear()
        self._blocks, self._dead = [], 0
        self._cache.clear()

    def _compact(self) -> None:
        """Drop the memory of rows that were taken."""
        numbers, blocks = self.in_order(), list[_Block]()
        for at in range(0, len(numbers), BLOCK_ROWS):
            blocks.append(self._packed(self.read(numbers[at : at + BLOCK_ROWS])))
        self.places[numbers] = _FIRST_PLACE - np.arange(len(numbers), dtype=np.int32)
        self._blocks, self._dead = blocks, 0
        self._cache.clear()

    def _block(self, number: int) -> RowArray:
        """Return the rows of a block; not to be written."""
        rows = self._cache.pop(number, None)
        if rows is None:
            rows = self._unpacked(self._blocks[number])
        self._cache[number] = rows
        if len(self._cache) > _CACHED_BLOCKS:
            self._cache.popitem(last=False)
        return rows

    def _packed(self, rows: RowArray) -> _Block:
        cells: Cells = np.ascontiguousarray(_cells(rows).T)
        less = cells[:, 1:].copy()
        has_base, is_run = self._bases >= 0, self._bases == _PREVIOUS
        less[has_base] -= cells[self._bases[has_base], 1:]
        less[is_run] -= cells[is_run, :-1]
        less = (less << 1) ^ (less >> 63)
        same = less[:, 0] if len(rows) > 1 else cells[:, 0]
        differs = np.flatnonzero((less != same[:, np.newaxis]).any(axis=1))
        planes = _bytes(less[differs])
        varies = np.zeros((len(cells), 8), np.bool_)
        varies[differs] = (planes != planes[:, :, :1]).any(axis=2)
        data = zlib.compress(planes[varies[differs]].data, _LEVEL)
        head = cells[:, 0].tobytes() + same.tobytes() + np.packbits(varies).tobytes()
        return _Block(len(rows), self._kept(head + data))

    def _kept(self, data: bytes) -> NDArray[np.uint8]:
        """
        Copy bytes to memory of their own.

        Among the memory of windows they would keep the C library from returning that.
        """
        if len(data) > len(self._memory):
            size = max(_MEMORY_BYTES, len(data))
            self._memory = np.frombuffer(mmap.mmap(-1, size), np.uint8)
        kept, self._memory = self._memory[: len(data)], self._memory[len(data) :]
        kept[:] = np.frombuffer(data, np.uint8)
        return kept

    def _unpacked(self, block: _Block) -> RowArray:
        rows: RowArray = np.zeros(block.rows, self._dtype)
        fields = len(self._bases)
        head, packed = np.split(block.packed, [16 * fields])
        first, same = head.copy().view(np.int64).reshape(2, fields)
        varies = np.unpackbits(packed[:fields])
        is_varied = varies.reshape(-1, 8).astype(np.bool_)
        less = np.repeat(same[:, np.newaxis], block.rows - 1, axis=1)
        differs = np.flatnonzero(is_varied.any(axis=1))
        planes = _bytes(less[differs])
        data = np.frombuffer(zlib.decompress(packed[fields:].data), np.uint8)
        planes[is_varied[differs]] = data.reshape(np.count_nonzero(varies), block.rows - 1)
        less[differs] = np.ascontiguousarray(planes.transpose(0, 2, 1)).view(np.int64)[:, :, 0]
        less = (less >> 1 & (1 << 63) - 1) ^ -(less & 1)
        cells = np.empty((len(first), block.rows), np.int64)
        cells[:, 0], cells[:, 1:] = first, less
        for field in np.flatnonzero(self._bases == _PREVIOUS).tolist():
            cells[field] = np.cumsum(cells[field])
        done = self._bases < 0
        while not done.all():
            ready = ~done & done[self._bases]
            cells[ready, 1:] += cells[self._bases[ready], 1:]
            done |= ready
        _cells(rows)[:] = cells.T
        return rows


def _cells(rows: RowArray) -> Cells:
    """Return the fields of rows, [rows, fields]; rows must be contiguous."""
    cells: Cells = rows.view(np.int64).reshape(len(rows), -1)
    return cells


def _bytes(numbers: Cells) -> NDArray[np.uint8]:
    """Return the bytes of numbers [fields, rows] as [fields, 8, rows]."""
    separate = np.ascontiguousarray(numbers).view(np.uint8).reshape(*numbers.shape, 8)
    return np.ascontiguousarray(separate.transpose(0, 2, 1))


def _names(dtype: np.dtype[np.void], before: str = "") -> Iterator[str]:
    """Yield the names of the integers of a row, such as `streams.0.next`."""
    for name, (kind, *_) in (dtype.fields or {}).items():
        for at in [f".{each}" for each in range(kind.shape[0])] if kind.shape else [""]:
            if kind.base.fields:
                yield from _names(kind.base, f"{before}{name}{at}.")
            else:
                yield f"{before}{name}{at}"
