"""
Notes, for each reader of each log, the records that it was given in capture and replay.

A long poll ends when something is there, so answers are not compared poll by poll: what one does
not bring may come with the next. Only ranges of offsets are kept.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from replay.model.offset_ranges import Range, Ranges

MAX_POLLS = 64
"""Of one reader and log, of which is remembered that they brought less than there was."""

MAX_RANGES = 4096
"""Of one reader and log; beyond, small gaps are taken for filled, and debts forgotten."""

TopicPartition = tuple[str, int]
"""Captured topic and number of the partition."""


class ReturnedRecords(NamedTuple):
    """
    What an answer brings of a partition, in captured offsets, without control records.

    Attributes:
        topic: Its captured name.
        partition: Its number.
        captured: What the captured answer has.
        live: What that of the target has.
        readable_end: Behind what the target, by its own words, had to give; see `bounds`. Or 0.
    """

    topic: str
    partition: int
    captured: Ranges
    live: Ranges
    readable_end: int = 0


class Poll(NamedTuple):
    """
    A poll that brought less than the captured one, and less than the target said there was.

    Attributes:
        start: The first offset that it asked for or was given, in the capture.
        missing: What it was to bring.
        step: Which it was.
    """

    start: int
    missing: Ranges
    step: int


@dataclass(slots=True)
class ReaderAccount:
    """
    One reader of one log.

    Attributes:
        log: Of which partition.
        returned: What the target gave it.
        missing: What it was given in the capture, and not by the target.
        polls: Those by which the target may have withheld some of that.
    """

    log: TopicPartition

    returned: Ranges = field(default_factory=Ranges)
    missing: Ranges = field(default_factory=Ranges)
    polls: list[Poll] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _steps: list[int] = field(default_factory=list)

    def record(self, step: int, returned: ReturnedRecords) -> None:
        """Take over what both answers to a step bring."""
        captured, live = returned.captured, returned.live
        for each in live:
            self.returned.add(*each)
            self.missing.remove(*each)
        for each in captured:
            for lack in self.returned.missing(*each):
                if len(self.missing) < MAX_RANGES:
                    self._add_missing(lack, step)
        if len(captured):
            # What lies between captured records is no record: no gap to be remembered.
            for gap in captured.missing(captured.start, captured.end):
                if any(self.returned.within(gap.start - 1, gap.start)):
                    self.returned.add(*gap)
        if len(self.returned) > MAX_RANGES:
            self.returned.thin_out(MAX_RANGES // 2)
        self._record_poll(step, returned)

    def _record_poll(self, step: int, returned: ReturnedRecords) -> None:
        if not len(returned.captured):
            return
        start = returned.live.start if len(returned.live) else returned.captured.start
        end = returned.live.end if len(returned.live) else start
        lacks = Ranges(
            part
            for each in returned.captured.within(end, returned.readable_end)
            for part in self._missing_in(each)
        )
        if not len(lacks):
            return
        if len(self.polls) >= MAX_POLLS:
            self.polls = [poll for poll in self.polls if any(map(self._is_missing, poll.missing))]
        if len(self.polls) < MAX_POLLS:
            self.polls.append(Poll(start, lacks, step))

    def _missing_in(self, offsets: Range) -> Iterator[Range]:
        return self.missing.within(*offsets)

    def _is_missing(self, offsets: Range) -> bool:
        return any(self._missing_in(offsets))

    def _add_missing(self, lack: Range, step: int) -> None:
        if not len(self.missing):
            self._starts.clear()
            self._steps.clear()
        self.missing.add(*lack)
        at = bisect_right(self._starts, lack.start)
        if len(self._starts) < MAX_RANGES and (not at or self._starts[at - 1] != lack.start):
            self._starts.insert(at, lack.start)
            self._steps.insert(at, step)

    def step_of(self, offset: int) -> int:
        """Return the step that was to bring a record that is owed."""
        return self._steps[max(bisect_right(self._starts, offset) - 1, 0)]


class ReaderAccounts:
    """The accounts of all readers: a connection, or for shared records the group."""

    def __init__(self) -> None:
        self._accounts: dict[tuple[Hashable, TopicPartition], ReaderAccount] = {}

    def record(self, reader: Hashable, step: int, returned: ReturnedRecords) -> None:
        """Take over what both answers to a step bring of a partition."""
        if not len(returned.captured) and not len(returned.live):
            return
        log = returned.topic, returned.partition
        account = self._accounts.setdefault((reader, log), ReaderAccount(log))
        account.record(step, returned)

    def logs(self) -> Iterator[TopicPartition]:
        """Yield the logs of which somebody reads."""
        yield from {log for _, log in self._accounts}

    def with_missing(self) -> Iterator[ReaderAccount]:
        """Yield the accounts of readers that lack records."""
        return (each for each in self._accounts.values() if len(each.missing))
