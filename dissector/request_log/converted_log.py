"""A log as a capture: its messages as packets of plain TCP, and what the broker says of them."""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Iterable
from typing import Any, cast

from dissector.capture.formats.inputs import PositionedReader
from dissector.capture.writing.capture_writer import CaptureWriter
from dissector.errors import Problem
from dissector.request_log.line_problems import LineProblems
from dissector.request_log.log_conversion import LogConversion
from dissector.request_log.log_lines import LogLines
from dissector.request_log.log_packets import LogConnections
from dissector.request_log.log_times import LogTimes

_MEMORY_BYTES = 32 << 20


class ConvertedLog:
    """
    The capture of a log; an `Input`.

    Attributes:
        accounts: What the broker says of its exchanges, by their packets.
        problems: What is wrong with its lines.
        lines: Number of its lines.
        exchanges: Number of lines with an exchange, or a message.
    """

    is_rereadable = True
    is_appended = False

    def __init__(
        self,
        blocks: Iterable[bytes],
        connections: LogConnections,
        zone: str,
        *,
        lines_before: int = 0,
    ) -> None:
        """
        Read a log; connections go on from earlier ones of the capture.

        `lines_before` is the number of lines before the blocks: they are the rest of a log.
        """
        conversion = LogConversion(connections, zone, lines_before=lines_before)
        self._lock = threading.Lock()
        for entry in conversion.entries(blocks):
            conversion.add(entry)
        self._file: Any = tempfile.SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115
        writer = CaptureWriter(cast(Any, self._file))
        writer.start_section()
        self.accounts = conversion.write(writer)
        weakref.finalize(self, self._file.close)
        self.problems: list[Problem] = conversion.take_problems()
        self.lines, self.exchanges = conversion.lines, conversion.exchanges

    def open(self) -> PositionedReader:
        """Return a file at the first byte."""
        return PositionedReader(self._read)

    def _read(self, position: int, count: int) -> bytes:
        with self._lock:
            self._file.seek(position)
            return cast(bytes, self._file.read(count))


def first_time(blocks: Iterable[bytes], zone: str) -> int:
    """Return the time of the first entry of a log; 0 without one."""
    entries = LogLines(LogTimes(zone), LineProblems()).entries(blocks)
    return next((each.time_ns for each in entries), 0)
