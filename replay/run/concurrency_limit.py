"""What is under way, and how to wait until there is less of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Generic, TypeVar

_T = TypeVar("_T")


class UnderWay(Generic[_T]):
    """Things by number, in the order in which they began; one at a time may wait for fewer."""

    def __init__(self) -> None:
        self._things: dict[int, _T] = {}
        self._most = 0
        self._fewer: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._things)

    def __iter__(self) -> Iterator[_T]:
        return iter(list(self._things.values()))

    def begin(self, number: int, thing: _T) -> None:
        """Add one."""
        self._things[number] = thing

    def end(self, number: int) -> None:
        """Take one out."""
        del self._things[number]
        fewer = self._fewer
        if fewer is not None and len(self._things) <= self._most:
            self._fewer = None
            if not fewer.done():
                fewer.set_result(None)

    async def until(self, most: int) -> None:
        """Wait until there are no more than so many."""
        while len(self._things) > most:
            self._most, self._fewer = most, asyncio.get_running_loop().create_future()
            await self._fewer
