"""The distinct values of a column, and which of them each row has."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.parquet.page_kernels import MANY, Dictionary, ValueCounts, index_texts
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.kernel.arrays import Buffers
from dissector.kernel.named_rows import dtype_of

Int32s: TypeAlias = NDArray[np.int32]

MAX_DISTINCT = 1 << 14
"""Values of a dictionary, of columns without repeats: the size of a processor's cache."""


def new_dictionary(values: int, most: int) -> Dictionary:
    """Return an empty dictionary with a capacity for distinct values."""
    slots = 1 << max(2 * most - 1, 1).bit_length()
    return Dictionary._make(
        (
            np.zeros(slots, np.int32),
            np.empty(most, np.int64),
            np.empty(values, np.int32),
            np.zeros((), dtype_of(ValueCounts)),
        )
    )


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
