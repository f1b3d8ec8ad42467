"""
Records in the order of the packets that carry them: a Fetch never before the Produce that it reads.

Exchanges come as they end, so a Produce comes with its response, behind Fetches of its records. In
a window exchanges are sorted; from one to the next, records wait for Produces in flight.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dissector.engine.tables.column_types import Columns, Integers, Slices, row_count, select_rows
from dissector.engine.tables.concatenate import ColumnConcatenator
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.protocol.headers import PRODUCE

MAX_WAITING = 131_072
"""Records that may wait for an earlier Produce; with more, all are yielded."""

MAX_WAITING_BYTES = 1 << 26
"""Bytes of their keys and values, likewise."""

PATIENCE_S = 1.0
"""Time that they may wait in a live capture."""


def record_order(table: Exchanges) -> Ints | None:
    """Return the rows in the order of the packets that carry records; None if they are in it."""
    request, response = table.request.packet, table.response.packet
    packets = np.where((table.api_key == PRODUCE) | (response == NONE), request, response)
    if (packets[1:] >= packets[:-1]).all():
        return None
    return np.argsort(packets, kind="stable")


def in_record_order(table: Exchanges) -> Exchanges:
    """Return exchanges in the order of the packets that carry records."""
    order = record_order(table)
    return table if order is None else table.rows(order)


@dataclass(slots=True, eq=False, repr=False)
class _Part:
    """Records in the order of their packets."""

    columns: Columns
    packets: Ints

    def first(self, count: int) -> Columns:
        """Remove the first rows, and return them."""
        first = _rows(self.columns, 0, count)
        self.columns = _rows(self.columns, count, len(self.packets))
        self.packets = self.packets[count:]
        return first

    def detach(self) -> None:
        """Copy the bytes of the rows, so that their window is freed."""
        copy = ColumnConcatenator()
        copy.add(self.columns)
        self.columns = copy.columns()

    @property
    def bytes(self) -> int:
        """Bytes of keys and values."""
        columns = (self.columns.get(name) for name in ("key", "value"))
        slices = (each for each in columns if isinstance(each, Slices))
        return sum(int(each.length[each.start != NONE].sum()) for each in slices)


class RecordOrder:
    """
    Puts the records of windows in the order of packets, in bounded memory.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: list[_Part] = []
        self._since_s = 0.0

    def take(
        self, parts: Iterable[Columns], records_from: int, *, is_live: bool = False
    ) -> Iterator[Columns]:
        """
        Add the records of a window; yield those that none will precede.

        Args:
            parts: The records in the order of `in_record_order`.
            records_from: The first packet of records that may follow in later windows.
            is_live: Whether they shall not wait long. Idle pipes have empty windows.
        """
        last = records_from + 1  # numbers in the columns begin at 1
        for columns in parts:
            if not row_count(columns):
                continue
            part = _Part(columns, _packets(columns))
            if not self._waiting and part.packets[-1] <= last:
                yield columns
                continue
            if not self._waiting:
                self._since_s = self._clock()
            self._waiting.append(part)
            # More rows of the window may follow, but none before the last one of this part.
            yield from self._until(min(last, int(part.packets[-1])))
            if len(part.packets):
                part.detach()
            if self._are_too_many():
                yield from self.drain()
        if is_live and self._clock() - self._since_s >= PATIENCE_S:
            yield from self.drain()
        yield from self._until(last)

    def drain(self) -> Iterator[Columns]:
        """Yield what waits."""
        yield from self._until(None)

    def _until(self, last: int | None) -> Iterator[Columns]:
        """Yield the waiting records up to a packet; None for all."""
        ready = []
        for part in self._waiting:
            count = len(part.packets)
            if last is not None:
                count = int(np.searchsorted(part.packets, last, "right"))
            if count:
                ready.append(_Part(part.columns, part.packets[:count]))
                ready[-1].columns = part.first(count)
        self._waiting = [part for part in self._waiting if len(part.packets)]
        yield from _merged(ready)

    def _are_too_many(self) -> bool:
        return (
            sum(len(part.packets) for part in self._waiting) > MAX_WAITING
            or sum(part.bytes for part in self._waiting) > MAX_WAITING_BYTES
        )


def _merged(parts: list[_Part]) -> Iterator[Columns]:
    """Yield the rows of all parts by packet; those of one packet stay in their order."""
    if all(each.packets[-1] <= after.packets[0] for each, after in pairwise(parts)):
        yield from (each.columns for each in parts)
        return
    # Most rows come last, and follow the few that waited: these stay where they are.
    *waited, newest = parts
    last = max(each.packets[-1] for each in waited)
    among = newest.first(int(np.searchsorted(newest.packets, last, "right")))
    joined = ColumnConcatenator()
    for columns in filter(None, (*(each.columns for each in waited), among)):
        joined.add(columns)
    merged = joined.columns()
    yield select_rows(merged, np.argsort(_packets(merged), kind="stable"))
    if len(newest.packets):
        yield newest.columns


def _rows(columns: Columns, begin: int, end: int) -> Columns:
    return select_rows(columns, slice(begin, end)) if end > begin else {}


def _packets(columns: Columns) -> Ints:
    column = columns["packet"]
    assert isinstance(column, Integers)
    return column.values
