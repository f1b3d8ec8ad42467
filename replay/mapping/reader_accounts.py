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

MOST_POLLS = 64
"""Of one reader and log, of which is remembered that they brought less than there was."""

MOST_RANGES = 4096
"""Of one reader and log; beyond, small gaps are taken for filled, and debts forgotten."""

Log = tuple[str, int]
"""Captured topic and number of the partition."""


class Given(NamedTuple):
    """
    What an answer brings of a partition, in captured offsets, without control records.

    Attributes:
        topic: Its captured name.
        partition: Its number.
        captured: What the captured answer has.
        live: What that of the target has.
        bound: Behind what the target, by its own words, had to give; see `bounds`. Or 0.
    """

    topic: str
    partition: int
    captured: Ranges
    live: Ranges
    bound: int = 0


class Poll(NamedTuple):
    """
    A poll that brought less than the captured one, and less than the target said there was.

    Attributes:
        start: The first offset that it asked for or was given, in the capture.
        lacks: What it was to bring.
        step: Which it was.
    """

    start: int
    lacks: Ranges
    step: int


@dataclass(slots=True)
class Account:
    """
    One reader of one log.

    Attributes:
        log: Of which partition.
        given: What the target gave it.
        owed: What it was given in the capture, and not by the target.
        polls: Those by which the target may have withheld some of that.
    """

    log: Log

    given: Ranges = field(default_factory=Ranges)
    owed: Ranges = field(default_factory=Ranges)
    polls: list[Poll] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _steps: list[int] = field(default_factory=list)

    def note(self, step: int, given: Given) -> None:
        """Take over what both answers to a step bring."""
        captured, live = given.captured, given.live
        for each in live:
            self.given.add(*each)
            self.owed.remove(*each)
        for each in captured:
            for lack in self.given.lacks(*each):
                if len(self.owed) < MOST_RANGES:
                    self._owe(lack, step)
        if len(captured):
            # What lies between captured records is no record: no gap to be remembered.
            for gap in captured.lacks(captured.start, captured.end):
                if any(self.given.within(gap.start - 1, gap.start)):
                    self.given.add(*gap)
        if len(self.given) > MOST_RANGES:
            self.given.thin_out(MOST_RANGES // 2)
        self._note_poll(step, given)

    def _note_poll(self, step: int, given: Given) -> None:
        if not len(given.captured):
            return
        start = given.live.start if len(given.live) else given.captured.start
        end = given.live.end if len(given.live) else start
        lacks = Ranges(
            part for each in given.captured.within(end, given.bound) for part in self._owed(each)
        )
        if not len(lacks):
            return
        if len(self.polls) >= MOST_POLLS:
            self.polls = [poll for poll in self.polls if any(map(self._owes, poll.lacks))]
        if len(self.polls) < MOST_POLLS:
            self.polls.append(Poll(start, lacks, step))

    def _owed(self, offsets: Range) -> Iterator[Range]:
        return self.owed.within(*offsets)

    def _owes(self, offsets: Range) -> bool:
        return any(self._owed(offsets))

    def _owe(self, lack: Range, step: int) -> None:
        if not len(self.owed):
            self._starts.clear()
            self._steps.clear()
        self.owed.add(*lack)
        at = bisect_right(self._starts, lack.start)
        if len(self._starts) < MOST_RANGES and (not at or self._starts[at - 1] != lack.start):
            self._starts.insert(at, lack.start)
            self._steps.insert(at, step)

    def step_of(self, offset: int) -> int:
        """Return the step that was to bring a record that is owed."""
        return self._steps[max(bisect_right(self._starts, offset) - 1, 0)]


class Readers:
    """The accounts of all readers: a connection, or for shared records the group."""

    def __init__(self) -> None:
        self._accounts: dict[tuple[Hashable, Log], Account] = {}

    def note(self, reader: Hashable, step: int, given: Given) -> None:
        """Take over what both answers to a step bring of a partition."""
        if not len(given.captured) and not len(given.live):
            return
        log = given.topic, given.partition
        account = self._accounts.setdefault((reader, log), Account(log))
        account.note(step, given)

    def logs(self) -> Iterator[Log]:
        """Yield the logs of which somebody reads."""
        yield from {log for _, log in self._accounts}

    def owing(self) -> Iterator[Account]:
        """Yield the accounts of readers that lack records."""
        return (each for each in self._accounts.values() if len(each.owed))
