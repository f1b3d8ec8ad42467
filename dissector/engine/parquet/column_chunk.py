"""
One column of a row group as pages.

A dictionary of its distinct values and their indices; where nearly all differ, the values.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import zstandard
from numpy.typing import NDArray

from dissector.engine.parquet.page_kernels import (
    DISTINCT,
    MANY,
    PRESENT,
    Dictionary,
    index_int32s,
    index_int64s,
    index_texts,
    pack_indices,
    pack_runs,
    write_plain,
)
from dissector.engine.parquet.parquet_types import ColumnType
from dissector.engine.parquet.row_groups import Column, Flags, Names, Numbers, Texts
from dissector.engine.parquet.thrift import Int, Value, varint
from dissector.engine.parquet.thrift import struct as thrift_struct
from dissector.engine.tables.column_types import Slices
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.engine.tables.polars_tables import escape_invalid_utf8
from dissector.kernel.arrays import Buffers

Int32s: TypeAlias = NDArray[np.int32]
Bytes: TypeAlias = NDArray[np.uint8]

_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_ZSTD = 6

_MAX_DISTINCT = 1 << 14
"""Values of a dictionary, of columns without repeats: the size of a processor's cache."""

_MAX_BOUND_BYTES = 64
"""Longer texts are not used as bounds: readers would not benefit."""

_LEVEL = 1
"""Of zstd: a sixth less work than its usual level, for files that are a twentieth larger."""


@dataclass(slots=True)
class Chunk:
    """
    An encoded column of a row group.

    Attributes:
        pages: Its pages, compressed.
        values: Number of its values, nulls included.
        plain_bytes: Bytes of the pages before compression, headers included.
        dictionary_bytes: Bytes of the dictionary page; 0 without one.
        encodings: The encodings in use.
        nulls: How many values are null.
        bounds: Least and greatest value, encoded; None where unknown.
    """

    pages: bytes
    values: int
    plain_bytes: int
    dictionary_bytes: int
    encodings: Sequence[int]
    nulls: int
    bounds: tuple[bytes, bytes] | None

    def metadata(self, name: str, physical: int, at: int) -> Value:
        """Return `ColumnMetaData` of a chunk that begins at an offset of the file."""
        low, high = self.bounds or (None, None)
        return {
            1: physical,
            2: list(self.encodings),
            3: [name],
            4: _ZSTD,
            5: Int(self.values, 64),
            6: Int(self.plain_bytes, 64),
            7: Int(len(self.pages), 64),
            9: Int(at + self.dictionary_bytes, 64),
            11: Int(at, 64) if self.dictionary_bytes else None,
            12: {3: Int(self.nulls, 64), 5: high, 6: low},
        }


@dataclass(slots=True)
class _Indexed:
    """
    Present values as indices into a dictionary.

    Attributes:
        indices: Of each present value, or run of such.
        repeats: Rows of each; None for one.
        plain: The dictionary, in its plain encoding.
        size: Its number of values.
        bounds: See `Chunk`.
    """

    indices: Int32s
    repeats: Ints | None
    plain: bytes
    size: int
    bounds: tuple[bytes, bytes] | None


def encode(column: Column, kind: ColumnType, rows: int) -> Chunk:
    """Return a column of a row group as pages."""
    match column:
        case Numbers():
            return _numbers(column, kind, rows)
        case Names():
            return _names(column, rows)
        case Texts():
            return _texts(column.slices, rows)


def _numbers(column: Numbers, kind: ColumnType, rows: int) -> Chunk:
    is_set = column.is_set
    if is_set is not None and is_set.all():
        is_set = None
    levels, nulls = _levels(is_set, column.repeats, rows)
    if nulls == rows:
        return _chunk(levels, rows, nulls, b"", None)
    if column.values.dtype.kind == "f":
        return _plain_numbers(column, is_set, kind, levels, nulls, rows)
    narrow = column.values.itemsize == 4
    values = np.ascontiguousarray(column.values, np.int32 if narrow else np.int64)
    most = len(values) if column.repeats is not None else min(len(values), _MAX_DISTINCT)
    found = _dictionary(len(values), most)
    index = index_int32s if narrow else index_int64s
    index(values, np.zeros(0, np.bool_) if is_set is None else is_set, found)
    distinct, present = int(found.counts[DISTINCT]), int(found.counts[PRESENT])
    if distinct == MANY:
        return _plain_numbers(column, is_set, kind, levels, nulls, rows)
    numbers = np.asarray(found.values)[:distinct]
    repeats = column.repeats
    if repeats is not None and is_set is not None:
        repeats = repeats[is_set]
    indexed = _Indexed(
        np.asarray(found.indices)[:present],
        repeats,
        numbers.astype(kind.item).tobytes(),
        distinct,
        _bounds(numbers, kind),
    )
    return _indexed_chunk(indexed, levels, nulls, rows)


