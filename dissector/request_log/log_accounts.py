"""What the broker itself says of exchanges, by the packets of a log: columns no capture has."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dissector.kernel.arrays import NONE

Ints = NDArray[np.int64]

DURATIONS: Mapping[str, str] = {
    "broker_ms": "totalTimeMs",
    "queue_ms": "requestQueueTimeMs",
    "local_ms": "localTimeMs",
    "remote_ms": "remoteTimeMs",
    "throttle_ms": "throttleTimeMs",
    "response_queue_ms": "responseQueueTimeMs",
    "send_ms": "sendTimeMs",
}
"""Columns of times, and their names in a log."""

TEXTS = ("principal", "listener", "security_protocol", "client_software")
"""Columns of texts."""

_NS_PER_MS = 1e6


class TextColumn(NamedTuple):
    """
    A column of few texts.

    Attributes:
        codes: Index of each row's text; NONE for null.
        texts: The texts.
    """

    codes: Ints
    texts: Sequence[str]


class LogAccounts:
    """
    The accounts of one log, in the order of its packets.

    Attributes:
        packets: Numbers of the packets in the log, from 1, that end exchanges; ascending.
        lines: Number of the line of each.
    """

    def __init__(self) -> None:
        self.packets: Ints = np.zeros(0, np.int64)
        self.lines: Ints = np.zeros(0, np.int64)
        self._ns: dict[str, Ints] = dict.fromkeys(DURATIONS, np.zeros(0, np.int64))
        self._texts: dict[str, TextColumn] = {}
        self._sizes: Ints = np.zeros(0, np.int64)
        self._ends: Ints = np.zeros(0, np.int64)

    def rows_of(self, packets: Ints) -> Ints:
        """Return the account of each packet; NONE without one."""
        if not len(self.packets):
            return np.full(len(packets), NONE)
        at = np.minimum(np.searchsorted(self.packets, packets), len(self.packets) - 1)
        return np.where(self.packets[at] == packets, at, NONE)

    def durations(self, name: str, rows: Ints) -> Ints:
        """Return a column of times of some accounts in ns; NONE for null."""
        return _taken(self._ns[name], rows)

    def texts(self, name: str, rows: Ints) -> TextColumn:
        """Return a column of texts of some accounts."""
        column = self._texts[name]
        return TextColumn(_taken(column.codes, rows), column.texts)

    def record_bytes(self, row: int) -> list[int]:
        """Return the sizes of the records of an exchange, in the order of its partitions."""
        begin = 0 if row == 0 else int(self._ends[row - 1])
        return [int(each) for each in self._sizes[begin : self._ends[row]]]

    def followed_by(self, later: LogAccounts, most: int) -> LogAccounts:
        """Return these and those of later packets of the log, only the last of them."""
        left_out = min(max(len(self.packets) + len(later.packets) - most, 0), len(self.packets))
        joined = LogAccounts()
        joined.packets = np.concatenate([self.packets[left_out:], later.packets])
        joined.lines = np.concatenate([self.lines[left_out:], later.lines])
        for name in DURATIONS:
            joined._ns[name] = np.concatenate([self._ns[name][left_out:], later._ns[name]])
        for name, column in later._texts.items():
            earlier = self._texts.get(name, TextColumn(np.zeros(0, np.int64), ()))
            codes = np.concatenate([earlier.codes[left_out:], column.codes])
            joined._texts[name] = TextColumn(codes, column.texts)
        begin = int(self._ends[left_out - 1]) if left_out else 0
        joined._sizes = np.concatenate([self._sizes[begin:], later._sizes])
        kept = len(self._sizes) - begin
        joined._ends = np.concatenate([self._ends[left_out:] - begin, later._ends + kept])
        return joined


class AccountBuilder:
    """Collects accounts in the order of lines."""

    def __init__(self, known: dict[str, dict[str, int]] | None = None) -> None:
        """Start; `known` has the numbers of texts in earlier accounts of the log."""
        self._lines = array("q")
        self._ns = {name: array("q") for name in DURATIONS}
        self._codes = {name: array("q") for name in TEXTS}
        self._known = {name: dict[str, int]() for name in TEXTS} if known is None else known
        self._sizes = array("q")
        self._ends = array("q")

    def __len__(self) -> int:
        return len(self._lines)

    def successor(self) -> AccountBuilder:
        """Return a builder of later accounts, in which texts have the same numbers."""
        return AccountBuilder(self._known)

    def add(self, line: int, value: Mapping[str, Any], record_bytes: Sequence[int]) -> None:
        """Add the account of an object of a log; what it lacks is null."""
        self._lines.append(line)
        for name, key in DURATIONS.items():
            found = value.get(key)
            is_time = isinstance(found, int | float) and -1e12 < found < 1e12
            self._ns[name].append(round(float(found or 0) * _NS_PER_MS) if is_time else NONE)
        for name, text in zip(TEXTS, _texts_of(value), strict=True):
            known = self._known[name]
            self._codes[name].append(NONE if text is None else known.setdefault(text, len(known)))
        self._sizes.extend(record_bytes)
        self._ends.append(len(self._sizes))

    def build(self, packets: Ints) -> LogAccounts:
        """
        Return the accounts.

        Args:
            packets: The number of the packet that ends each; NONE for one that has none.
        """
        built = LogAccounts()
        order = np.argsort(packets, kind="stable")
        order = order[packets[order] != NONE]
        built.packets = packets[order]
        built.lines = _ints(self._lines)[order]
        built._ns = {name: _ints(column)[order] for name, column in self._ns.items()}
        built._texts = {
            name: TextColumn(_ints(codes)[order], list(self._known[name]))
            for name, codes in self._codes.items()
        }
        ends, sizes = _ints(self._ends), _ints(self._sizes)
        begins = np.concatenate([[0], ends[:-1]]).astype(np.int64) if len(ends) else ends
        counts = (ends - begins)[order]
        built._ends = np.cumsum(counts)
        within = np.arange(int(counts.sum())) - np.repeat(built._ends - counts, counts)
        built._sizes = sizes[np.repeat(begins[order], counts) + within]
        return built


def _taken(column: Ints, rows: Ints) -> Ints:
    """Return the values of some rows; NONE for a row NONE."""
    taken: Ints = np.append(column, NONE)[np.where(rows == NONE, len(column), rows)]
    return taken


def _ints(column: array[int]) -> Ints:
    return np.array(column, np.int64)


def _texts_of(value: Mapping[str, Any]) -> list[str | None]:
    software = value.get("clientInformation")
    named = ""
    if isinstance(software, dict):
        parts = (software.get("softwareName"), software.get("softwareVersion"))
        named = " ".join(each for each in parts if isinstance(each, str) and each != "unknown")
    found = (value.get("principal"), value.get("listener"), value.get("securityProtocol"), named)
    return [each if isinstance(each, str) and each else None for each in found]
