"""
Stages of reading, side by side.

Reading a capture is a chain: each stage takes the windows of the one before it. `prefetch` gives a
stage a thread of its own, so that it works on the next window while this one is looked at;
`map_in_threads` gives several to a stage that needs no window to know another. The loops and the
libraries that do the work run without the interpreter's lock. Windows keep their order, so nothing
that comes out depends on how many run at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import Generic, TypeAlias, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_Place: TypeAlias = "SimpleQueue[tuple[Result] | BaseException]"
"""Where a result will be, or what went wrong."""


class _Stage(Generic[Item, Result]):
    """
    A chain that is drawn on in threads.

    Attributes:
        made: The places of results in their order; None for the end.
        room: One for each result that may be made now.
        stopped: Nobody wants more.
    """

    def __init__(self, items: Iterable[Item], work: Callable[[Item], Result], most: int) -> None:
        self.made: SimpleQueue[_Place[Result] | None] = SimpleQueue()
        self.room = Semaphore(most)
        self.stopped = False
        self._items: Iterator[Item] | None = iter(items)
        self._work = work
        self._turn = Lock()

    def run(self) -> None:
        """Make results while there is room."""
        while self.room.acquire() and not self.stopped:
            taken = self._take()
            if taken is None:
                return
            place, item = taken
            del taken
            try:
                result = self._work(item)
            except BaseException as error:
                place.put(error)
            else:
                place.put((result,))
                del result
            del item

    def _take(self) -> tuple[_Place[Result], Item] | None:
        """Take the next item, and a place for what becomes of it; None when there are no more."""
        with self._turn:
            if self._items is None:
                return None
            place: _Place[Result] = SimpleQueue()
            try:
                item = next(self._items)
            except StopIteration:
                self._end(None)
            except BaseException as error:
                place.put(error)
                self._end(place)
            else:
                self.made.put(place)
                return place, item
        return None

    def _end(self, last: _Place[Result] | None) -> None:
        """Take no more."""
        self.made.put(last)
        self._items = None


def prefetch(items: Iterable[Item], max_waiting: int = 1) -> Iterator[Item]:
    """
    Yield what an iterable gives, which is drawn on in a thread of its own.

    Args:
        items: Used by that thread only.
        max_waiting: How many items may be there that nobody has taken yet.

    Raises:
        BaseException: What drawing on the items raised, in its turn.
    """
    return map_in_threads(items, lambda item: item, 1, max_waiting)


def map_in_threads(
    items: Iterable[Item], work: Callable[[Item], Result], workers: int, max_waiting: int
) -> Iterator[Result]:
    """
    Yield what becomes of the items of an iterable, in their order.

    Args:
        items: Used by one of the threads at a time.
        work: What is done with each item, in as many threads.
        workers: The number of threads.
        max_waiting: How many results may be there, or under way, that nobody has taken yet.

    Raises:
        BaseException: What drawing on the items raised, or the work, in its turn.
    """
    stage = _Stage(items, work, max_waiting)
    for _ in range(workers):
        # Daemons: they may be waiting for input when nobody wants more.
        run = partial(copy_context().run, stage.run)
        Thread(target=run, name="ahead", daemon=True).start()
    try:
        while (place := stage.made.get()) is not None:
            given = place.get()
            if isinstance(given, BaseException):
                raise given
            stage.room.release()
            yield given[0]
            del given, place
    finally:
        stage.stopped = True
        for _ in range(workers):
            stage.room.release()
