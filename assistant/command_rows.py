"""Commands of kafkashark as processes, whose rows or lines are read up to limits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Timer
from typing import IO, Any

from dissector.errors import DissectorError
from dissector.view.text.escape import escaped

TIME_LIMIT_S = 120
"""How long a command may run, in seconds."""

MAX_LINE = 1 << 22
"""Rows of more bytes are passed over."""

_MAX_ERROR = 600

_WRONG = 2
"""The exit status of wrong usage and unreadable input."""


class CommandFailed(DissectorError):
    """A command ended with an error; the text is its own."""


def command_rows(words: Sequence[str], folder: Path) -> Iterator[Any]:
    """
    Yield the rows of a command that prints lines of JSON; it ends with the iterator.

    Args:
        words: The words after `kafkashark`.
        folder: The folder in which it runs.

    Raises:
        CommandFailed: It reports an error, or takes too long.
    """
    with _running(words, folder) as lines:
        for line in lines:
            if len(line) <= MAX_LINE:
                yield json.loads(line)


def command_text(words: Sequence[str], folder: Path, most: int) -> str:
    """
    Return what a command prints, up to a number of bytes; see `command_rows`.

    Raises:
        CommandFailed: It reports an error, or takes too long.
    """
    found = b""
    with _running(words, folder) as lines:
        for line in lines:
            found += line
            if len(found) > most:
                break
    return found[:most].decode(errors="ignore")


@contextmanager
def _running(words: Sequence[str], folder: Path) -> Iterator[Iterator[bytes]]:
    """Run a command; yield its lines."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            # -P: no module of the folder is imported.
            [sys.executable, "-P", "-m", "kafkashark", *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            # No settings of a folder, which may come with the captures.
            env={**os.environ, "KAFKASHARK_CONFIG": "", "NO_COLOR": "1"},
        )
        is_late = Event()

        def end() -> None:
            is_late.set()
            process.kill()

        timer = Timer(TIME_LIMIT_S, end)
        timer.start()
        output = process.stdout
        assert output is not None
        is_complete = False
        try:
            yield _lines(output)
            is_complete = not output.read(1)
        finally:
            timer.cancel()
            if not is_complete:
                process.kill()
            output.close()
            process.wait()
        if is_late.is_set():
            raise CommandFailed(f"the command took more than {TIME_LIMIT_S} s; take less of it")
        if is_complete and process.returncode == _WRONG:
            errors.seek(0)
            raise CommandFailed(_message(errors.read(1 << 16)))


def _lines(output: IO[bytes]) -> Iterator[bytes]:
    """Yield lines; of a longer one than allowed only its first bytes, and one more."""
    while line := output.readline(MAX_LINE + 1):
        yield line
        while len(line) > MAX_LINE and not line.endswith(b"\n"):
            line = output.readline(MAX_LINE + 1)


def _message(errors: bytes) -> str:
    """Return what a command wrote last about its failure, in one line."""
    text = errors.decode(errors="replace").rpartition("kafkashark: ")[2]
    return escaped(" ".join(text.split()) or "it failed")[:_MAX_ERROR]
