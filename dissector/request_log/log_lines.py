"""
Lines of logs to entries: the JSON object of each, its time and its line.

A request log has one line for each exchange, `Completed request:{...}`, in any layout of text or
JSON, also wrapped by a container runtime. Kroxylicious' protocol log has an object of several
lines for each message.

Source: Kafka, core RequestChannel.scala and RequestConvertToJson; kroxylicious,
kroxylicious-protocol-logger/README.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from dissector.request_log.line_problems import LineProblems
from dissector.request_log.log_times import LogTimes

REQUEST_MARK = b"Completed request:"
PROTOCOL_MARK = re.compile(rb'\{\s*\\?n?\s*\\?"header\\?"\s*:\s*\{\s*\\?n?\s*\\?"type\\?"\s*:')

_MAX_LINE_BYTES = 64 << 20
_MAX_OBJECT_BYTES = 16 << 20
_MARK = REQUEST_MARK.decode()
_MESSAGES = ("message", "msg", "log", "@message", "MESSAGE", "short_message", "full_message")
"""Names of the message in JSON layouts."""

_SESSION = re.compile(r"sessionId\"?[=:]\s*\"?([\w-]+)")
_DECODER = json.JSONDecoder()
_UNDATED = "no date and time before the message: it is left out"
_BROKEN = "the message is cut off, or mixed with another line: it is lost"


class LogEntry(NamedTuple):
    """
    One object of a log.

    Attributes:
        line: Number of its (first) line, from 1.
        time_ns: Time of the line, ns since the epoch.
        value: The object.
        session: Of a protocol log, the id of the session; else empty.
    """

    line: int
    time_ns: int
    value: dict[str, Any]
    session: str = ""


class LogLines:
    """
    Reads the lines of one log.

    Attributes:
        lines: Number of lines so far.
    """

    def __init__(self, times: LogTimes, problems: LineProblems) -> None:
        self.lines = 0
        self._times = times
        self._problems = problems
        self._open: list[bytes] = []
        self._open_bytes = self._open_line = 0

    def entries(self, blocks: Iterable[bytes]) -> Iterator[LogEntry]:
        """Yield the entries in blocks of bytes; other lines are passed over."""
        rest = b""
        for block in blocks:
            lines = (rest + block).split(b"\n")
            rest = lines.pop()
            if len(rest) > _MAX_LINE_BYTES:
                self._problems.add(f"longer than {_MAX_LINE_BYTES:,} bytes", self.lines + 1)
                rest = b""
            for line in lines:
                yield from self._entries(line)
        if rest:
            yield from self._entries(rest)
        self._leave_open()

    def _entries(self, line: bytes) -> Iterator[LogEntry]:
        self.lines += 1
        at = line.find(REQUEST_MARK)
        if at >= 0:
            self._open = []
            text = line.decode("utf-8", "replace")
            if line.lstrip()[:1] == b"{":
                yield from self._of_json(text)
            else:
                yield from self._of_text(text, None)
        elif self._open:
            yield from self._go_on(line)
        elif line.rstrip().endswith(b"{"):
            self._open, self._open_bytes, self._open_line = [line], len(line), self.lines
        elif PROTOCOL_MARK.search(line):
            text = line.decode("utf-8", "replace")
            if line.lstrip()[:1] == b"{" and not PROTOCOL_MARK.match(line.lstrip()):
                yield from self._of_json(text)
            else:
                yield from self._of_object(text, self.lines, None)

    def _of_text(self, text: str, outer_ns: int | None) -> Iterator[LogEntry]:
        """Yield the entries of a line; two in one line are of two writers."""
        at, before = text.find(_MARK), 0
        while at >= 0:
            following = text.find(_MARK, at + len(_MARK))
            # Errors of the decoder cost time in proportion to the whole text.
            part = text[at : following if following >= 0 else len(text)]
            value, end = _object_at(part, part.find("{"))
            if value is None:
                self._problems.add(_BROKEN, self.lines)
                end = len(_MARK)
            else:
                time_ns = self._times.of_text(text[before:at])
                yield from self._timed(value, outer_ns if time_ns is None else time_ns)
            before, at = at + end, following

    def _timed(self, value: dict[str, Any], time_ns: int | None) -> Iterator[LogEntry]:
        if time_ns is None:
            self._problems.add(_UNDATED, self.lines)
        else:
            yield LogEntry(self.lines, time_ns, value)

    def _of_json(self, text: str) -> Iterator[LogEntry]:
        """Yield the entries of a line that is an object."""
        outer, _ = _object_at(text, text.find("{"))
        if outer is None:
            self._problems.add(_BROKEN, self.lines)
            return
        for name in _MESSAGES:
            message = outer.get(name)
            if not isinstance(message, str):
                continue
            if _MARK in message:
                yield from self._of_text(message, self._times.of_fields(outer))
                return
            if PROTOCOL_MARK.search(message.encode()):
                session = _SESSION.search(text)
                time_ns = self._times.of_fields(outer)
                yield from self._of_object(message, self.lines, time_ns, session)
                return

    def _go_on(self, line: bytes) -> Iterator[LogEntry]:
        """Take the next line of an object of several lines; it may turn out to be none."""
        self._open.append(line)
        self._open_bytes += len(line)
        if line[:1] == b"}":
            text = b"\n".join(self._open).decode("utf-8", "replace")
            self._open = []
            if PROTOCOL_MARK.search(text.encode()):
                yield from self._of_object(text, self._open_line, None)
        elif line[:1] not in b" \t" or self._open_bytes > _MAX_OBJECT_BYTES:
            self._leave_open()
            if line.rstrip().endswith(b"{"):
                self._open, self._open_bytes, self._open_line = [line], len(line), self.lines

    def _leave_open(self) -> None:
        """Report an object of several lines that has no end, if it is one."""
        opened, self._open = self._open, []
        if PROTOCOL_MARK.search(b"\n".join(opened[:4])):
            self._problems.add(_BROKEN, self._open_line)

    def _of_object(
        self,
        text: str,
        line: int,
        outer_ns: int | None,
        session: re.Match[str] | None = None,
    ) -> Iterator[LogEntry]:
        found = PROTOCOL_MARK.search(text.encode())
        begin = text.find("{") if found is None else len(text.encode()[: found.start()].decode())
        value, end = _object_at(text, begin)
        time_ns = self._times.of_text(text[:begin]) if outer_ns is None else outer_ns
        if value is None:
            self._problems.add(_BROKEN, line)
        elif time_ns is None:
            self._problems.add(_UNDATED, line)
        else:
            session = session or _SESSION.search(text[:begin]) or _SESSION.search(text, end)
            yield LogEntry(line, time_ns, value, session[1] if session else "")


def _object_at(text: str, begin: int) -> tuple[dict[str, Any] | None, int]:
    """Return the JSON object at a place and its end; None if there is no whole one."""
    if begin < 0:
        return None, len(text)
    try:
        value, end = _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        return None, len(text)
    return (value, end) if isinstance(value, dict) else (None, len(text))
