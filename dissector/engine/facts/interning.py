"""
Interning: numbers for repeated texts and lists of integers, in the order of appearance.

A hash table with open addressing leads from content to *entry*; the contents lie one behind another
in a pool. Kernels fill both. They allocate no memory: a kernel stops when the space is used up, the
caller grows the table (`grow`) and runs it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8, AnyColumn
from dissector.kernel.named_rows import NamedRow, RowArray, Rows, dtype_of

Ints: TypeAlias = NDArray[np.int64]

FULL, TOO_MANY_COLLISIONS = -1, -2
"""
Instead of an entry: no space for a new one; too many collisions, which only crafted bytes cause.
"""

MAX_PROBES = 256


class InternEntry(NamedRow):
    """
    An entry of a table.

    Attributes:
        hash: The hash of its content.
        start: Place of the content in the pool.
        length: Its length.
        kind: Its kind; equal contents of two kinds have two entries.
        seen: For the caller: the last exchange with it.
        last_name: For the caller: of a topic id the last name; -1 for none.
    """

    hash: int
    start: int
    length: int
    kind: int
    seen: int
    last_name: int


class InternUse(NamedRow):
    """
    How much of a table is used.

    Attributes:
        entries: Its entries.
        pool: The used length of the pool.
    """

    entries: int
    pool: int


class InternIndex(NamedTuple):
    """The arrays of an `InternTable`, but for its pool."""

    slots: I64
    entries: Rows[InternEntry]
    used: InternUse


@dataclass(slots=True, eq=False, repr=False)
class InternTable:
    """
    The state of one table.

    Attributes:
        slots: Number of the entry + 1; 0 where free.
        entries: The entries, `InternEntry`.
        pool: The contents.
        used: How much of these is used, `InternUse`.
    """

    slots: Ints
    entries: RowArray
    pool: NDArray[Any]
    used: RowArray

    @classmethod
    def of(cls, kind: type, entries: int = 1024, pool: int = 16384) -> InternTable:
        """Return an empty table of bytes (`np.uint8`) or integers."""
        return cls(
            slots=np.zeros(entries * 2, np.int64),
            entries=np.zeros(entries, dtype_of(InternEntry)),
            pool=np.zeros(pool, kind),
            used=np.zeros((), dtype_of(InternUse)),
        )

    @property
    def index(self) -> InternIndex:
        """Arrays for kernels, besides the pool."""
        arrays = self.slots, self.entries, self.used
        return InternIndex._make(arrays)

    def __len__(self) -> int:
        return int(self.used["entries"])

    def grow(self) -> None:
        """Double the pool, and the space for entries where that is short."""
        self.pool = np.concatenate((self.pool, np.zeros_like(self.pool)))
        if len(self) * 2 >= len(self.entries):
            self.entries = np.concatenate((self.entries, np.zeros_like(self.entries)))
            self.slots = np.zeros(len(self.slots) * 2, np.int64)
            _refill(self.entries, len(self), self.slots)

    def contents(self, kind: int) -> tuple[Ints, list[NDArray[Any]]]:
        """
        Return the contents of one kind in order.

        Returns:
            For each entry its number among them, from 1, at its own number + 1 (0 stays 0, for rows
            without one); and the contents.
        """
        used = self.entries[: len(self)]
        chosen = np.flatnonzero(used["kind"] == kind)
        numbers = np.zeros(len(used) + 1, np.int64)
        numbers[chosen + 1] = np.arange(1, len(chosen) + 1)
        places = used[["start", "length"]][chosen].tolist()
        return numbers, [self.pool[start : start + length] for start, length in places]


@device_function
def hash_bytes(content: U8, at: int, length: int, kind: int) -> int:
    """Return the hash of some bytes, eight at a time."""
    key = (kind + 1) * 1099511628211 + length
    end = at + length
    while end - at >= 8:
        word: int = (
            content[at]
            | content[at + 1] << 8
            | content[at + 2] << 16
            | content[at + 3] << 24
            | content[at + 4] << 32
            | content[at + 5] << 40
            | content[at + 6] << 48
            | content[at + 7] << 56
        )
        key = ((key ^ word) * 6364136223846793005) & 0x7FFFFFFFFFFFFFFF
        key ^= key >> 32
        at += 8
    word = 0
    while at < end:
        word = word << 8 | content[at]
        at += 1
    key = ((key ^ word) * 6364136223846793005) & 0x7FFFFFFFFFFFFFFF
    return key ^ key >> 32


@device_function
def hash_integers(content: I64, count: int, kind: int) -> int:
    """Return the hash of integers."""
    key = (kind + 1) * 1099511628211 + count
    for i in range(count):
        key = ((key ^ content[i]) * 6364136223846793005) & 0x7FFFFFFFFFFFFFFF
        key ^= key >> 32
    return key


@device_function
def intern(
    content: AnyColumn,
    at: int,
    length: int,
    kind: int,
    key: int,
    index: InternIndex,
    pool: AnyColumn,
) -> int:
    """Return the entry of a content with its hash; a new one if needed."""
    slots, entries, used = index.slots, index.entries, index.used
    mask = len(slots) - 1
    slot = key & mask
    for _ in range(MAX_PROBES):
        entry = slots[slot] - 1
        if entry < 0:
            entry, start = used.entries, used.pool
            if entry >= len(entries) or start + length > len(pool):
                return FULL
            for i in range(length):
                pool[start + i] = content[at + i]
            new = entries[entry]
            new.hash = key
            new.start = start
            new.length = length
            new.kind = kind
            new.last_name = -1
            slots[slot] = entry + 1
            used.entries = entry + 1
            used.pool = start + length
            return entry
        known = entries[entry]
        if known.hash == key and known.length == length and known.kind == kind:
            start = known.start
            i = 0
            while i < length and pool[start + i] == content[at + i]:
                i += 1
            if i == length:
                return entry
        slot = (slot + 1) & mask
    return TOO_MANY_COLLISIONS


@Kernel
def _refill(entries: Rows[InternEntry], count: int, slots: I64) -> None:
    """Insert entries into free slots."""
    mask = len(slots) - 1
    for entry in range(count):
        slot = entries[entry].hash & mask
        while slots[slot]:
            slot = (slot + 1) & mask
        slots[slot] = entry + 1
