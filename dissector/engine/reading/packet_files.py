"""Which file of a capture holds a packet, and its number there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import SEVERAL, Int32s, Packets, unique
from dissector.engine.exchanges.log_columns import NO_LOGS, LogColumns
from dissector.engine.exchanges.packet_facts import NO_FACTS, PacketFacts
from dissector.engine.tables.column_types import Coded
from dissector.engine.tables.exchange_table import Ints

TlsSecrets: TypeAlias = list[bytes]
"""Contents of key logs."""

_MAX_FILES = 3
"""Files whose packets are named in a text; of the others only the number is shown."""


class FileNames:
    """
    Maps packets to files.

    A *run* is a file, or a window of files that are merged by time. Of these it holds the file of
    each packet, two bytes.

    Attributes:
        starts: The number of the first packet of each run.
        names: The name of the file of each run; of a merged window, of its first packet.
        tls_secrets: TLS key logs found in the files so far.
        logs: The request logs among the files.
        facts: What is kept of packets.
    """

    logs: LogColumns = NO_LOGS
    facts: PacketFacts = NO_FACTS

    def __init__(self, other: FileNames | None = None) -> None:
        """Start; with another, what is added to one of them is in both."""
        self.starts: list[int] = [] if other is None else other.starts
        self.names: list[str] = [] if other is None else other.names
        self.tls_secrets: TlsSecrets = [] if other is None else other.tls_secrets
        self._merged: dict[int, NDArray[np.uint16]] = {} if other is None else other._merged
        self._codes: dict[str, int] = {} if other is None else other._codes
        self._before: list[Ints] = [] if other is None else other._before

    @property
    def paths(self) -> Sequence[str]:
        """Names of the files known so far."""
        return list(dict.fromkeys([*self._codes, *self.names]))

    def add_window(self, packets: Packets, names: Sequence[str]) -> None:
        """Record the files of a window, by their names in the order in which they were given."""
        if packets.path_index == SEVERAL:
            self.add_merged(packets.first, packets.file, names)
        elif len(packets):
            self.add(packets.first, names[packets.path_index])

    def add(self, first: int, name: str) -> None:
        """Record that packets from `first` on are of a file."""
        if not self.names or self.names[-1] != name or len(self.starts) - 1 in self._merged:
            self._code(name)
            self.starts.append(first)
            self.names.append(name)

    def add_merged(self, first: int, files: Int32s, names: Sequence[str]) -> None:
        """Record the files of a merged window from `first` on, as indices into `names`."""
        used = unique(files).tolist()
        codes = np.zeros(max(used) + 1, np.uint16)
        for number in used:
            codes[number] = self._code(names[number])
        self._merged[len(self.starts)] = codes[files]
        self.starts.append(first)
        self.names.append(names[int(files[0])])

    def _code(self, name: str) -> int:
        return self._codes.setdefault(name, len(self._codes))

    def file_of(self, packet: int) -> str:
        """Return the name of the file that holds a packet."""
        run = max(bisect_right(self.starts, packet) - 1, 0)
        if run in self._merged:
            code = int(self._merged[run][packet - self.starts[run]])
            return list(self._codes)[code]
        return self.names[run]

    def files_of(self, packets: Ints) -> Coded:
        """Return the names of the files that hold packets."""
        runs = self._runs_of(packets)
        if not self._merged:
            return Coded(runs, self.names)
        codes = np.zeros(len(packets), np.int64)
        for run in unique(runs).tolist():
            rows = np.flatnonzero(runs == run)
            within = self._merged.get(run)
            codes[rows] = (
                self._code(self.names[run])
                if within is None
                else within[packets[rows] - self.starts[run]]
            )
        return Coded(codes, list(self._codes))

    def numbers_of(self, packets: Ints) -> Ints:
        """Return the numbers of packets within their files, from 1."""
        numbers, runs = packets.copy(), self._runs_of(packets)
        for run in unique(runs).tolist():
            rows = np.flatnonzero(runs == run)
            at, before = packets[rows] - self.starts[run], self._counts_before(run)
            within = self._merged.get(run)
            if within is None:
                numbers[rows] = at + 1 + before[self._code(self.names[run])]
            else:
                numbers[rows] = _ranks(within)[at] + 1 + before[within[at]]
        return numbers

    def _runs_of(self, packets: Ints) -> Ints:
        return np.maximum(np.searchsorted(self.starts, packets, side="right") - 1, 0)

    def _counts_before(self, run: int) -> Ints:
        """Return how many packets each file has before a run."""
        for name in self.names[: run + 1]:
            self._code(name)
        while len(self._before) <= run:
            done = len(self._before)
            counts: Ints = np.zeros(len(self._codes), np.int64)
            if done:
                last = done - 1
                counts[: len(self._before[last])] = self._before[last]
                if last in self._merged:
                    more = np.bincount(self._merged[last])
                    counts[: len(more)] += more
                else:
                    packets = self.starts[done] - self.starts[last]
                    counts[self._code(self.names[last])] += packets
            self._before.append(counts)
        found = self._before[run]
        return np.concatenate([found, np.zeros(len(self._codes) - len(found), np.int64)])

    def places_of(self, packets: Ints) -> list[str]:
        """Return the file of each packet with its number there, as `cap.pcap3: 12`."""
        files, numbers = self.files_of(packets), self.numbers_of(packets)
        names = [self._short(name) for name in files.values]
        return [
            f"{names[code]}: {number}"
            for code, number in zip(files.codes.tolist(), numbers.tolist(), strict=True)
        ]

    def places_text(self, packets: Iterable[int]) -> str:
        """
        Return the files of packets with the numbers there; empty if the capture is one file.

        Args:
            packets: Numbers of packets in the capture, from 1.
        """
        if len(self.paths) < 2:
            return ""
        places: dict[str, list[int]] = {}
        for packet in sorted(packets):
            at = np.array([packet - 1])
            number = int(self.numbers_of(at)[0])
            places.setdefault(self.file_of(packet - 1), []).append(number)
        shown = list(places.items())[:_MAX_FILES]
        texts = [f"{self._short(name)}: {ranges(numbers)}" for name, numbers in shown]
        more = len(places) - len(shown)
        return "; ".join(texts) + f"; {more} more files" * (more > 0)

    def _short(self, name: str) -> str:
        """Return the last part of a file's name if no other file has it."""
        last = PurePath(name).name
        is_distinct = sum(PurePath(each).name == last for each in self.paths) == 1
        return last if is_distinct else name


def ranges(numbers: Iterable[int], most: int | None = None) -> str:
    """Return numbers as ranges: `1-3,7`; of more than `most` ranges the first ones and the last."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    texts = [f"{first}" if first == last else f"{first}-{last}" for first, last in spans]
    if most is not None and len(texts) > most:
        texts = [*texts[: most - 2], "...", texts[-1]]
    return ",".join(texts)


def _ranks(codes: NDArray[np.uint16]) -> Ints:
    """Return of each value how many equal ones are before it."""
    order = np.argsort(codes, kind="stable")
    chosen = codes[order]
    begins = np.searchsorted(chosen, chosen)
    ranks: Ints = np.empty(len(codes), np.int64)
    ranks[order] = np.arange(len(codes)) - begins
    return ranks
