"""
The balance at the end of a pass: what was written and given in the capture against the replay.

The acknowledged records of each partition are held against the log of the target, and what each
reader was given against what it was given in the capture. The target is asked where only it knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from dissector.errors import ReplayError
from replay.appended import Extra
from replay.cluster import Cluster
from replay.contents import data_offsets
from replay.offsets import Log
from replay.outcome import Difference
from replay.ranges import Range, Ranges
from replay.readers import Account
from replay.topics import LATEST, fetch, offsets
from replay.world import World

_Place = tuple[str, int]
"""Captured topic and number of a partition."""

_MOST_FETCHES = 64
"""Of one range that the target is asked for."""

_MOST_LOOKS = 64
"""At places of one log where more may have been written."""


class Finding(NamedTuple):
    """A difference that only the end of a pass shows, at the step where it began."""

    step: int
    difference: Difference


async def balance(world: World, cluster: Cluster) -> list[Finding]:
    """
    Return what lacks, is there twice, or stands in another order.

    Args:
        world: Of the pass that is over.
        cluster: The target; what it does not answer is left open.
    """
    return await _Balance(world, cluster).find()


class _Balance:
    def __init__(self, world: World, cluster: Cluster) -> None:
        self._world = world
        self._cluster = cluster
        self._found: list[Finding] = []

    async def find(self) -> list[Finding]:
        written = {place: log for place, log in self._world.offsets.logs() if log.appended}
        owing = list(self._world.readers.owing())
        if not written and not owing:
            return []
        try:
            names = {place[0] for place in written} | {account.log[0] for account in owing}
            await self._cluster.refresh([self._world.names.topic(each) for each in names])
            ends = await self._ends(written)
        except ReplayError:
            ends = {}
        for place, log in written.items():
            await self._written(place, log, ends.get(place))
        for account in owing:
            await self._given(account)
        return self._found

    async def _ends(self, written: dict[_Place, Log]) -> dict[_Place, int]:
        """Return where logs end; followers may have yet to copy what a leader acknowledged."""
        places = {(self._world.names.topic(topic), at): (topic, at) for topic, at in written}
        found: dict[_Place, int] = {}
        left = set(places)
        try:
            async for _ in self._cluster.attempts("logs end before what was acknowledged"):
                ends = await offsets(self._cluster, left, LATEST)
                found |= {places[place]: end for place, end in ends.items()}
                left = {
                    place
                    for place, end in ends.items()
                    if end < written[places[place]].appended.live_end
                }
                if not left:
                    break
        except ReplayError:
            if not found:
                raise
        return found

    async def _written(self, place: _Place, log: Log, end: int | None) -> None:
        """Hold what was acknowledged against the log of the target."""
        answer = _path("responses", "partition_responses", place)
        request = _path("topic_data", "partition_data", place)
        for fault in log.appended.faults():
            path = f"{request}.records" if fault.field == "records" else f"{answer}.{fault.field}"
            self._add(fault.step, path, fault.captured, fault.replayed)
        if end is None:
            return
        newest = log.appended.newest
        if end < newest.live_end:
            lost = Range(max(newest.captured, newest.captured + end - newest.live), newest.end)
            what = f"not in the log, which ends at {end} of the target"
            self._add(newest.step, f"{request}.records[{lost}]", _count(lost), what)
        room = log.appended.unsure
        for extra in _extra(log, end):
            there = await self._data(place, extra.live)
            if there is None:
                continue
            more = there.size - extra.expected
            room, more = max(room - more, 0), more - room
            if more > 0:
                first = next(iter(there))
                at = Range(first.start, first.start + more)
                what = f"{_count(at)} more than were written, from offset {at.start} of the target"
                path = f"{request}.records[{extra.behind.captured}]"
                self._add(extra.behind.step, path, "once", what)

    async def _given(self, account: Account) -> None:
        """Hold what a reader was given against the capture."""
        log, lost = self._world.offsets.log(*account.log), Ranges()
        for owed in islice(self._owed(account, log), _MOST_LOOKS):
            if log.appended.is_unwritten(*owed):
                continue  # who wrote it was not replayed
            # What one poll did not bring another was not asked for: then the target still has it.
            live = Range(log.live_offset(owed.start), log.live_offset(owed.end - 1) + 1)
            there = await self._data(account.log, live)
            for each in there.lacks(*live) if there is not None else ():
                start, end = log.captured_offset(each.start), log.captured_offset(each.end - 1) + 1
                lost.add(max(start, owed.start), min(end, owed.end))
        if len(lost):
            first = next(iter(lost))
            path = f"{_path('responses', 'partitions', account.log)}.records[{first}]"
            captured = f"{lost.size:,} given that lack, the first at offset {first.start}"
            step = account.step_of(first.start)
            self._add(step, path, captured, "not given, and not in the log of the target")

    def _owed(self, account: Account, log: Log) -> Iterator[Range]:
        """Yield what a reader is owed; of a capture that lacks packets, what it shows written."""
        for owed in account.owed:
            if self._world.is_partial:
                yield from log.live.held(*owed)
            else:
                yield owed

    async def _data(self, place: _Place, offsets: Range) -> Ranges | None:
        """
        Return which offsets of the target have records of clients.

        What is not reached in so many fetches counts as there. None if the target gives nothing.
        """
        topic, found, start = self._world.names.topic(place[0]), Ranges(), offsets.start
        try:
            for _ in range(_MOST_FETCHES):
                records = await fetch(self._cluster, topic, place[1], start)
                if records is None:
                    return None
                for each in data_offsets(records).within(*offsets):
                    found.add(*each)
                all_ = data_offsets(records, controls=True)
                if not len(all_) or all_.end <= start:
                    return found
                start = all_.end
                if start >= offsets.end:
                    return found
        except ReplayError:
            return None
        found.add(start, offsets.end)
        return found

    def _add(self, step: int, path: str, captured: str, replayed: str) -> None:
        self._found.append(Finding(step, Difference(path, captured, replayed)))


def _extra(log: Log, end: int) -> Iterator[Extra]:
    """Yield where the log may have more than the captured one."""
    yield from islice(log.appended.extra(), _MOST_LOOKS)
    newest = log.appended.newest
    if end > newest.live_end:
        yield Extra(newest, Range(newest.live_end, end), 0)


def _path(topics: str, partitions: str, place: _Place) -> str:
    return f"{topics}[{place[0]}].{partitions}[{place[1]}]"


def _count(offsets: Range) -> str:
    return f"{len(offsets):,} record{'s' * (len(offsets) != 1)}"
