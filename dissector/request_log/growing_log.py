"""A log that still grows, as a live capture: a thread converts what comes."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextvars import copy_context
from threading import Lock, Thread

from dissector.capture.formats.conversions import BLOCK_BYTES
from dissector.capture.formats.inputs import Input
from dissector.capture.writing.capture_writer import CaptureWriter
from dissector.errors import CaptureError, Problem
from dissector.request_log.log_accounts import LogAccounts
from dissector.request_log.log_conversion import LogConversion
from dissector.request_log.log_packets import LogConnections

PORTION_BYTES = 32 << 20
"""Most bytes of lines that come without a pause before their packets are written."""

MAX_ACCOUNTS = 100_000
"""Exchanges whose accounts are kept: those of windows that are being read."""


class GrowingLog(Input):
    """
    The capture of a log that grows; packets are in the order of times from portion to portion.

    Attributes:
        accounts: What the broker says of the last exchanges, by their packets.
        problems: None: they are taken as they come.
    """

    is_rereadable = False
    is_appended = False

    def __init__(self, blocks: Iterator[bytes], zone: str) -> None:
        """
        Start.

        Args:
            blocks: The bytes as they come; an empty block where none have come for a while.
            zone: Zone of times without one.
        """
        self.accounts = LogAccounts()
        self.problems: list[Problem] = []
        self._blocks = blocks
        self._conversion = LogConversion(LogConnections(), zone)
        self._buffer = io.BytesIO()
        self._writer = CaptureWriter(self._buffer)
        self._found: list[Problem] = []
        self._lock = Lock()

    def open(self) -> io.RawIOBase:
        """Return a pipe with the packets, which ends with the log."""
        reader, writer = os.pipe()
        arguments = self._run, writer
        Thread(target=copy_context().run, args=arguments, name="request log", daemon=True).start()
        return io.FileIO(reader)

    def take_problems(self) -> list[Problem]:
        """Return what is wrong with the lines since the last call."""
        with self._lock:
            found, self._found = self._found, []
        return found

    def _run(self, pipe: int) -> None:
        """Convert until the log ends, or until the pipe's reader closes it."""
        try:
            self._writer.start_section()
            for entry in self._conversion.entries(self._in_portions(pipe)):
                self._conversion.add(entry)
            self._write(pipe)
        except (OSError, ValueError, CaptureError):
            return  # a reader that is gone has closed its files
        finally:
            os.close(pipe)

    def _in_portions(self, pipe: int) -> Iterator[bytes]:
        """Yield the blocks; entries are written in a pause, shown by a block that is not full."""
        size = 0
        for block in self._blocks:
            if block:
                yield block
            size += len(block)
            if len(block) < BLOCK_BYTES or size >= PORTION_BYTES:
                self._write(pipe)
                size = 0

    def _write(self, pipe: int) -> None:
        """Write the packets of the entries since the last call."""
        added = self._conversion.write(self._writer)
        # First of all: the reader may ask as soon as it has the packets.
        self.accounts = self.accounts.followed_by(added, MAX_ACCOUNTS)
        with self._lock:
            self._found += self._conversion.take_problems()
        view = memoryview(self._buffer.getvalue())
        self._buffer.seek(0)
        self._buffer.truncate()
        while view:
            view = view[os.write(pipe, view) :]
