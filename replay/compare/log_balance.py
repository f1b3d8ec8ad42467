"""
The balance at the end of a pass: records written and read in the capture against the replay.

The acknowledged records of each partition are compared with the log of the target, and the records
given to each reader with those in the capture. Doubtful ranges are fetched from the target.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple, TypeVar

from dissector.errors import ReplayError
from replay.client.cluster import Cluster
from replay.client.topic_admin import ends, fetch
from replay.compare.record_diff import data_offsets
from replay.mapping.appended_ranges import Extra
from replay.mapping.id_map import World
from replay.mapping.offset_map import Log
from replay.mapping.reader_accounts import Account
from replay.model.offset_ranges import Range, Ranges
from replay.model.outcome import Difference

_T = TypeVar("_T")

_Place = tuple[str, int]
"""Captured topic and partition."""

_MOST_FETCHES = 64
"""Limit of Fetch requests for one range of offsets."""

_MOST_LOOKS = 64
"""Limit of ranges checked for one log (possible extra records) or one reader (missing ones)."""

_NOT_ALL = f"only the first {_MOST_LOOKS} places of the log were looked at"
_STOPPED = "the replay ended before"


class Finding(NamedTuple):
    """A difference found only at the end of a pass, with the step where it began."""

    step: int
    difference: Difference


class LeftOpen(NamedTuple):
    """A log that could not be balanced completely, and why."""

    topic: str
    partition: int
    why: str


class Balance(NamedTuple):
    """The result of a balance."""

    findings: list[Finding]
    left_open: list[LeftOpen]


async def balance(world: World, cluster: Cluster) -> Balance:
    """
    Find records that are missing, duplicated, or in another order.

    Args:
        world: The id mapping of the finished pass.
        cluster: The target; logs for which it does not respond are left open.
    """
    return await _Balancing(world, cluster).whole()


def not_balanced(world: World) -> Balance:
    """Return a balance with all logs of a pass left open, as the pass ended early."""
    logs = {place for place, log in world.offsets.logs() if log.appended}
    logs.update(world.readers.logs())
    return Balance([], [LeftOpen(*place, _STOPPED) for place in sorted(logs)])


class _Balancing:
    def __init__(self, world: World, cluster: Cluster) -> None:
        self._world = world
        self._cluster = cluster
        self._found: list[Finding] = []
        self._open: dict[_Place, str] = {}

    async def whole(self) -> Balance:
        written = {place: log for place, log in self._world.offsets.logs() if log.appended}
        owing = list(self._world.readers.owing())
        if written or owing:
            await self._refresh(written.keys() | {account.log for account in owing})
            found = await self._ends(written)
            for place, log in written.items():
                await self._checked(place, self._written(place, log, found[place]))
            for account in owing:
                await self._checked(account.log, self._given(account))
        return Balance(self._found, [LeftOpen(*each, why) for each, why in self._open.items()])

    async def _refresh(self, places: Iterable[_Place]) -> None:
        names = {self._world.names.topic(topic) for topic, _ in places}
        with suppress(ReplayError):  # requests for the logs will fail and be reported
            await self._cluster.refresh(names)

    async def _checked(self, place: _Place, check: Awaitable[None]) -> None:
        """Run a check; leave the log open if the target does not respond."""
        try:
            await check
        except ReplayError as error:
            self._leave_open(place, str(error))

    def _leave_open(self, place: _Place, why: str) -> None:
        self._open.setdefault(place, why)

    async def _ends(self, written: dict[_Place, Log]) -> dict[_Place, int | str]:
        """Return the log ends; retry, as followers may still be copying acknowledged records."""
        places = {(self._world.names.topic(topic), at): (topic, at) for topic, at in written}
        found: dict[_Place, int | str] = dict.fromkeys(written, _STOPPED)
        left = set(places)
        with suppress(ReplayError):  # timeout
            async for _ in self._cluster.attempts("logs end before what was acknowledged"):
                asked = await ends(self._cluster, left)
                found |= {places[place]: end for place, end in asked.items()}
                left = {
                    place
                    for place, end in asked.items()
                    if isinstance(end, int) and end < written[places[place]].appended.live_end
                }
                if not left:
                    break
        return found

    async def _written(self, place: _Place, log: Log, end: int | str) -> None:
        """Compare the acknowledged records with the log of the target."""
        answer = _path("responses", "partition_responses", place)
        request = _path("topic_data", "partition_data", place)
        for fault in log.appended.faults():
            path = f"{request}.records" if fault.field == "records" else f"{answer}.{fault.field}"
            self._add(fault.step, path, fault.captured, fault.replayed)
        if isinstance(end, str):
            self._leave_open(place, end)
            return
        newest = log.appended.newest
        if end < newest.live_end:
            lost = Range(max(newest.captured, newest.captured + end - newest.live), newest.end)
            what = f"not in the log, which ends at {end} of the target"
            self._add(newest.step, f"{request}.records[{lost}]", _count(lost), what)
        room = log.appended.unsure
        for extra in self._looked_at(place, _extra(log, end)):
            there = await self._data(place, extra.live)
            more = there.size - extra.expected
            room, more = max(room - more, 0), more - room
            if more > 0:
                first = next(iter(there))
                at = Range(first.start, first.start + more)
                what = f"{_count(at)} more than were written, from offset {at.start} of the target"
                path = f"{request}.records[{extra.behind.captured}]"
                self._add(extra.behind.step, path, "once", what)

    async def _given(self, account: Account) -> None:
        """Compare the records given to a reader with the capture."""
        log, lost = self._world.offsets.log(*account.log), Ranges()
        try:
            for owed in self._looked_at(account.log, self._owed(account, log)):
                if log.appended.is_unwritten(*owed):
                    continue  # its producer was not replayed
                # Records that no later poll requested may still be in the log: not lost then.
                live = Range(log.live_offset(owed.start), log.live_offset(owed.end - 1) + 1)
                there = await self._data(account.log, live)
                for each in there.lacks(*live):
                    start = log.captured_offset(each.start)
                    end = log.captured_offset(each.end - 1) + 1
                    lost.add(max(start, owed.start), min(end, owed.end))
            withheld = (await self._withheld(account, log)).without(lost)
        finally:
            self._lacks(account, lost, "not given, and not in the log of the target")
        self._lacks(account, withheld, "not given, though the target had said that it was there")

    async def _withheld(self, account: Account, log: Log) -> Ranges:
        """
        Return the missing records of a reader that its polls bring when repeated now.

        A poll that ended with a segment ends there again.
        """
        found = Ranges()
        for poll in account.polls:
            lacks = [part for each in poll.lacks for part in account.owed.within(*each)]
            if not lacks:
                continue
            again = data_offsets(await self._fetch(account.log, log.live_offset(poll.start)), log)
            for each in lacks:
                for part in again.within(*each):
                    found.add(*part)
        return found

    def _lacks(self, account: Account, lost: Ranges, what: str) -> None:
        if len(lost):
            first = next(iter(lost))
            path = f"{_path('responses', 'partitions', account.log)}.records[{first}]"
            captured = f"{lost.size:,} given that lack, the first at offset {first.start}"
            self._add(account.step_of(first.start), path, captured, what)

    def _owed(self, account: Account, log: Log) -> Iterator[Range]:
        """Yield the missing offsets of a reader; of a partial capture, only those seen written."""
        for owed in account.owed:
            if self._world.is_partial:
                yield from log.live.held(*owed)
            else:
                yield owed

    def _looked_at(self, place: _Place, found: Iterator[_T]) -> Iterator[_T]:
        yield from islice(found, _MOST_LOOKS)
        if next(found, None) is not None:
            self._leave_open(place, _NOT_ALL)

    async def _data(self, place: _Place, offsets: Range) -> Ranges:
        """
        Return the live offsets that have data records (no control records).

        Offsets not reached in `_MOST_FETCHES` count as present, and leave the log open.

        Raises:
            ReplayError: The target does not return records.
        """
        found, start = Ranges(), offsets.start
        for _ in range(_MOST_FETCHES):
            records = await self._fetch(place, start)
            for each in data_offsets(records).within(*offsets):
                found.add(*each)
            all_ = data_offsets(records, controls=True)
            if not len(all_) or all_.end <= start:
                return found
            start = all_.end
            if start >= offsets.end:
                return found
        found.add(start, offsets.end)
        self._leave_open(place, f"only the first {_MOST_FETCHES} answers of Fetch were looked at")
        return found

    async def _fetch(self, place: _Place, start: int) -> bytes:
        return await fetch(self._cluster, self._world.names.topic(place[0]), place[1], start)

    def _add(self, step: int, path: str, captured: str, replayed: str) -> None:
        self._found.append(Finding(step, Difference(path, captured, replayed)))


def _extra(log: Log, end: int) -> Iterator[Extra]:
    """Yield the places where the log may have more records than the captured one."""
    yield from islice(log.appended.extra(), _MOST_LOOKS)
    newest = log.appended.newest
    if end > newest.live_end:
        yield Extra(newest, Range(newest.live_end, end), 0)


def _path(topics: str, partitions: str, place: _Place) -> str:
    return f"{topics}[{place[0]}].{partitions}[{place[1]}]"


def _count(offsets: Range) -> str:
    return f"{len(offsets):,} record{'s' * (len(offsets) != 1)}"
