"""Order of the values of a column of bytes, without an object for each value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from browse.rows.byte_spool import SpooledBytes
from dissector.engine.tables.column_types import Slices
from dissector.engine.tables.exchange_table import NONE, Ints

_WORD = 8

_Words: TypeAlias = NDArray[np.uint64]


def byte_ranks(parts: Sequence[SpooledBytes]) -> Ints:
    """
    Return the rank of each value of all parts; equal values have equal ranks; NONE for null.

    Hashes find equal values. The distinct ones are compared eight bytes at a time, as far as these
    are equal.
    """
    hashes = np.concatenate([_hashes(part.unpack()) for part in parts])
    _, first, index = np.unique(hashes, return_index=True, return_inverse=True)
    ranks, rows, at = np.zeros(len(hashes), np.int64), np.sort(first), 0
    while len(rows):
        words, left = _words_of(parts, rows, at)
        # One more than a word: the value goes on.
        left = np.minimum(left, _WORD + 1)
        order = np.lexsort((left, words, ranks[rows]))
        rows, words, left = rows[order], words[order], left[order]
        is_alike = _split(ranks, rows, words, left)
        rows = np.sort(rows[is_alike & (left > _WORD)])
        at += _WORD
    return np.where(hashes == NONE, NONE, ranks[first][index])


def _hashes(column: Slices) -> Ints:
    """Return a hash of each value; NONE for null."""
    content = column.buffers.data.tobytes()
    places = zip(column.start.tolist(), column.length.tolist(), strict=True)
    found = (NONE if at == NONE else hash(content[at : at + count]) for at, count in places)
    return np.fromiter(found, np.int64, len(column))


def _split(ranks: Ints, rows: Ints, words: _Words, left: Ints) -> NDArray[np.bool_]:
    """Split the ranks of sorted rows by their words; return a mask of rows that are still equal."""
    before = ranks[rows]
    begins_before = np.append(True, before[1:] != before[:-1])
    begins = begins_before.copy()
    begins[1:] |= (words[1:] != words[:-1]) | (left[1:] != left[:-1])
    index = np.arange(len(rows))
    first_before = np.maximum.accumulate(np.where(begins_before, index, 0))
    first = np.maximum.accumulate(np.where(begins, index, 0))
    ranks[rows] = before + first - first_before
    is_alike: NDArray[np.bool_] = ~(begins & np.append(begins[1:], True))
    return is_alike


def _words_of(parts: Sequence[SpooledBytes], rows: Ints, at: int) -> tuple[_Words, Ints]:
    """Return the next word of rows, and the number of remaining bytes; NONE for null."""
    ends = np.cumsum([len(each) for each in parts])
    cuts = np.searchsorted(rows, ends)
    found: list[tuple[_Words, Ints]] = []
    first = begin = 0
    for part, cut, end in zip(parts, cuts.tolist(), ends.tolist(), strict=True):
        if first < cut:
            found.append(_words(part.unpack(rows[first:cut] - begin), at))
        first, begin = cut, end
    words, left = zip(*found, strict=True)
    return np.concatenate(words), np.concatenate(left)


def _words(column: Slices, at: int) -> tuple[_Words, Ints]:
    left = np.where(column.start == NONE, NONE, np.maximum(column.length - at, 0))
    words = np.zeros(len(column), np.uint64)
    for place in range(_WORD):
        has_byte = np.flatnonzero(left > place)
        values = column.buffers.data[column.start[has_byte] + (at + place)].astype(np.uint64)
        words[has_byte] |= values << np.uint64(8 * (_WORD - 1 - place))
    return words, left
