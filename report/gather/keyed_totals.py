"""Totals of rows by a number, the key, in few bytes: there may be a million keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from dissector.engine.tables.exchange_table import Ints

Totals: TypeAlias = Mapping[str, Ints]
"""Columns of one length: `key`, and what is added up; of `max_ns` the highest counts."""


class KeyedTotals:
    """
    Totals by key; of rows that were added last some may still have the same one.

    Attributes:
        added: Number of rows that were added since the last `merged`.
    """

    def __init__(self, *names: str) -> None:
        """Start; `names` are the columns beside `key`."""
        self._merged: Totals = {name: np.zeros(0, np.int64) for name in ("key", *names)}
        self._parts: list[Totals] = []
        self.added = 0

    def __len__(self) -> int:
        return len(self._merged["key"])

    def add(self, totals: Totals) -> None:
        """Add rows with any keys."""
        self._parts.append(_grouped(totals))
        self.added += len(self._parts[-1]["key"])

    def merged(self) -> Totals:
        """Return a row for each key, in the order of keys."""
        if self._parts:
            parts, self._parts, self.added = [self._merged, *self._parts], [], 0
            names, self._merged = list(self._merged), {}
            # The old columns are let go one by one.
            joined = {name: np.concatenate([part[name] for part in parts]) for name in names}
            del parts
            self._merged = _grouped(joined)
        return self._merged

    def change_keys(self, new_key: Callable[[Ints], Ints]) -> None:
        """Replace all keys; rows whose keys become equal are added up."""
        merged = self.merged()
        self._merged = _grouped({**merged, "key": new_key(merged["key"])})


def chosen(totals: Totals, rows: Ints) -> Totals:
    """Return some rows, by their indices or by a mask."""
    return {name: column[rows] for name, column in totals.items()}


def _grouped(totals: Totals) -> Totals:
    """Return one row for each key, in order."""
    order = np.argsort(totals["key"], kind="stable")  # runs in order are merged, not sorted
    key: Ints = totals["key"][order]
    starts = np.flatnonzero(np.diff(key, prepend=key[:1] - 1))
    return {name: _added_up(name, totals[name], key, order, starts) for name in totals}


def _added_up(name: str, column: Ints, key: Ints, order: Ints, starts: Ints) -> Ints:
    if name == "key":
        return key[starts]
    how = np.maximum if name == "max_ns" else np.add
    found: Ints = how.reduceat(column[order], starts) if len(starts) else column
    return found
