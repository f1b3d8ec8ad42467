"""Columns of exchanges in request logs: what the broker itself says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import unique
from dissector.column_catalogue import ACCOUNTS, names
from dissector.engine.tables.column_types import Coded, Column, Milliseconds
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.request_log.log_accounts import DURATIONS, TEXTS, LogAccounts

ACCOUNT_COLUMNS = names(ACCOUNTS)


class LoggedFile(Protocol):
    """A log that was converted; `accounts` is what the broker says."""

    accounts: LogAccounts


class PacketFiles(Protocol):
    """Which file holds a packet, and its number there."""

    def files_of(self, packets: Ints) -> Coded:
        """Return the names of the files that hold packets."""

    def numbers_of(self, packets: Ints) -> Ints:
        """Return the numbers of packets within their files, from 1."""


class LogColumns:
    """The columns of the exchanges of a reading, of those files that are logs."""

    def __init__(self, files: PacketFiles | None, logs: Mapping[str, Any]) -> None:
        """Read from logs by the names of files; more may be added to them."""
        self._files = files
        self._logs = logs

    def __bool__(self) -> bool:
        """Return whether a file is a log."""
        return bool(self._logs)

    def is_logged(self, table: Exchanges) -> NDArray[np.bool_]:
        """Return for each exchange whether it is of a log: its bytes were not captured."""
        found = np.zeros(len(table), np.bool_)
        if self._files is None or not self._logs:
            return found
        files = self._files.files_of(_last_packets(table))
        are_logs = np.array([name in self._logs for name in files.values], np.bool_)
        logged: NDArray[np.bool_] = are_logs[files.codes] if len(are_logs) else found
        return logged

    def columns(self, table: Exchanges) -> dict[str, Column]:
        """Return all columns of some exchanges; null for those of captures."""
        ns = {name: np.full(len(table), NONE) for name in DURATIONS}
        ns["outside_ms"] = np.full(len(table), NONE)  # only a capture has it
        text_names = TEXTS
        codes = {name: np.full(len(table), NONE) for name in text_names}
        texts: dict[str, dict[str, int]] = {name: {} for name in text_names}
        for rows, accounts, at in self._accounts(table):
            for name in DURATIONS:
                ns[name][rows] = accounts.durations(name, at)
            for name in text_names:
                column, known = accounts.texts(name, at), texts[name]
                mapped = [known.setdefault(each, len(known)) for each in column.texts]
                at_text = np.where(column.codes == NONE, len(mapped), column.codes)
                codes[name][rows] = np.array([*mapped, NONE], np.int64)[at_text]
        return {
            name: Milliseconds(ns[name]) if name in ns else Coded(codes[name], list(texts[name]))
            for name in ACCOUNT_COLUMNS
        }

    def durations(self, table: Exchanges, name: str) -> Ints:
        """Return a column of times of some exchanges in ns; NONE for null."""
        ns = np.full(len(table), NONE)
        for rows, accounts, at in self._accounts(table):
            ns[rows] = accounts.durations(name, at)
        return ns

    def record_bytes(self, table: Exchanges, row: int) -> list[int]:
        """Return the sizes of the records of an exchange, in the order of its partitions."""
        for _, accounts, at in self._accounts(table.rows(np.array([row]))):
            if at[0] != NONE:
                return accounts.record_bytes(int(at[0]))
        return []

    def _accounts(self, table: Exchanges) -> Iterator[tuple[Ints, LogAccounts, Ints]]:
        """Yield the exchanges of each log, its accounts, and the rows there."""
        if self._files is None or not self._logs or not len(table):
            return
        packets = _last_packets(table)
        files, numbers = self._files.files_of(packets), self._files.numbers_of(packets)
        for code in unique(files.codes).tolist():
            log = self._logs.get(files.values[code])
            if log is not None:
                rows = np.flatnonzero(files.codes == code)
                yield rows, log.accounts, log.accounts.rows_of(numbers[rows])


NO_LOGS = LogColumns(None, {})


def _last_packets(table: Exchanges) -> Ints:
    response = table.response.packet
    return np.where(response == NONE, table.request.packet, response)
