"""Values at a path of many rows, for tests of filters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class FieldValues(NamedTuple):
    """
    Values at a path; a row has several of them, or none.

    Attributes:
        rows: The row of each value, as its index among those that were asked for.
        code: The index of each value among the distinct ones.
        values: The distinct values, or an array of numbers.
    """

    rows: NDArray[np.int64]
    code: NDArray[np.int64]
    values: Sequence[object] | NDArray[Any]


def field_values(found: Sequence[Sequence[object]]) -> FieldValues:
    """Return the values of each row as one list."""
    flat = list(chain.from_iterable(found))
    rows = np.repeat(np.arange(len(found)), np.fromiter(map(len, found), np.int64, len(found)))
    return FieldValues(rows, np.arange(len(flat)), flat)
