"""Replaces many contents at once: each distinct one by a function, and then all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.facts.interning import FULL, InternTable
from dissector.engine.tables.exchange_table import Ints
from dissector.redaction.pseudonyms.content_places import (
    ContentArrays,
    number_contents,
    place_contents,
)

Bytes: TypeAlias = NDArray[np.uint8]
Bools: TypeAlias = NDArray[np.bool_]
Buffers: TypeAlias = tuple[Bytes, Bytes]
"""Bytes, and more of them at addresses from the end of the first on."""
Replace: TypeAlias = Callable[[bytes], bytes]


@dataclass(slots=True, eq=False, repr=False)
class Places:
    """
    Where contents are.

    Attributes:
        start: Address of each content.
        length: Its bytes.
        kind: The number of the function that replaces it; None: the first one replaces all.
    """

    start: Ints
    length: Ints
    kind: Ints | None = None


def replace_contents(
    source: Buffers, places: Places, at: Ints, replacements: Sequence[Replace], target: Buffers
) -> Bools:
    """
    Write the replacements of contents.

    Args:
        source: The bytes.
        places: The contents.
        at: The address of each one's replacement in `target`.
        replacements: Functions that replace a content by one as long; another length becomes
            zeros.
        target: Receives the replacements.

    Returns:
        Which contents were replaced: not the ones that only crafted bytes cause, see `intern`.
    """
    count = len(places.start)
    kind = np.zeros(count, np.int64) if places.kind is None else places.kind
    columns = [np.ascontiguousarray(each, np.int64) for each in (places.start, places.length, kind)]
    entry = np.full(count, FULL, np.int64)
    contents = ContentArrays._make((*columns, np.ascontiguousarray(at, np.int64), entry))
    known, row = InternTable.of(np.uint8), 0
    while row < count:
        row = number_contents(*source, contents, row, known.index, known.pool)
        if row < count:
            known.grow()
    is_done: Bools = entry >= 0
    if not is_done.all():
        contents = ContentArrays._make(np.asarray(each)[is_done] for each in contents)
    place_contents(*target, contents, known.index, _replaced(known, replacements))
    return is_done


def _replaced(known: InternTable, replacements: Sequence[Replace]) -> Bytes:
    """Return the replacements of distinct contents, where their pool has the originals."""
    out = np.zeros(len(known.pool), np.uint8)
    for start, length, kind in known.entries[: len(known)][["start", "length", "kind"]].tolist():
        new = replacements[kind](known.pool[start : start + length].tobytes())
        if len(new) == length:
            out[start : start + length] = np.frombuffer(new, np.uint8)
    return out
