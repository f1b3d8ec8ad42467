"""Copies packets from the pipe of a capturing program, in a thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from dissector.capture.formats.pcap import HEADER_BYTES, is_pcap

_CHUNK_BYTES = 1 << 18
_POLL_S = 0.05
"""Interval of reading growing files."""


class GrowingFiles:
    """
    The files that a capturing program writes, one after another.

    Each is opened when it is known, so that it can be read after the program has deleted it.

    Attributes:
        missed: Number of files that could not be opened: small files of a ring may be deleted that
            soon.
    """

    def __init__(self, discover: Callable[[], None] = lambda: None) -> None:
        """Start; `discover` is called repeatedly, and may add files."""
        self.missed = 0
        self._discover = discover
        self._files: list[IO[bytes]] = []
        self._ended = threading.Event()
        self._lock = threading.Lock()

    def add(self, path: Path) -> None:
        """Add the next file; a file that can't be opened is counted."""
        try:
            file = path.open("rb", buffering=0)
        except OSError:
            self.missed += 1
            return
        with self._lock:
            self._files.append(file)

    def end(self) -> None:
        """Set the end: no file grows any more."""
        self._ended.set()

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes of all files; of a pcap file after the first one without its header."""
        number = 0
        while (file := self._next()) is not None:
            with file:
                yield from self._chunks_of(file, is_first=number == 0)
            number += 1

    def close(self) -> None:
        """Close the files that were not read."""
        with self._lock:
            while self._files:
                self._files.pop().close()

    def _next(self) -> IO[bytes] | None:
        """Wait for the next file; return None without one."""
        while True:
            has_ended = self._ended.is_set()
            self._discover()
            with self._lock:
                if self._files:
                    return self._files.pop(0)
            if has_ended:
                return None
            self._ended.wait(_POLL_S)

    def _chunks_of(self, file: IO[bytes], *, is_first: bool) -> Iterator[bytes]:
        head = b""
        while True:
            has_ended = self._ended.is_set()
            self._discover()
            is_complete = has_ended or bool(self._files)
            chunk = file.read(_CHUNK_BYTES)
            if chunk and len(head) < HEADER_BYTES and not is_first:
                head += chunk
                if len(head) < HEADER_BYTES:
                    continue
                chunk = head[HEADER_BYTES:] if is_pcap(head) else head
            if chunk:
                yield chunk
            elif is_complete:
                return
            else:
                self._ended.wait(_POLL_S)


def pipe_chunks(pipe: IO[bytes]) -> Iterator[bytes]:
    """Yield bytes of a pipe as they become available."""
    while chunk := os.read(pipe.fileno(), _CHUNK_BYTES):
        yield chunk


class Pump(threading.Thread):
    """Writes chunks into a pipe; `on_bytes` receives the byte count before each chunk."""

    def __init__(
        self, chunks: Iterator[bytes], target: int, on_bytes: Callable[[int], None]
    ) -> None:
        super().__init__(name="packet pump", daemon=True)
        self._chunks = chunks
        self._target = target
        self._on_bytes = on_bytes

    def run(self) -> None:
        """Copy until the end, or until the pipe's reader closes it."""
        total = 0
        try:
            for chunk in self._chunks:
                total += len(chunk)
                self._on_bytes(total)
                view = memoryview(chunk)
                while view:
                    view = view[os.write(self._target, view) :]
        except (BrokenPipeError, ValueError):
            return
        finally:
            os.close(self._target)
