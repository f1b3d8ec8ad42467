"""Totals of rows by keys, added up window by window: all columns are arrays of integers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import TypeAlias

import numpy as np

from dissector.engine.tables.exchange_table import Ints

Total: TypeAlias = Mapping[str, int]
"""The keys and values of one group."""

_MAX_LOOSE_ROWS = 1 << 16
"""Rows of several windows that wait for being added up."""

MOMENTS_LEAST, MOMENTS_MOST = ("first_ns", "first_packet"), ("last_ns", "last_packet")
"""The columns of time and packet, see `Moments`."""


class Tally:
    """
    Groups of rows with the same keys: sums, least and highest values.

    Attributes:
        keys: Names of the keys.
        sums: Names of columns that are added.
        least: Names of columns of which the least value remains.
        most: Names of columns of which the highest value remains.
    """

    def __init__(
        self,
        keys: Sequence[str],
        sums: Sequence[str] = (),
        least: Sequence[str] = (),
        most: Sequence[str] = (),
    ) -> None:
        self.keys = tuple(keys)
        self.sums = tuple(sums)
        self.least = (*least, *MOMENTS_LEAST)
        self.most = (*most, *MOMENTS_MOST)
        self._parts: list[dict[str, Ints]] = []
        self._loose = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return (*self.keys, *self.sums, *self.least, *self.most)

    def add(self, columns: Mapping[str, Ints]) -> None:
        """Add rows; columns of other names are ignored."""
        if not len(columns[self.keys[0]]):
            return
        part = self._grouped({name: columns[name] for name in self.columns}, self.keys)
        self._parts.append(part)
        self._loose += len(part[self.keys[0]])
        if self._loose > _MAX_LOOSE_ROWS and len(self._parts) > 1:
            self._parts = [self._grouped(self._joined(), self.keys)]
            self._loose = 0

    def by(self, *keys: str, without: Collection[int] = ()) -> list[Total]:
        """
        Return the totals by some of the keys, in the order of keys.

        Args:
            keys: Names of keys.
            without: Connections to leave out; only for tallies with the key `connection`.
        """
        if not self._parts:
            return []
        columns = self._joined()
        if without:
            stays = ~np.isin(columns["connection"], list(without))
            columns = {name: column[stays] for name, column in columns.items()}
        found = self._grouped(columns, keys)
        names = (*keys, *self.sums, *self.least, *self.most)
        rows = zip(*(found[name].tolist() for name in names), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _joined(self) -> dict[str, Ints]:
        return {name: np.concatenate([part[name] for part in self._parts]) for name in self.columns}

    def _grouped(self, columns: Mapping[str, Ints], keys: Sequence[str]) -> dict[str, Ints]:
        """Return one row for each combination of keys."""
        order = np.lexsort([columns[name] for name in reversed(keys)])
        ordered = {name: columns[name][order] for name in keys}
        if not len(order):
            return dict.fromkeys(self.columns, order)
        is_first = reduce(
            np.logical_or,
            (np.diff(column, prepend=column[:1] - 1) != 0 for column in ordered.values()),
        )
        starts = np.flatnonzero(is_first)
        found = {name: column[starts] for name, column in ordered.items()}
        for names, function in (
            (self.sums, np.add),
            (self.least, np.minimum),
            (self.most, np.maximum),
        ):
            for name in names:
                found[name] = function.reduceat(columns[name][order], starts)
        return found
