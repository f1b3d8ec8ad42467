"""A kfake cluster (franz-go), a foreign broker; built from kfake_server.go beside this file."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.waiting import child


@contextlib.contextmanager
def kfake() -> Iterator[str]:
    """Yield the address of a new cluster; the test is skipped where the program is missing."""
    program = os.environ.get("KFAKE") or shutil.which("kfakeserver")
    if program is None:
        pytest.skip("needs kfakeserver, in PATH or named by KFAKE: tests/replay/support")
    with child(subprocess.Popen([program], stdout=subprocess.PIPE, text=True)) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()