def _plain_numbers(
    column: Numbers, is_set: Flags | None, kind: ColumnType, levels: bytes, nulls: int, rows: int
) -> Chunk:
    values, repeats = column.values, column.repeats
    if is_set is not None:
        values = values[is_set]
        repeats = None if repeats is None else repeats[is_set]
    if repeats is not None:
        values = np.repeat(values, repeats)
    return _chunk(levels, rows, nulls, values.astype(kind.item).tobytes(), _bounds(values, kind))


def _bounds(numbers: NDArray[Any], kind: ColumnType) -> tuple[bytes, bytes] | None:
    """Return the least and the greatest number; None for floats, which have several zeros."""
    if numbers.dtype.kind == "f" or not len(numbers):
        return None
    low, high = numbers.min(), numbers.max()
    return low.astype(kind.item).tobytes(), high.astype(kind.item).tobytes()


def _names(column: Names, rows: int) -> Chunk:
    codes = np.ascontiguousarray(column.codes, np.int64)
    found = _dictionary(len(codes), len(codes))
    index_int64s(codes, np.zeros(0, np.bool_), found)
    used = np.asarray(found.values)[: int(found.counts[DISTINCT])].tolist()
    texts = [None if code == NONE else column.texts[code] for code in used]
    places: dict[str, int] = {}
    place_of = [-1 if text is None else places.setdefault(text, len(places)) for text in texts]
    indices = np.array(place_of, np.int32)[np.asarray(found.indices)]
    repeats = column.repeats
    is_set = indices >= 0 if None in texts else None
    levels, nulls = _levels(is_set, repeats, rows)
    if nulls == rows:
        return _chunk(levels, rows, nulls, b"", None)
    if is_set is not None:
        indices = indices[is_set]
        repeats = None if repeats is None else repeats[is_set]
    contents = [escape_invalid_utf8(text).encode() for text in places]
    plain = b"".join(struct.pack("<I", len(each)) + each for each in contents)
    indexed = _Indexed(indices, repeats, plain, len(contents), _text_bounds(contents))
    return _indexed_chunk(indexed, levels, nulls, rows)


def _text_bounds(contents: list[bytes]) -> tuple[bytes, bytes] | None:
    low, high = min(contents), max(contents)
    return None if max(len(low), len(high)) > _MAX_BOUND_BYTES else (low, high)


def _texts(slices: Slices, rows: int) -> Chunk:
    is_set = slices.start != NONE
    levels, nulls = _levels(None if is_set.all() else is_set, None, rows)
    if nulls == rows:
        return _chunk(levels, rows, nulls, b"", None)
    buffers = slices.buffers
    texts = Buffers._make((buffers.data, buffers.carry_over, buffers.arena))
    start, length = np.ascontiguousarray(slices.start), np.ascontiguousarray(slices.length)
    found = _dictionary(rows, min(rows - nulls, _MAX_DISTINCT))
    index_texts(texts, start, length, NONE, found)
    distinct = int(found.counts[DISTINCT])
    if distinct == MANY:
        return _chunk(levels, rows, nulls, _plain_texts(texts, start, length), None)
    chosen = np.asarray(found.values)[:distinct]
    start, length = start[chosen], length[chosen]
    plain = _plain_texts(texts, start, length)
    indices = np.asarray(found.indices)[: rows - nulls]
    bounds = _text_bounds(_contents(plain)) if length.max() <= _MAX_BOUND_BYTES else None
    return _indexed_chunk(_Indexed(indices, None, plain, distinct, bounds), levels, nulls, rows)


