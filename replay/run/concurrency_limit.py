"""Limits concurrency: counts items in flight, and waits until the count is below the limit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Generic, TypeVar

_T = TypeVar("_T")


class InFlight(Generic[_T]):
    """Items in flight by number, in the order of `begin`; only one task at a time may wait."""

    def __init__(self) -> None:
        self._items: dict[int, _T] = {}
        self._limit = 0
        self._fewer: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[_T]:
        return iter(list(self._items.values()))

    def begin(self, number: int, item: _T) -> None:
        """Add an item."""
        self._items[number] = item

    def end(self, number: int) -> None:
        """Remove an item."""
        del self._items[number]
        fewer = self._fewer
        if fewer is not None and len(self._items) <= self._limit:
            self._fewer = None
            if not fewer.done():
                fewer.set_result(None)

    async def until_at_most(self, limit: int) -> None:
        """Wait until at most `limit` items are in flight."""
        while len(self._items) > limit:
            self._limit, self._fewer = limit, asyncio.get_running_loop().create_future()
            await self._fewer
