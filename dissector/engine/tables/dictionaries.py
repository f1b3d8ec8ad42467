"""The distinct values of a column, found by small hash tables, and which of them each row has."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.exchange_table import Exchanges, Ints
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I32, I64, NONE, Buffers
from dissector.kernel.named_rows import NamedRow, dtype_of

Int32s: TypeAlias = NDArray[np.int32]

MAX_DISTINCT = 1 << 14
"""Values of a dictionary, of columns without repeats: the size of a processor's cache."""

MANY = -1
"""The number of distinct values exceeds the dictionary."""

HASH_MASK = 0xFFFFFFFF

_SECRET = int.from_bytes(os.urandom(4), "big")
"""Values have other hashes in each process, so that no capture can be made to have equal ones."""


class ValueCounts(NamedRow):
    """
    What was found in a column.

    Attributes:
        distinct: Number of distinct values; MANY if they exceed the dictionary.
        present: Number of values that are present.
        secret: What hashes depend on.
    """

    distinct: int
    present: int
    secret: int


class Dictionary(NamedTuple):
    """
    The distinct values of a column in the order of their first occurrence.

    Attributes:
        slots: A hash table of places in `values` plus one, 0 for free; its size is a power of two.
        values: The values, or the rows of texts.
        indices: Receives the place of each value that is present.
        counts: Receives the numbers of values.
    """

    slots: I32
    values: I64
    indices: I32
    counts: ValueCounts


def new_dictionary(values: int, most: int) -> Dictionary:
    """Return an empty dictionary with a capacity for distinct values."""
    slots = 1 << max(2 * most - 1, 1).bit_length()
    arrays = np.zeros(slots, np.int32), np.empty(most, np.int64), np.empty(values, np.int32)
    return Dictionary._make((*arrays, np.array((0, 0, _SECRET), dtype_of(ValueCounts))))


def counts_of(found: Dictionary) -> tuple[int, int]:
    """Return the numbers of distinct and of present values."""
    counts: Any = found.counts
    return int(counts["distinct"]), int(counts["present"])


def distinct_texts(
    texts: Buffers, start: Ints, length: Ints, most: int = MAX_DISTINCT
) -> tuple[Int32s, Ints] | None:
    """
    Find the distinct texts of a column.

    Args:
        texts: The bytes that they refer to.
        start: Where each begins; NONE for null.
        length: Its bytes.
        most: How many there may be.

    Returns:
        Of each that is present, which of the distinct ones it is; and the first row of each of
        these, in order. None if there are more.
    """
    found = new_dictionary(len(start), most)
    index_texts(texts, start, length, NONE, found)
    distinct, present = counts_of(found)
    if distinct == MANY:
        return None
    return np.asarray(found.indices)[:present], np.asarray(found.values)[:distinct]


def numbered_texts(table: Exchanges, start: Ints, length: Ints) -> tuple[Ints, Ints]:
    """
    Find the distinct texts among some in the frames of a table.

    Returns:
        Of each, which of the distinct ones it is; and the first place of each of these, in order.
    """
    in_data = start < len(table.data)
    end = len(table.data) + np.where(in_data, 0, len(table.carry_over))
    length = np.where(start < 0, 0, np.clip(length, 0, np.maximum(end - start, 0)))
    start = np.where(length == 0, 0, start)
    texts = Buffers._make((table.data, table.carry_over, np.zeros(0, np.uint8)))
    found = distinct_texts(texts, start, length)
    if found is not None:
        return found[0].astype(np.int64), found[1]
    numbers: dict[bytes, int] = {}
    places = zip(start.tolist(), length.tolist(), strict=True)
    codes = [numbers.setdefault(table.bytes_at(*place), len(numbers)) for place in places]
    return np.array(codes, np.int64), np.unique(codes, return_index=True)[1]


@Kernel
def index_texts(texts: Buffers, start: I64, length: I64, null: int, found: Dictionary) -> None:
    """Find the distinct texts; `values` receives their rows."""
    slots, rows, indices = found.slots, found.values, found.indices
    mask = len(slots) - 1
    count = 0
    present = 0
    for row in range(len(start)):
        if start[row] == null:
            continue
        at = hash_of(texts, start[row], length[row], found.counts.secret) & mask
        place = slots[at]
        while place != 0:
            other = rows[place - 1]
            if length[other] == length[row] and are_equal(
                texts, start[other], start[row], length[row]
            ):
                break
            at = at + 1 & mask
            place = slots[at]
        if place == 0:
            if count == len(rows):
                found.counts.distinct = MANY
                return
            rows[count] = row
            count += 1
            slots[at] = count
            place = count
        indices[present] = place - 1
        present += 1
    found.counts.distinct = count
    found.counts.present = present


@device_function
def byte_at(texts: Buffers, address: int) -> int:
    """Return a byte of the window."""
    if address < len(texts.data):
        return texts.data[address]
    address -= len(texts.data)
    if address < len(texts.carry_over):
        return texts.carry_over[address]
    return texts.arena[address - len(texts.carry_over)]


@device_function
def hash_of(texts: Buffers, address: int, length: int, secret: int) -> int:
    """Return a hash of 32 bits."""
    hashed = length ^ secret
    for i in range(length):
        hashed = (hashed ^ byte_at(texts, address + i)) * 16777619 & HASH_MASK
    return hashed ^ hashed >> 15


@device_function
def are_equal(texts: Buffers, one: int, other: int, length: int) -> bool:
    """Compare two texts of one length."""
    i = 0 if one != other else length
    while i < length and byte_at(texts, one + i) == byte_at(texts, other + i):
        i += 1
    return i == length
