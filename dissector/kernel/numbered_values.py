"""
A small integer for each of many owners, by their numbers, which are given out in order.

Most owners of a long run are forgotten, and some of the first stay: the values of the newest
numbers are in a table without holes, those of the others in a list that is searched.
"""

from __future__ import annotations

from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

_SPARE = 4096
"""The table is made anew when this many more than half of its numbers have no value."""

Numbers: TypeAlias = "NDArray[np.int64]"
Values: TypeAlias = "NDArray[Any]"


class NumberedValues:
    """
    The values of numbers; `nothing` of all without one.

    Args:
        dtype: The type of the values.
        nothing: The value of a number that has none.
    """

    def __init__(self, dtype: DTypeLike, nothing: int) -> None:
        self._nothing = nothing
        self._begin = 0
        self._table: Values = np.zeros(0, dtype)
        self._old: Numbers = np.zeros(0, np.int64)
        self._old_values: Values = np.zeros(0, dtype)

    def __len__(self) -> int:
        """The end of the numbers for which there is room."""
        return self._begin + len(self._table)

    @property
    def nbytes(self) -> int:
        """The memory of all."""
        return self._table.nbytes + self._old.nbytes + self._old_values.nbytes

    def number_up_to(self, count: int) -> None:
        """Make room for numbers below this one; the table grows by an eighth."""
        if count > len(self):
            size = max(count - self._begin, len(self._table) * 9 // 8)
            wider = np.full(size, self._nothing, self._table.dtype)
            wider[: len(self._table)] = self._table
            self._table = wider

    @overload
    def __getitem__(self, numbers: int) -> int: ...

    @overload
    def __getitem__(self, numbers: Numbers) -> Values: ...

    def __getitem__(self, numbers: Numbers | int) -> Values | int:
        """Return the values of numbers, for which there must be room."""
        if isinstance(numbers, int):
            return int(self[np.array([numbers])][0])
        if not self._begin:
            found: Values = self._table[numbers]
            return found
        at, is_old = numbers - self._begin, numbers < self._begin
        values: Values = self._table[np.where(is_old, 0, at)] if len(self._table) else at
        if is_old.any():
            values = np.where(is_old, self._nothing, values).astype(self._table.dtype)
            place, is_here = self._places_of(numbers)
            values[is_here] = self._old_values[place[is_here]]
        return values

    def __setitem__(self, numbers: Numbers, values: Values | int) -> None:
        """Set the values of numbers, for which there must be room; equal ones get equal values."""
        is_new = numbers >= self._begin
        every = np.broadcast_to(np.asarray(values, self._table.dtype), np.shape(numbers))
        self._table[numbers[is_new] - self._begin] = every[is_new]
        if is_new.all():
            return
        old, first = np.unique(numbers[~is_new], return_index=True)
        of_old = every[~is_new][first]
        is_kept = ~np.isin(self._old, old)
        has_value = of_old != self._nothing
        joined = np.concatenate((self._old[is_kept], old[has_value]))
        order = np.argsort(joined, kind="stable")
        self._old = joined[order]
        self._old_values = np.concatenate((self._old_values[is_kept], of_old[has_value]))[order]

    def items(self) -> tuple[Numbers, Values]:
        """Return all numbers with a value, in order, and the values."""
        rows = np.flatnonzero(self._table != self._nothing)
        numbers = np.concatenate((self._old, self._begin + rows))
        return numbers, np.concatenate((self._old_values, self._table[rows]))

    def forget(self, numbers: Numbers) -> None:
        """Set numbers to nothing that will not be asked for again, nor any without a value."""
        self[numbers] = self._nothing
        with_value = int(np.count_nonzero(self._table != self._nothing))
        if len(self._table) > 2 * with_value + _SPARE:
            end = len(self)
            self._old, self._old_values = self.items()
            self._begin, self._table = end, self._table[:0].copy()

    def renumber(self, numbers: Numbers) -> None:
        """Keep only these numbers, in order; each gets its index as its new number."""
        self.number_up_to(int(numbers.max(initial=-1)) + 1)
        values = self[numbers]
        self.clear()
        self._table = values

    def clear(self) -> None:
        """Forget all."""
        self.__init__(self._table.dtype, self._nothing)  # type: ignore[misc]

    def _places_of(self, numbers: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
        """Return the places of numbers in the list, and which of them are there."""
        place = np.minimum(np.searchsorted(self._old, numbers), max(len(self._old) - 1, 0))
        if not len(self._old):
            return place, np.zeros(len(numbers), np.bool_)
        return place, self._old[place] == numbers
