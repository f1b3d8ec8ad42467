"""Timers of an event loop, recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class Timers:
    """Records the timers that the running loop sets from now on with `call_later`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._call_later = self._loop.call_later
        self._set: list[tuple[asyncio.TimerHandle, Callable[[], object]]] = []
        self._loop.call_later = self._record  # type: ignore[method-assign, assignment]

    def due_s(self) -> list[float]:
        """Return the times until the timers that were not cancelled, in the order of calls."""
        now_s = self._loop.time()
        return [timer.when() - now_s for timer, _ in self._set if not timer.cancelled()]

    def run_newest(self) -> None:
        """Call the function of the newest timer immediately."""
        self._set[-1][1]()

    def run_after(self, delay_s: float) -> None:
        """Call immediately the functions of all timers due later than this."""
        late = [call for timer, call in self._set if timer.when() > self._loop.time() + delay_s]
        for call in late:
            call()

    def _record(self, delay_s: float, call: Callable[..., Any], *args: Any) -> asyncio.TimerHandle:
        timer = self._call_later(delay_s, call, *args)
        self._set.append((timer, lambda: call(*args)))
        return timer
