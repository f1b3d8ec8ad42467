"""Waiting for what another thread or process does."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import AnyStr

PATIENCE_S = 120.0
"""Limit for what takes a second on an idle machine; a slow, busy one needs much more."""

_NEVER = threading.Event()


def wait_until(condition: Callable[[], object], what: str = "a condition") -> None:
    """
    Wait until a condition holds, and leave the processor to others meanwhile.

    Raises:
        TimeoutError: The time is up; `what` says in the message what was awaited.
    """
    deadline = monotonic() + PATIENCE_S
    while not condition():
        if monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE_S:.0f} s for {what}")
        _NEVER.wait(0.01)


@contextmanager
def child(process: subprocess.Popen[AnyStr]) -> Iterator[subprocess.Popen[AnyStr]]:
    """
    Wait for a process at the end of the block; kill it if the block fails.

    Without that, a failed assertion waits until the time of the test is over.
    """
    with process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise
