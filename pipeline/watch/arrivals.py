"""Files of a capture host in order of arrival: numbered, with late and missing ones detected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

NUMBERED_NAMES = (
    re.compile(r"(?P<series>.*_)(?P<number>\d{5,})_\d{8,}(?P<rest>\.\w+(\.\w+)?)?$"),
    re.compile(r"(?P<series>.*\.p?cap(ng)?)(?P<number>\d+)$"),
    re.compile(r"(?P<series>.*?)(?P<number>\d+)(?P<rest>\.\w+(\.\w+)?)?$"),
)
"""Names of rotated files: of dumpcap, of tcpdump -C, of others."""

TIMES_FROM = 10_000_000
"""A number from here on is a time, not a count."""


@dataclass(slots=True)
class Arrivals:
    """
    The files that have arrived so far.

    Attributes:
        files: Number of files.
        packets: Number of their packets.
        latest_ns: Capture time of the first packet of the latest file.
        clock_ns: The latest time of a segment in them.
        numbers: The last number of each series of rotated files.
    """

    files: int = 0
    packets: int = 0
    latest_ns: int = 0
    clock_ns: int = 0
    numbers: dict[str, int] = field(default_factory=dict)

    def add_files(self, found: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """
        Add files that arrived together, in the order of their first packets.

        Args:
            found: `path`; `packets`; `first_ns`, negative without one; `latest_ns`, the time of the
                latest segment.

        Returns:
            `file`, its number; `path`; `packets`; `first_packet`; `latest_ns`, when the last file
                before it
            began; `clock_ns`, the latest time of a segment before it; `problem`, null without one.
        """
        return [self._add_file(file) for file in sorted(found, key=_order_key)]

    def _add_file(self, file: Mapping[str, Any]) -> dict[str, Any]:
        problems = [*self._late(file), *self._missing(file["path"])]
        out = {
            "file": self.files,
            "path": file["path"],
            "packets": int(file["packets"]),
            "first_packet": self.packets,
            "latest_ns": self.latest_ns,
            "clock_ns": self.clock_ns,
            "problem": "; ".join(problems) or None,
        }
        self.files += 1
        self.packets += int(file["packets"])
        self.clock_ns = max(self.clock_ns, int(file["latest_ns"]))
        return out

    def _late(self, file: Mapping[str, Any]) -> list[str]:
        first_ns = file["first_ns"]
        late = 0 <= first_ns < self.latest_ns
        self.latest_ns = max(self.latest_ns, first_ns)
        return ["late: files that begin after it were read before it"] if late else []

    def _missing(self, path: str) -> list[str]:
        match = next((found for each in NUMBERED_NAMES if (found := each.match(path))), None)
        if match is None or int(match["number"]) >= TIMES_FROM:
            return []
        series, number = match["series"], int(match["number"])
        last = self.numbers.get(series)
        self.numbers[series] = max(number, -1 if last is None else last)
        if last is None or number <= last + 1:
            return []
        if number == last + 2:
            return [f"a file is missing before it: number {last + 1}"]
        count = number - last - 1
        return [f"{count} files are missing before it: numbers {last + 1} to {number - 1}"]


def _order_key(each: Mapping[str, Any]) -> tuple[bool, int, str]:
    return each["first_ns"] < 0, each["first_ns"], each["path"]
