"""Processes that a test starts."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import AnyStr


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
