"""Files of a capture host as they come: numbered, and looked at for those late and missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

NUMBERS = (
    re.compile(r"(?P<series>.*_)(?P<number>\d{5,})_\d{8,}(?P<rest>\.\w+(\.\w+)?)?$"),
    re.compile(r"(?P<series>.*\.p?cap(ng)?)(?P<number>\d+)$"),
    re.compile(r"(?P<series>.*?)(?P<number>\d+)(?P<rest>\.\w+(\.\w+)?)?$"),
)
"""How rotated files are numbered: by dumpcap, by tcpdump -C, by others."""

TIMES_FROM = 10_000_000
"""A number from here on is a time, not a count."""


@dataclass(slots=True)
class Arrivals:
    """
    What is known of the files that came so far.

    Attributes:
        files: How many.
        packets: How many packets they have.
        latest_ns: When the last one of them began.
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
        Take files that came together, in the order of their first packets.

        Args:
            found: `path`; `packets`; `first_ns`, negative where there is none; `latest_ns`, that of
                the latest segment.

        Returns:
            `file`, its number; `path`; `packets`; `first_packet`; `latest_ns`, when the last one
            up to it began; `clock_ns`, the latest time of a segment before it; `problem`, null
            where there is none.
        """
        return [self._take(each) for each in sorted(found, key=_place)]

    def _take(self, each: Mapping[str, Any]) -> dict[str, Any]:
        problems = [*self._late(each), *self._missing(each["path"])]
        out = {
            "file": self.files,
            "path": each["path"],
            "packets": int(each["packets"]),
            "first_packet": self.packets,
            "latest_ns": self.latest_ns,
            "clock_ns": self.clock_ns,
            "problem": "; ".join(problems) or None,
        }
        self.files += 1
        self.packets += int(each["packets"])
        self.clock_ns = max(self.clock_ns, int(each["latest_ns"]))
        return out

    def _late(self, each: Mapping[str, Any]) -> list[str]:
        first_ns = each["first_ns"]
        late = 0 <= first_ns < self.latest_ns
        self.latest_ns = max(self.latest_ns, first_ns)
        return ["came late: files that begin after it were read before"] if late else []

    def _missing(self, path: str) -> list[str]:
        match = next((found for each in NUMBERS if (found := each.match(path))), None)
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


def _place(each: Mapping[str, Any]) -> tuple[bool, int, str]:
    return each["first_ns"] < 0, each["first_ns"], each["path"]
