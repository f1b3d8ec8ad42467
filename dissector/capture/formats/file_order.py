"""
The order of the files of a capture: that of their first packets, whatever the order of their names.

A shell sorts `cap.pcap1, cap.pcap10, cap.pcap2`, and the newest file of a ring may be any of them.
Files of one time are in the order of their names, as in the pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dissector.capture.columns import Packets
from dissector.errors import Problem

_JITTER_NS = 10_000_000
"""Packets of several interfaces or processors are not quite in time order."""


class FileBegin(NamedTuple):
    """
    A file of a capture.

    Attributes:
        number: Its index among the given paths.
        first_ns: Time of its first packet; None without one, or if the file can't be read twice.
    """

    number: int
    first_ns: int | None


def in_order(
    names: Sequence[str],
    is_ordered: Callable[[str], bool],
    first_time: Callable[[str], int | None],
) -> Iterator[list[FileBegin]]:
    """
    Yield groups of files, one after another, each in the order of its first packets.

    Args:
        names: The files as given.
        is_ordered: Whether a file can be opened in advance; others, such as pipes, keep their
            place, and are groups by themselves.
        first_time: Returns the time of the first packet of a file.
    """
    for ordered, numbers in groupby(range(len(names)), lambda number: is_ordered(names[number])):
        if ordered:
            begins = [FileBegin(number, first_time(names[number])) for number in numbers]
            yield sorted(
                begins, key=lambda each: (each.first_ns is None, each.first_ns, names[each.number])
            )
        else:
            yield from ([FileBegin(number, None)] for number in numbers)


def repeated_files(names: Sequence[str]) -> list[tuple[str, Problem]]:
    """Return a problem for each file that is given again, under whatever name."""
    found: dict[tuple[int, int], int] = {}
    problems = []
    for number, name in enumerate(names):
        with suppress(OSError, ValueError):
            status = Path(name).stat()
            first = found.setdefault((status.st_dev, status.st_ino), number)
            if first != number:
                also = "" if names[first] == name else f", as {names[first]}"
                problems.append(
                    (name, Problem(f"is given twice{also}: its packets are read twice"))
                )
    return problems


class TimeCheck:
    """Notices files that begin before the end of those that were read before them."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._seen: set[int] = set()
        self._clock_ns: int | None = None

    def problems(self, packets: Packets) -> list[tuple[str, Problem]]:
        """Take the next window of the capture; return a problem for each file that is too early."""
        if not len(packets):
            return []
        is_new = len(self._seen) < len(self._names)
        found = self._too_early(packets) if is_new else []
        last_ns = int(packets.time_ns.max())
        self._clock_ns = last_ns if self._clock_ns is None else max(self._clock_ns, last_ns)
        return found

    def _too_early(self, packets: Packets) -> list[tuple[str, Problem]]:
        problems = []
        numbers, rows = np.unique(packets.file, return_index=True)
        for number, row in zip(numbers.tolist(), rows.tolist(), strict=True):
            back_ns = (self._clock_ns or 0) - int(packets.time_ns[row])
            if number not in self._seen and self._clock_ns is not None and back_ns > _JITTER_NS:
                what = f"begins {back_ns / 1e9:,.3f} s before the end of what was read before it"
                problems.append((self._names[number], Problem(what)))
            self._seen.add(number)
        return problems
