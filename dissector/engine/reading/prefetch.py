"""
Runs the stages of reading in threads.

Reading a capture is a chain of stages: each takes the windows of its predecessor. `prefetch` gives
a stage a thread of its own, so that it works on the next window while the caller uses this one;
`map_in_threads` gives several to a stage for independent windows. The kernels and libraries that do
the work run without the interpreter's lock. Windows keep their order, so the result does not depend
on the number of threads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import Any, Generic, TypeAlias, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_Place: TypeAlias = "SimpleQueue[tuple[Result] | BaseException]"
"""Place of a result, or of the error instead of it."""

_SIGNAL_S = 0.5
"""Timeout of one wait: a signal just before a wait does not interrupt it."""


class _Stage(Generic[Item, Result]):
    """
    An iterable that is mapped in threads.

    Attributes:
        made: The places of results in order; None for the end.
        room: A permit for each result that may be made now.
        stopped: Whether the caller has stopped.
    """

    def __init__(self, items: Iterable[Item], work: Callable[[Item], Result], most: int) -> None:
        self.made: SimpleQueue[_Place[Result] | None] = SimpleQueue()
        self.room = Semaphore(most)
        self.stopped = False
        self._items: Iterator[Item] | None = iter(items)
        self._work = work
        self._lock = Lock()

    def run(self) -> None:
        """Produce results while there is room."""
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
        """Take the next item, and a place for its result; None at the end."""
        with self._lock:
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
        """Take no more items."""
        self.made.put(last)
        self._items = None


def prefetch(items: Iterable[Item], max_waiting: int = 1) -> Iterator[Item]:
    """
    Yield the items of an iterable, which is read in a separate thread.

    Args:
        items: Used by that thread only.
        max_waiting: Maximum number of items waiting for the caller.

    Raises:
        BaseException: Raised by the items, in order.
    """
    return map_in_threads(items, lambda item: item, 1, max_waiting)


def map_in_threads(
    items: Iterable[Item], work: Callable[[Item], Result], workers: int, max_waiting: int
) -> Iterator[Result]:
    """
    Yield the results of a function for the items of an iterable, in order.

    Args:
        items: Used by one of the threads at a time.
        work: The function, called in that many threads.
        workers: The number of threads.
        max_waiting: Maximum number of results in progress, or waiting for the caller.

    Raises:
        BaseException: Raised by the items or the function, in order.
    """
    stage = _Stage(items, work, max_waiting)
    for _ in range(workers):
        # Daemon threads: they may be blocked on input when the caller stops.
        run = partial(copy_context().run, stage.run)
        Thread(target=run, name="ahead", daemon=True).start()
    try:
        while (place := _wait_for(stage.made)) is not None:
            given = _wait_for(place)
            if isinstance(given, BaseException):
                raise given
            stage.room.release()
            yield given[0]
            del given, place
    finally:
        stage.stopped = True
        for _ in range(workers):
            stage.room.release()


def _wait_for(queue: SimpleQueue[Item]) -> Item:
    """Return the next element; the main thread handles signals, such as Ctrl-C, while waiting."""
    while True:
        try:
            return queue.get(timeout=_SIGNAL_S)
        except Empty:
            continue


def cores() -> int:
    """Return the number of cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_all(items: Iterator[Any], works: Sequence[Callable[[Any], Any]]) -> Iterator[Any]:
    """Apply all works to each item, in this thread."""
    for work in works:
        items = map(work, items)
    return items
