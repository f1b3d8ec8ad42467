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

from dissector.engine.parquet.levels import ListPlaces, flat_levels, list_places, packed_runs
from dissector.engine.parquet.page_kernels import (
    index_int32s,
    index_int64s,
    pack_indices,
    write_plain,
)
from dissector.engine.parquet.parquet_types import BOOLEAN, ColumnType, FileType, ListType
from dissector.engine.parquet.row_groups import Column, Flags, Lists, Names, Numbers, Texts, Values
from dissector.engine.parquet.thrift import Int, Value, varint
from dissector.engine.parquet.thrift import struct as thrift_struct
from dissector.engine.tables.column_types import Slices
from dissector.engine.tables.dictionaries import (
    MANY,
    MAX_DISTINCT,
    Int32s,
    counts_of,
    distinct_texts,
    new_dictionary,
)
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.engine.tables.polars_tables import escape_invalid_utf8
from dissector.kernel.arrays import Buffers

Bytes: TypeAlias = NDArray[np.uint8]

_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_ZSTD = 6

_MAX_BOUND_BYTES = 64
"""Maximum length of bounds: readers would not benefit from longer ones."""

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
        nulls: Number of null values.
        bounds: Least and greatest value, encoded; None where unknown.
    """

    pages: bytes
    values: int
    plain_bytes: int
    dictionary_bytes: int
    encodings: Sequence[int]
    nulls: int
    bounds: tuple[bytes, bytes] | None

    def metadata(self, path: list[str], physical: int, at: int) -> Value:
        """Return `ColumnMetaData` of a chunk that begins at an offset of the file."""
        low, high = self.bounds or (None, None)
        return {
            1: physical,
            2: list(self.encodings),
            3: path,
            4: _ZSTD,
            5: Int(self.values, 64),
            6: Int(self.plain_bytes, 64),
            7: Int(len(self.pages), 64),
            9: Int(at + self.dictionary_bytes, 64),
            11: Int(at, 64) if self.dictionary_bytes else None,
            12: {3: Int(self.nulls, 64), 5: high, 6: low},
        }


@dataclass(slots=True)
class _Encoded:
    """
    The values of a column that are not null.

    Attributes:
        is_set: Mask of non-null values, or of runs of them; None for all.
        content: The values, or their indices.
        bounds: See `Chunk`.
        dictionary: The distinct values, and their number; None without a dictionary.
    """

    is_set: Flags | None
    content: bytes = b""
    bounds: tuple[bytes, bytes] | None = None
    dictionary: tuple[bytes, int] | None = None


def encode(column: Column, kind: FileType, rows: int) -> list[Chunk]:
    """Return a column of a row group as pages, a chunk for each field of lists."""
    if isinstance(column, Lists):
        assert isinstance(kind, ListType)
        places = list_places(column, in_struct="" not in kind.fields)
        return [
            _in_lists(_encoded(column.fields[name], each), places)
            for name, each in kind.fields.items()
        ]
    assert isinstance(kind, ColumnType)
    values = _encoded(column, kind)
    levels, nulls = flat_levels(values.is_set, column.repeats, rows)
    return [_chunk(levels, rows, nulls, values)]


def _in_lists(values: _Encoded, places: ListPlaces) -> Chunk:
    levels, nulls = places.levels(values.is_set)
    return _chunk(levels, places.entries, nulls, values)


def _encoded(column: Values, kind: ColumnType) -> _Encoded:
    match column:
        case Numbers():
            return _numbers(column, kind)
        case Names():
            return _names(column)
        case Texts():
            return _texts(column.slices)


def _numbers(column: Numbers, kind: ColumnType) -> _Encoded:
    is_set = None if column.is_set is None or column.is_set.all() else column.is_set
    if is_set is not None and not is_set.any():
        return _Encoded(is_set)
    if kind.physical == BOOLEAN or column.values.dtype.kind == "f":
        return _plain_numbers(column, is_set, kind)
    narrow = column.values.itemsize == 4
    values = np.ascontiguousarray(column.values, np.int32 if narrow else np.int64)
    most = len(values) if column.repeats is not None else min(len(values), MAX_DISTINCT)
    found = new_dictionary(len(values), most)
    index = index_int32s if narrow else index_int64s
    index(values, np.zeros(0, np.bool_) if is_set is None else is_set, found)
    distinct, present = counts_of(found)
    if distinct == MANY:
        return _plain_numbers(column, is_set, kind)
    numbers = np.asarray(found.values)[:distinct]
    return _Encoded(
        is_set,
        _packed(np.asarray(found.indices)[:present], _present(column.repeats, is_set), distinct),
        _bounds(numbers, kind),
        (numbers.astype(kind.item).tobytes(), distinct),
    )


def _present(repeats: Ints | None, is_set: Flags | None) -> Ints | None:
    return repeats if repeats is None or is_set is None else repeats[is_set]


def _plain_numbers(column: Numbers, is_set: Flags | None, kind: ColumnType) -> _Encoded:
    values, repeats = column.values, _present(column.repeats, is_set)
    if is_set is not None:
        values = values[is_set]
    if repeats is not None:
        values = np.repeat(values, repeats)
    if kind.physical == BOOLEAN:
        return _Encoded(is_set, np.packbits(values.astype(np.bool_), bitorder="little").tobytes())
    return _Encoded(is_set, values.astype(kind.item).tobytes(), _bounds(values, kind))


def _bounds(numbers: NDArray[Any], kind: ColumnType) -> tuple[bytes, bytes] | None:
    """Return minimum and maximum; None for floats, which have several zeros."""
    if numbers.dtype.kind == "f" or not len(numbers):
        return None
    low, high = numbers.min(), numbers.max()
    return low.astype(kind.item).tobytes(), high.astype(kind.item).tobytes()


def _names(column: Names) -> _Encoded:
    codes = np.ascontiguousarray(column.codes, np.int64)
    found = new_dictionary(len(codes), len(codes))
    index_int64s(codes, np.zeros(0, np.bool_), found)
    used = np.asarray(found.values)[: counts_of(found)[0]].tolist()
    texts = [None if code == NONE else column.texts[code] for code in used]
    places: dict[str, int] = {}
    place_of = [-1 if text is None else places.setdefault(text, len(places)) for text in texts]
    indices = np.array(place_of, np.int32)[np.asarray(found.indices)]
    is_set = indices >= 0 if None in texts else None
    if not places:
        return _Encoded(is_set)
    if is_set is not None:
        indices = indices[is_set]
    contents = [escape_invalid_utf8(text).encode() for text in places]
    plain = b"".join(struct.pack("<I", len(each)) + each for each in contents)
    packed = _packed(indices, _present(column.repeats, is_set), len(contents))
    return _Encoded(is_set, packed, _text_bounds(contents), (plain, len(contents)))


def _text_bounds(contents: list[bytes]) -> tuple[bytes, bytes] | None:
    low, high = min(contents), max(contents)
    return None if max(len(low), len(high)) > _MAX_BOUND_BYTES else (low, high)


def _texts(slices: Slices) -> _Encoded:
    flags = slices.start != NONE
    present = int(np.count_nonzero(flags))
    is_set = None if present == len(slices) else flags
    if present == 0:
        return _Encoded(is_set)
    texts = slices.buffers.for_kernels
    start, length = np.ascontiguousarray(slices.start), np.ascontiguousarray(slices.length)
    found = distinct_texts(texts, start, length, min(present, MAX_DISTINCT))
    if found is None:
        return _Encoded(is_set, _plain_texts(texts, start, length))
    indices, chosen = found
    start, length = start[chosen], length[chosen]
    plain = _plain_texts(texts, start, length)
    bounds = _text_bounds(_contents(plain)) if length.max() <= _MAX_BOUND_BYTES else None
    return _Encoded(is_set, _packed(indices, None, len(chosen)), bounds, (plain, len(chosen)))


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


def _packed(indices: Int32s, repeats: Ints | None, distinct: int) -> bytes:
    """Return indices behind their number of bits."""
    width = (distinct - 1).bit_length()
    head = bytes([width])
    if repeats is not None:
        return head + packed_runs(indices, repeats, width)
    if width == 0:
        return head + varint(len(indices) << 1)
    out = np.empty((len(indices) + 7) // 8 * width + 10, np.uint8)
    return head + out[: pack_indices(indices, width, out)].tobytes()


def _chunk(levels: bytes, values: int, nulls: int, encoded: _Encoded) -> Chunk:
    """Return the pages of a column: levels and values, after the dictionary if any."""
    dictionary = encoded.dictionary
    encoding = _PLAIN if dictionary is None else _RLE_DICTIONARY
    header: dict[int, Value] = {5: {1: values, 2: encoding, 3: _RLE, 4: _RLE}}
    page, plain_bytes = _page(_DATA_PAGE, levels + encoded.content, header)
    encodings = [_PLAIN, _RLE]
    first = b""
    if dictionary is not None:
        first, size = _page(_DICTIONARY_PAGE, dictionary[0], {7: {1: dictionary[1], 2: _PLAIN}})
        plain_bytes += size
        encodings.append(_RLE_DICTIONARY)
    return Chunk(first + page, values, plain_bytes, len(first), encodings, nulls, encoded.bounds)


def _page(kind: int, content: bytes, header: dict[int, Value]) -> tuple[bytes, int]:
    """Return a page, and its bytes before compression."""
    compressed = zstandard.ZstdCompressor(level=_LEVEL).compress(content)
    fields: dict[int, Value] = {1: kind, 2: len(content), 3: len(compressed)}
    head = thrift_struct(fields | header)
    return head + compressed, len(head) + len(content)
