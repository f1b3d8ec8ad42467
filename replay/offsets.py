"""
Offsets of the capture and of the target: which record is which.

Per partition, stretches of records that are the same on both sides, as answers told. What lies
between or behind them is counted from the stretch before; where nothing is known, a policy decides.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from replay.appended import Appended
from replay.ranges import Range

Policy = Literal["kept", "earliest", "latest"]

NEVER = (1 << 63) - 1
"""Stands for no offset, as do negative ones."""

MOST_STRETCHES = 1 << 16
"""Of a partition; the older half is forgotten when there are more."""

TRANSLATED, COUNTED = "translated", "counted"


@dataclass(slots=True)
class _Side:
    """Stretches by their start on one side: where they start on the other, and their length."""

    starts: list[int] = field(default_factory=list)
    stretches: list[tuple[int, int]] = field(default_factory=list)

    def learn(self, start: int, other: int, count: int) -> None:
        if not count and self.holds(start):
            return  # where a record is is known better than by a mere position
        if self.starts:
            begin, (there, known) = self.starts[-1], self.stretches[-1]
            if begin <= start <= begin + known and other - there == start - begin:
                # What goes on from the last stretch, as mostly, or lies in it.
                if start - begin + count > known:
                    self.stretches[-1] = there, start - begin + count
                return
        at = bisect_right(self.starts, start) - 1
        begin = self.starts[at] if at >= 0 else -1
        there, known = self.stretches[at] if at >= 0 else (-1, -1)
        if at >= 0 and start <= begin + known and other - there == start - begin:
            self.stretches[at] = there, max(known, start - begin + count)
        elif at >= 0 and start == begin:
            self.stretches[at] = other, count
        else:
            at += 1
            self.starts.insert(at, start)
            self.stretches.insert(at, (other, count))
        self._absorb(at)
        if len(self.starts) > MOST_STRETCHES:
            del self.starts[: MOST_STRETCHES // 2], self.stretches[: MOST_STRETCHES // 2]

    def _absorb(self, at: int) -> None:
        """Take into a stretch what goes on from it, and out what mere positions it proves wrong."""
        while at + 1 < len(self.starts):
            begin, (there, known) = self.starts[at], self.stretches[at]
            start, (other, count) = self.starts[at + 1], self.stretches[at + 1]
            is_same = other - there == start - begin
            if start > begin + known or not (is_same or (count == 0 and start < begin + known)):
                return
            if is_same:
                self.stretches[at] = there, max(known, start - begin + count)
            del self.starts[at + 1], self.stretches[at + 1]

    def find(self, offset: int) -> tuple[int, str] | None:
        """Return the offset on the other side and how it was found; None where nothing tells."""
        if not self.starts:
            return None
        at = max(bisect_right(self.starts, offset) - 1, 0)
        other, count = self.stretches[at]
        distance = offset - self.starts[at]
        if other + distance < 0:
            return None
        return other + distance, TRANSLATED if 0 <= distance <= count else COUNTED

    def holds(self, offset: int) -> bool:
        """Tell whether a record that both sides have is at an offset."""
        at = bisect_right(self.starts, offset) - 1
        return at >= 0 and offset - self.starts[at] < self.stretches[at][1]

    def held(self, start: int, end: int) -> Iterator[Range]:
        """Yield the parts of a range with records that both sides have."""
        at = max(bisect_right(self.starts, start) - 1, 0)
        while at < len(self.starts) and self.starts[at] < end:
            begin = max(self.starts[at], start)
            behind = min(self.starts[at] + self.stretches[at][1], end)
            if begin < behind:
                yield Range(begin, behind)
            at += 1


@dataclass(slots=True)
class Log:
    """
    A partition.

    Attributes:
        live: The target's offsets, by the captured ones.
        captured: The reverse.
        bounds: Policy -> the offset of the target that it chooses.
        appended: What the replay wrote to it.
    """

    live: _Side = field(default_factory=_Side)
    captured: _Side = field(default_factory=_Side)
    bounds: dict[str, int] = field(default_factory=dict)
    appended: Appended = field(default_factory=Appended)

    def ends_before(self, captured: int, live: int) -> bool:
        """Tell whether no stretch begins behind: then records in a row may be learned at once."""
        ours, theirs = self.live.starts, self.captured.starts
        return (not ours or ours[-1] <= captured) and (not theirs or theirs[-1] <= live)

    def learn(self, captured: int, live: int, count: int) -> None:
        """Take over that so many records begin here there and there here."""
        self.live.learn(captured, live, count)
        self.captured.learn(live, captured, count)

    def append(self, captured: int, live: int, count: int, step: int) -> None:
        """Take over where a step, or several in a row, appended so many records."""
        self.learn(captured, live, count)
        self.appended.add(captured, live, count, step)

    def meet(self, captured: int, live: int, count: int) -> None:
        """Take over that equal records were given; where each was appended is known better."""
        known = self.appended.live_at(captured)
        if known is None or known == live:
            self.learn(captured, live, count)

    def captured_offset(self, live: int) -> int:
        """Return the offset that one of the target has in the capture."""
        found = self.captured.find(live) if 0 <= live < NEVER else None
        return live if found is None else found[0]

    def live_offset(self, captured: int) -> int:
        """Return the offset that a captured one has on the target."""
        found = self.live.find(captured)
        return captured if found is None else found[0]


class Offsets:
    """
    Offsets of all partitions, by the captured names of their topics.

    Args:
        policy: What to send for an offset that nothing is known of: the first or the next offset of
            the target, or the captured one.
    """

    def __init__(self, policy: Policy = "kept") -> None:
        self.policy = policy
        self._logs: dict[tuple[str, int], Log] = {}

    def learn(self, topic: str, partition: int, captured: int, live: int, count: int = 0) -> None:
        """Take over that so many records begin here there and there here; 0 for a mere position."""
        if min(captured, live) < 0 or NEVER in (captured, live):
            return
        self.log(topic, partition).learn(captured, live, count)

    def log(self, topic: str, partition: int) -> Log:
        """Return what is known of a partition."""
        return self._logs.setdefault((topic, partition), Log())

    def logs(self) -> Iterator[tuple[tuple[str, int], Log]]:
        """Yield captured topic and number of each partition, and what is known of it."""
        yield from self._logs.items()

    def know(self, topic: str, partition: int, earliest: int, latest: int) -> None:
        """Take over where a partition of the target begins and ends; the policies want it."""
        self.log(topic, partition).bounds = {"earliest": earliest, "latest": latest}

    def live(self, topic: str, partition: int, offset: int) -> tuple[int, str]:
        """Return the offset on the target, and how it was found."""
        if offset < 0 or offset == NEVER:
            return offset, ""
        log = self._logs.get((topic, partition))
        if log is None:
            return offset, "kept"
        found = log.live.find(offset)
        if found is not None:
            return found
        if self.policy in log.bounds:
            return log.bounds[self.policy], self.policy
        return offset, "kept"

    def captured(self, topic: str, partition: int, offset: int) -> int:
        """Return the offset that one of the target has in the capture."""
        log = self._logs.get((topic, partition))
        return offset if log is None else log.captured_offset(offset)

    def knows(self, topic: str, partition: int, offset: int) -> bool:
        """Tell whether a captured offset lies in a stretch of records that both sides have."""
        log = self._logs.get((topic, partition))
        found = log.live.find(offset) if log else None
        return found is not None and found[1] == TRANSLATED

    def has_record(self, topic: str, partition: int, offset: int) -> bool:
        """Tell whether a record that both sides have is at a captured offset."""
        log = self._logs.get((topic, partition))
        return log is not None and log.live.holds(offset)
