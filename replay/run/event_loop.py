"""Runs coroutines from synchronous code, and synchronous code from coroutines."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Cancellation:
    """Cancels the coroutine that a thread runs; from another thread, also before it begins."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._is_requested = False

    async def guard(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine that `request` cancels."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._is_requested:
            coroutine.close()
            raise asyncio.CancelledError
        return await coroutine

    def request(self) -> None:
        self._is_requested = True
        if self._loop is not None and self._task is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._task.cancel)


_cancellation: ContextVar[_Cancellation | None] = ContextVar("cancellation", default=None)


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine, in a new thread if an event loop runs here already, as in a notebook."""
    cancellation = _cancellation.get()
    if cancellation is not None:
        return asyncio.run(cancellation.guard(coroutine))
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1, "replay") as thread:
        return thread.submit(copy_context().run, asyncio.run, coroutine).result()


async def run_in_thread(function: Callable[[], Result]) -> Result:
    """
    Run a function that calls `run`, in a thread, so that this event loop continues.

    If this is cancelled, the coroutine of the function is cancelled, and its end awaited.
    """
    cancellation = _Cancellation()

    def call() -> Result:
        _cancellation.set(cancellation)
        return function()

    work = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        cancellation.request()
        await asyncio.wait([work])
        raise
