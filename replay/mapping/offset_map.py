"""
Mapping between captured and live offsets.

For each partition there are stretches of records that are the same on both sides, as learned from
responses. Offsets between or after them are counted from the previous stretch; where no stretch is
known, a policy decides.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from replay.mapping.appended_ranges import AppendedRecords
from replay.model.offset_ranges import Range

Policy = Literal["kept", "earliest", "latest"]

NO_OFFSET = (1 << 63) - 1
"""An offset that means "none", as negative ones do."""

MAX_STRETCHES = 1 << 16
"""Maximum number of stretches of a partition; beyond it the older half is dropped."""

TRANSLATED, COUNTED = "translated", "counted"


@dataclass(slots=True)
class _Direction:
    """Stretches by their start on one side: their start on the other side, and their length."""

    starts: list[int] = field(default_factory=list)
    stretches: list[tuple[int, int]] = field(default_factory=list)

    def learn(self, start: int, other: int, count: int) -> None:
        if not count and self.has_record(start):
            return  # a record's offset is more reliable than a mere position
        if self.starts:
            last_start, (mapped, length) = self.starts[-1], self.stretches[-1]
            if last_start <= start <= last_start + length and other - mapped == start - last_start:
                # Usually it continues or lies in the last stretch.
                if start - last_start + count > length:
                    self.stretches[-1] = mapped, start - last_start + count
                return
        at = bisect_right(self.starts, start) - 1
        last_start = self.starts[at] if at >= 0 else -1
        mapped, length = self.stretches[at] if at >= 0 else (-1, -1)
        if at >= 0 and start <= last_start + length and other - mapped == start - last_start:
            self.stretches[at] = mapped, max(length, start - last_start + count)
        elif at >= 0 and start == last_start:
            self.stretches[at] = other, count
        else:
            at += 1
            self.starts.insert(at, start)
            self.stretches.insert(at, (other, count))
        self._merge_following(at)
        if len(self.starts) > MAX_STRETCHES:
            del self.starts[: MAX_STRETCHES // 2], self.stretches[: MAX_STRETCHES // 2]

    def _merge_following(self, at: int) -> None:
        """Merge a stretch with its continuations, and drop disproved positions."""
        while at + 1 < len(self.starts):
            begin, (mapped, length) = self.starts[at], self.stretches[at]
            start, (other, count) = self.starts[at + 1], self.stretches[at + 1]
            is_same = other - mapped == start - begin
            if start > begin + length or not (is_same or (count == 0 and start < begin + length)):
                return
            if is_same:
                self.stretches[at] = mapped, max(length, start - begin + count)
            del self.starts[at + 1], self.stretches[at + 1]

    def find(self, offset: int) -> tuple[int, str] | None:
        """Return the offset on the other side and how it was found; None if unknown."""
        if not self.starts:
            return None
        at = max(bisect_right(self.starts, offset) - 1, 0)
        other, count = self.stretches[at]
        distance = offset - self.starts[at]
        if other + distance < 0:
            return None
        return other + distance, TRANSLATED if 0 <= distance <= count else COUNTED

    def maps(self, start: int, other: int, count: int) -> bool:
        """Return whether a number of known records are at these offsets of both sides."""
        at = bisect_right(self.starts, start) - 1
        if at < 0:
            return False
        mapped, length = self.stretches[at]
        distance = start - self.starts[at]
        return other - mapped == distance and distance + count <= length

    def has_record(self, offset: int) -> bool:
        """Return whether a known record is at an offset."""
        at = bisect_right(self.starts, offset) - 1
        return at >= 0 and offset - self.starts[at] < self.stretches[at][1]

    def record_ranges(self, start: int, end: int) -> Iterator[Range]:
        """Yield the parts of a range that known records cover."""
        at = max(bisect_right(self.starts, start) - 1, 0)
        while at < len(self.starts) and self.starts[at] < end:
            begin = max(self.starts[at], start)
            range_end = min(self.starts[at] + self.stretches[at][1], end)
            if begin < range_end:
                yield Range(begin, range_end)
            at += 1


@dataclass(slots=True)
class PartitionOffsets:
    """
    The offset mapping of a partition.

    Attributes:
        live: Captured-to-live offsets.
        captured: Live-to-captured offsets.
        bounds: Policy -> the live offset it yields.
        appended: The records that the replay appended.
    """

    live: _Direction = field(default_factory=_Direction)
    captured: _Direction = field(default_factory=_Direction)
    bounds: dict[str, int] = field(default_factory=dict)
    appended: AppendedRecords = field(default_factory=AppendedRecords)

    def ends_before(self, captured: int, live: int) -> bool:
        """Return whether no stretch begins later: then records can be learned in one run."""
        captured_starts, live_starts = self.live.starts, self.captured.starts
        return (not captured_starts or captured_starts[-1] <= captured) and (
            not live_starts or live_starts[-1] <= live
        )

    def learn(self, captured: int, live: int, count: int) -> None:
        """Learn the captured and the live offset of a number of records."""
        self.live.learn(captured, live, count)
        self.captured.learn(live, captured, count)

    def learn_appended(self, captured: int, live: int, count: int, step: int) -> None:
        """Learn where a step, or several consecutive ones, appended a number of records."""
        self.learn(captured, live, count)
        self.appended.add(captured, live, count, step)

    def learn_fetched(self, captured: int, live: int, count: int) -> None:
        """Learn from equal records in two responses, unless the append gave another live offset."""
        appended_at = self.appended.live_at(captured)
        if appended_at is None or appended_at == live:
            self.learn(captured, live, count)

    def has_run(self, captured: int, live: int, count: int) -> bool:
        """Return whether a number of records are known to be at these offsets."""
        return self.live.maps(captured, live, count) and self.captured.maps(live, captured, count)

    def captured_offset(self, live: int) -> int:
        """Return the captured offset for a live one."""
        found = self.captured.find(live) if 0 <= live < NO_OFFSET else None
        return live if found is None else found[0]

    def live_offset(self, captured: int) -> int:
        """Return the live offset for a captured one."""
        found = self.live.find(captured)
        return captured if found is None else found[0]


class OffsetMap:
    """
    The offset mapping of all partitions, by captured topic names.

    Args:
        policy: The substitute of an unknown offset: the first or the next offset of the target, or
            the captured one.
    """

    def __init__(self, policy: Policy = "kept") -> None:
        self.policy = policy
        self._logs: dict[tuple[str, int], PartitionOffsets] = {}

    def learn(self, topic: str, partition: int, captured: int, live: int, count: int = 0) -> None:
        """Learn the captured and the live offset of a number of records; 0 for a mere position."""
        if min(captured, live) < 0 or NO_OFFSET in (captured, live):
            return
        self.log(topic, partition).learn(captured, live, count)

    def log(self, topic: str, partition: int) -> PartitionOffsets:
        """Return the mapping of a partition."""
        log = self._logs.get((topic, partition))
        if log is None:
            log = self._logs[topic, partition] = PartitionOffsets()
        return log

    def forget(self, topic: str) -> None:
        """Drop the mapping of a topic's logs, as the topic was deleted."""
        self._logs = {log: each for log, each in self._logs.items() if log[0] != topic}

    def logs(self) -> Iterator[tuple[tuple[str, int], PartitionOffsets]]:
        """Yield captured topic and number of each partition, with its mapping."""
        yield from self._logs.items()

    def set_bounds(self, topic: str, partition: int, earliest: int, latest: int) -> None:
        """Store the live start and end offset of a partition, for the policies."""
        self.log(topic, partition).bounds = {"earliest": earliest, "latest": latest}

    def live(self, topic: str, partition: int, offset: int) -> tuple[int, str]:
        """Return the live offset, and how it was found."""
        if offset < 0 or offset == NO_OFFSET:
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
        """Return the captured offset for a live one."""
        log = self._logs.get((topic, partition))
        return offset if log is None else log.captured_offset(offset)

    def rule(self, topic: str, partition: int, offset: int) -> str:
        """
        Return how the live offset for a captured one is found.

        `TRANSLATED` in a stretch of records that both sides have, `COUNTED` beside one, else empty.
        """
        log = self._logs.get((topic, partition))
        found = log.live.find(offset) if log else None
        return found[1] if found else ""

    def has_record(self, topic: str, partition: int, offset: int) -> bool:
        """Return whether a record that both sides have is at a captured offset."""
        log = self._logs.get((topic, partition))
        return log is not None and log.live.has_record(offset)
