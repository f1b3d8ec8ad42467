"""The command as a process."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import child

COMMAND = (sys.executable, "-m", "kafkashark", "serve")


@contextmanager
def serving(capture: str | Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    with child(
        subprocess.Popen(
            [*COMMAND, str(capture), "--listen", "127.0.0.1:0", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"listens at (\S+)", line)
        assert found, line + process.stderr.read()
        try:
            yield process, found[1]
        finally:
            process.kill()
