"""
Levels: encoding of nulls in a column, and of the begins of lists.

Source: parquet.apache.org/docs/file-format/nestedencoding; S. Melnik et al., "Dremel" (2010).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.parquet.page_kernels import pack_runs
from dissector.engine.parquet.row_groups import Flags, Lists
from dissector.engine.parquet.thrift import varint
from dissector.engine.tables.exchange_table import Ints

Int32s: TypeAlias = NDArray[np.int32]

_NULL_LIST, _EMPTY_LIST = 0, 1
"""Definition levels of rows without items; those of items follow."""


def flat_levels(is_set: Flags | None, repeats: Ints | None, rows: int) -> tuple[bytes, int]:
    """
    Return the levels of a column without lists, 0 for null and 1 for others.

    Args:
        is_set: Mask of non-null values; None for all.
        repeats: Rows of each; None for one.
        rows: Rows of all.

    Returns:
        The levels, and the number of nulls.
    """
    if is_set is None:
        return _with_size(varint(rows << 1) + b"\x01"), 0
    if repeats is not None:
        nulls = rows - int(repeats[is_set].sum())
        return _with_size(packed_runs(is_set.astype(np.int32), repeats, 1)), nulls
    nulls = rows - int(np.count_nonzero(is_set))
    if nulls == rows:
        return _with_size(varint(rows << 1) + b"\x00"), nulls
    groups = (rows + 7) // 8
    packed = varint(groups << 1 | 1) + np.packbits(is_set, bitorder="little").tobytes()
    return _with_size(packed), nulls


@dataclass(slots=True)
class ListPlaces:
    """
    Entries of lists: one for each item, and one for each row without items.

    Attributes:
        entries: Number of entries.
        repetition: Repetition levels, which mark the first entry of each row.
        definition: The definition levels of items.
        is_item: Mask of entries that are items.
        present: The definition level of a field that is not null.
    """

    entries: int
    repetition: bytes
    definition: Int32s
    is_item: Flags
    present: int

    def levels(self, is_set: Flags | None) -> tuple[bytes, int]:
        """Return the levels of a field of the items, and the number of its nulls."""
        definition, nulls = self.definition, int(np.count_nonzero(~self.is_item))
        if is_set is not None:
            definition = definition.copy()
            definition[np.flatnonzero(self.is_item)[~is_set]] -= 1
            nulls += int(np.count_nonzero(~is_set))
        packed = _packed_levels(definition, self.present.bit_length())
        return self.repetition + _with_size(packed), nulls


def list_places(lists: Lists, *, in_struct: bool) -> ListPlaces:
    """Return where items stand; fields of structs have one more level."""
    counts = lists.counts if lists.is_set is None else np.where(lists.is_set, lists.counts, 0)
    entries = np.maximum(counts, 1)
    starts = np.cumsum(entries) - entries
    total = int(entries.sum())
    repetition = np.ones(total, np.int32)
    repetition[starts] = 0
    is_item = np.ones(total, np.bool_)
    is_item[starts[counts == 0]] = False
    present = 4 if in_struct else 3
    definition = np.where(is_item, present, _EMPTY_LIST).astype(np.int32)
    if lists.is_set is not None:
        definition[starts[~lists.is_set]] = _NULL_LIST
    packed = _with_size(_packed_levels(repetition, 1))
    return ListPlaces(total, packed, definition, is_item, present)


def packed_runs(indices: Int32s, repeats: Ints, width: int) -> bytes:
    """Return numbers of some bits, each one repeated."""
    rows = int(repeats.sum())
    # Each run ends at most one bit-packed run, and is one itself.
    out = np.empty(rows * width // 8 + 20 * len(indices) + 20, np.uint8)
    waiting = np.empty(rows + 8, np.int32)
    written = pack_runs(np.ascontiguousarray(indices), repeats, width, waiting, out)
    return out[:written].tobytes()


def _packed_levels(levels: Int32s, width: int) -> bytes:
    return packed_runs(levels, np.ones(len(levels), np.int64), width)


def _with_size(levels: bytes) -> bytes:
    return struct.pack("<I", len(levels)) + levels