def _plain_texts(texts: Buffers, start: Ints, length: Ints) -> bytes:
    present = start != NONE
    out = np.empty(4 * int(present.sum()) + int(length[present].sum()), np.uint8)
    write_plain(texts, start, length, NONE, out)
    return out.tobytes()


def _contents(plain: bytes) -> list[bytes]:
    """Return the texts of a plain encoding."""
    found, at = [], 0
    while at < len(plain):
        end = at + 4 + int.from_bytes(plain[at : at + 4], "little")
        found.append(plain[at + 4 : end])
        at = end
    return found


def _dictionary(values: int, most: int) -> Dictionary:
    """Return an empty dictionary with room for so many distinct ones of some values."""
    slots = 1 << max(2 * most - 1, 1).bit_length()
    return Dictionary._make(
        (
            np.zeros(slots, np.int32),
            np.empty(most, np.int64),
            np.empty(values, np.int32),
            np.zeros(2, np.int64),
        )
    )


def _levels(is_set: Flags | None, repeats: Ints | None, rows: int) -> tuple[bytes, int]:
    """Return the definition levels, 0 for null and 1 for others, and the number of nulls."""
    if is_set is None:
        return varint(rows << 1) + b"\x01", 0
    if repeats is not None:
        nulls = rows - int(repeats[is_set].sum())
        return _runs(is_set.astype(np.int32), repeats, 1), nulls
    nulls = rows - int(np.count_nonzero(is_set))
    if nulls == rows:
        return varint(rows << 1) + b"\x00", nulls
    groups = (rows + 7) // 8
    return varint(groups << 1 | 1) + np.packbits(is_set, bitorder="little").tobytes(), nulls


def _runs(indices: Int32s, repeats: Ints, width: int) -> bytes:
    rows = int(repeats.sum())
    # Each run ends at most one bit-packed run, and is one itself.
    out = np.empty(rows * width // 8 + 20 * len(indices) + 20, np.uint8)
    waiting = np.empty(rows + 8, np.int32)
    written = pack_runs(np.ascontiguousarray(indices), repeats, width, waiting, out)
    return out[:written].tobytes()


def _indexed_chunk(indexed: _Indexed, levels: bytes, nulls: int, rows: int) -> Chunk:
    width = (indexed.size - 1).bit_length()
    if indexed.repeats is not None:
        packed = _runs(indexed.indices, indexed.repeats, width)
    elif width == 0:
        packed = varint(len(indexed.indices) << 1)
    else:
        out = np.empty((len(indexed.indices) + 7) // 8 * width + 10, np.uint8)
        packed = out[: pack_indices(indexed.indices, width, out)].tobytes()
    return _chunk(
        levels, rows, nulls, bytes([width]) + packed, indexed.bounds, (indexed.plain, indexed.size)
    )


def _chunk(
    levels: bytes,
    rows: int,
    nulls: int,
    values: bytes,
    bounds: tuple[bytes, bytes] | None,
    dictionary: tuple[bytes, int] | None = None,
) -> Chunk:
    """Return the pages of a column: levels and values, after the dictionary if any."""
    encoding = _PLAIN if dictionary is None else _RLE_DICTIONARY
    content = struct.pack("<I", len(levels)) + levels + values
    page = _page(_DATA_PAGE, content, {5: {1: rows, 2: encoding, 3: _RLE, 4: _RLE}})
    encodings = [_PLAIN, _RLE]
    first = b""
    plain_bytes = page[1]
    if dictionary is not None:
        first, size = _page(_DICTIONARY_PAGE, dictionary[0], {7: {1: dictionary[1], 2: _PLAIN}})
        plain_bytes += size
        encodings.append(_RLE_DICTIONARY)
    return Chunk(first + page[0], rows, plain_bytes, len(first), encodings, nulls, bounds)


def _page(kind: int, content: bytes, header: dict[int, Value]) -> tuple[bytes, int]:
    """Return a page, and its bytes before compression."""
    compressed = zstandard.ZstdCompressor(level=_LEVEL).compress(content)
    fields: dict[int, Value] = {1: kind, 2: len(content), 3: len(compressed)}
    head = thrift_struct(fields | header)
    return head + compressed, len(head) + len(content)
