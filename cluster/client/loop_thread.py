"""An event loop in a separate thread, for callers without one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

_T = TypeVar("_T")


class LoopThread:
    """
    An event loop that runs in its own thread from `__enter__` to `__exit__`.

    At the end all tasks are cancelled and awaited before the loop closes: a connection just being
    accepted or opened would otherwise keep its socket.
    """

    def __init__(self, name: str, daemon: bool = False) -> None:
        """Prepare a thread; a daemon does not keep the process alive."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, name=name, daemon=daemon)

    def __enter__(self) -> Self:
        """Start the loop."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel all tasks, then close the loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def run(self, work: Coroutine[Any, Any, _T], timeout_s: float | None = None) -> _T:
        """
        Run a coroutine in the loop and return its result.

        Raises:
            TimeoutError: It did not end in time.
        """
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    def _run_loop(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.get_loop().run_forever()
