"""
Accounts of the records returned to each reader of each log, in the capture and in the replay.

A long poll ends as soon as there is data, so responses are not compared poll by poll: records
missing from one may come with the next. Only ranges of offsets are stored.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from replay.model.offset_ranges import Range, Ranges

MAX_POLLS = 64
"""Maximum number of polls remembered as short, for a reader and log."""

MAX_RANGES = 4096
"""
Maximum number of ranges for a reader and log; beyond it small gaps are filled, and further missing
records not recorded.
"""

TopicPartition = tuple[str, int]
"""Captured topic and partition."""


class ReturnedRecords(NamedTuple):
    """
    The records of a partition in both responses, in captured offsets and without control records.

    Attributes:
        topic: The captured topic name.
        partition: The partition.
        captured: The records in the captured response.
        live: The records in the target's response; the same object if these are all captured ones.
        readable_end: End of the offsets that the target reported as readable; see
            `with_readable_ends`. 0 if unknown.
    """

    topic: str
    partition: int
    captured: Ranges
    live: Ranges
    readable_end: int = 0


class Poll(NamedTuple):
    """
    A poll that returned less than the captured one, and less than the target reported as readable.

    Attributes:
        start: The first offset requested or returned, as a captured offset.
        missing: The records that it should have returned.
        step: The number of its step.
    """

    start: int
    missing: Ranges
    step: int


@dataclass(slots=True)
class ReaderAccount:
    """
    The account of one reader of one log.

    Attributes:
        log: The partition.
        returned: The records that the target returned.
        missing: The records returned in the capture, but not by the target.
        polls: The polls in which the target may have withheld some of these.
    """

    log: TopicPartition

    returned: Ranges = field(default_factory=Ranges)
    missing: Ranges = field(default_factory=Ranges)
    polls: list[Poll] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _steps: list[int] = field(default_factory=list)

    def record(self, step: int, returned: ReturnedRecords) -> None:
        """Record the records in both responses of a step."""
        captured, live = returned.captured, returned.live
        is_whole = captured is live
        for each in live:
            self.returned.add(*each)
            if self.missing:
                self.missing.remove(*each)
        for each in () if is_whole else captured:
            for gap in self.returned.missing(*each):
                if len(self.missing) < MAX_RANGES:
                    self._add_missing(gap, step)
        if len(captured) > 1:
            # Offsets between captured records hold no records, so they are not gaps.
            for hole in captured.missing(captured.start, captured.end):
                if any(self.returned.within(hole.start - 1, hole.start)):
                    self.returned.add(*hole)
        if len(self.returned) > MAX_RANGES:
            self.returned.thin_out(MAX_RANGES // 2)
        if not is_whole:
            self._record_poll(step, returned)

    def _record_poll(self, step: int, returned: ReturnedRecords) -> None:
        if not len(returned.captured):
            return
        start = returned.live.start if len(returned.live) else returned.captured.start
        end = returned.live.end if len(returned.live) else start
        missing = Ranges(
            part
            for each in returned.captured.within(end, returned.readable_end)
            for part in self._missing_in(each)
        )
        if not len(missing):
            return
        if len(self.polls) >= MAX_POLLS:
            self.polls = [poll for poll in self.polls if any(map(self._is_missing, poll.missing))]
        if len(self.polls) < MAX_POLLS:
            self.polls.append(Poll(start, missing, step))

    def _missing_in(self, offsets: Range) -> Iterator[Range]:
        return self.missing.within(*offsets)

    def _is_missing(self, offsets: Range) -> bool:
        return any(self._missing_in(offsets))

    def _add_missing(self, offsets: Range, step: int) -> None:
        if not len(self.missing):
            self._starts.clear()
            self._steps.clear()
        self.missing.add(*offsets)
        at = bisect_right(self._starts, offsets.start)
        if len(self._starts) < MAX_RANGES and (not at or self._starts[at - 1] != offsets.start):
            self._starts.insert(at, offsets.start)
            self._steps.insert(at, step)

    def step_of(self, offset: int) -> int:
        """Return the step that should have returned a missing record."""
        return self._steps[max(bisect_right(self._starts, offset) - 1, 0)]


class ReaderAccounts:
    """The accounts of all readers: connections, or for shared records the group."""

    def __init__(self) -> None:
        self._accounts: dict[tuple[Hashable, TopicPartition], ReaderAccount] = {}

    def record(self, reader: Hashable, step: int, returned: ReturnedRecords) -> None:
        """Record the records of a partition in both responses of a step."""
        if not returned.captured and not returned.live:
            return
        log = returned.topic, returned.partition
        account = self._accounts.get((reader, log))
        if account is None:
            account = self._accounts[reader, log] = ReaderAccount(log)
        account.record(step, returned)

    def forget(self, topic: str) -> None:
        """Drop the accounts of a topic's logs, as the topic was deleted."""
        self._accounts = {
            place: each for place, each in self._accounts.items() if place[1][0] != topic
        }

    def logs(self) -> Iterator[TopicPartition]:
        """Yield the logs that have readers."""
        yield from {log for _, log in self._accounts}

    def with_missing(self) -> Iterator[ReaderAccount]:
        """Yield the accounts of readers that lack records."""
        return (each for each in self._accounts.values() if len(each.missing))
