"""Entries of a log to packets, in portions, with what the broker says of their exchanges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dissector.capture.writing.capture_writer import CaptureWriter
from dissector.errors import Problem
from dissector.kernel.arrays import NONE
from dissector.request_log.line_problems import LineProblems
from dissector.request_log.log_accounts import AccountBuilder, LogAccounts
from dissector.request_log.log_lines import LogEntry, LogLines
from dissector.request_log.log_messages import LogMessages
from dissector.request_log.log_packets import LogConnections, LogPackets
from dissector.request_log.log_times import LogTimes


class LogConversion:
    """
    The conversion of one log.

    Attributes:
        exchanges: Number of entries with an exchange, or a message, so far.
    """

    def __init__(self, connections: LogConnections, zone: str, *, lines_before: int = 0) -> None:
        """Start; connections go on from earlier logs of the capture, lines from earlier ones."""
        self.exchanges = 0
        self._problems = LineProblems()
        self._lines = LogLines(LogTimes(zone), self._problems)
        self._lines.lines = lines_before
        self._messages = LogMessages(self._problems)
        self._packets = LogPackets(connections)
        self._accounts = AccountBuilder()

    @property
    def lines(self) -> int:
        """Number of lines so far."""
        return self._lines.lines

    def entries(self, blocks: Iterable[bytes]) -> Iterator[LogEntry]:
        """Yield the entries in blocks of bytes."""
        return self._lines.entries(blocks)

    def add(self, entry: LogEntry) -> None:
        """Add the messages of an entry."""
        for exchange in self._messages.exchanges(entry):
            has_account = bool(exchange.value)
            try:
                self._packets.add(exchange, len(self._accounts) if has_account else NONE)
            except ValueError:
                self._problems.add("the connection has an address that is none", entry.line)
                continue
            if has_account:
                self._accounts.add(exchange.line, exchange.value, exchange.record_bytes)
            self.exchanges += 1

    def write(self, writer: CaptureWriter) -> LogAccounts:
        """Write the packets of what was added since, and return the accounts of that."""
        accounts = self._accounts.build(self._packets.write(writer, len(self._accounts)))
        self._accounts = self._accounts.successor()
        return accounts

    def take_problems(self) -> list[Problem]:
        """Return what is wrong with the lines since the last call."""
        return self._problems.take()
