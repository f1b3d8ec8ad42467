"""
The balance at the end of a pass: records written and read in the capture against the replay.

The acknowledged records of each partition are compared with the log of the target, and the records
of each reader with those in the capture. Doubtful ranges are fetched from the target.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple, TypeVar

from cluster.client.cluster import Cluster
from cluster.client.topic_admin import end_offsets, fetch_records
from dissector.errors import ReplayError
from replay.compare.other_parts import is_deleted_elsewhere, is_shared_log
from replay.compare.record_diff import data_offsets
from replay.mapping.appended_ranges import ExcessRange, Stretch
from replay.mapping.id_map import IdMap
from replay.mapping.offset_map import PartitionOffsets
from replay.mapping.reader_accounts import ReaderAccount
from replay.model.offset_ranges import Range, Ranges
from replay.model.outcome import Difference

_T = TypeVar("_T")

_TopicPartition = tuple[str, int]
"""Captured topic and partition."""

_MAX_FETCHES = 64
"""Limit of Fetch requests for one range of offsets."""

_MAX_CHECKS = 64
"""Limit of ranges checked for one log (possible extra records) or one reader (missing ones)."""

_NOT_ALL = f"only the first {_MAX_CHECKS} ranges of the log were checked"
_STOPPED = "the replay ended early"
_DELETED = "another part deletes its topic"


class Finding(NamedTuple):
    """A difference found only at the end of a pass, with the step where it began."""

    step: int
    difference: Difference


class UnbalancedLog(NamedTuple):
    """A log that could not be balanced completely, and why."""

    topic: str
    partition: int
    why: str


class SharedLog(NamedTuple):
    """
    A log that other parts of the capture write to: only all parts together can balance it.

    Attributes:
        topic: The captured topic.
        partition: The partition.
        end: Its end on the target, after this part was played.
        unconfirmed: The number of records that this part may have appended without a response.
        stretches: The records that the target acknowledged to this part.
    """

    topic: str
    partition: int
    end: int
    unconfirmed: int
    stretches: list[Stretch]


class Balance(NamedTuple):
    """The result of a balance."""

    findings: list[Finding]
    unbalanced: list[UnbalancedLog]
    shared: Sequence[SharedLog] = ()


async def balance(ids: IdMap, cluster: Cluster, topic: str = "") -> Balance:
    """
    Find records that are missing, duplicated, or in another order.

    Args:
        ids: The id mapping of the finished pass.
        cluster: The target; logs without a response are left open.
        topic: Only this captured topic, which is about to be deleted.
    """
    return await _LogBalancer(ids, cluster).run(topic)


def not_balanced(ids: IdMap) -> Balance:
    """Return a balance with all logs of a pass left open, as the pass ended early."""
    logs = {topic_partition for topic_partition, log in ids.offsets.logs() if log.appended}
    logs.update(ids.readers.logs())
    return Balance(
        [], [UnbalancedLog(*topic_partition, _STOPPED) for topic_partition in sorted(logs)]
    )


class _LogBalancer:
    def __init__(self, ids: IdMap, cluster: Cluster) -> None:
        self._ids = ids
        self._cluster = cluster
        self._found: list[Finding] = []
        self._open: dict[_TopicPartition, str] = {}
        self._shared: list[SharedLog] = []

    async def run(self, topic: str) -> Balance:
        appended_logs = {
            topic_partition: log
            for topic_partition, log in self._ids.offsets.logs()
            if log.appended and self._is_judged(topic_partition, topic)
        }
        with_missing = [
            account
            for account in self._ids.readers.with_missing()
            if self._is_judged(account.log, topic)
        ]
        if appended_logs or with_missing:
            await self._refresh(appended_logs.keys() | {account.log for account in with_missing})
            log_ends = await self._ends(appended_logs)
            for topic_partition, log in appended_logs.items():
                await self._run_check(
                    topic_partition,
                    self._check_log(topic_partition, log, log_ends[topic_partition]),
                )
            for account in with_missing:
                await self._run_check(account.log, self._check_reader(account))
        unbalanced = [UnbalancedLog(*each, why) for each, why in self._open.items()]
        return Balance(self._found, unbalanced, tuple(self._shared))

    def _is_judged(self, topic_partition: _TopicPartition, topic: str) -> bool:
        """Return whether to balance a log; leave it open if it may be of a later life."""
        if topic not in ("", topic_partition[0]):
            return False
        if is_deleted_elsewhere(topic_partition[0], self._ids):
            self._leave_open(topic_partition, _DELETED)
            return False
        return True

    async def _refresh(self, topic_partitions: Iterable[_TopicPartition]) -> None:
        names = {self._ids.names.topic(topic) for topic, _ in topic_partitions}
        with suppress(ReplayError):  # requests for the logs will fail and be reported
            await self._cluster.refresh(names)

    async def _run_check(self, topic_partition: _TopicPartition, check: Awaitable[None]) -> None:
        """Run a check; leave the log open if the target does not respond."""
        try:
            await check
        except ReplayError as error:
            self._leave_open(topic_partition, str(error))

    def _leave_open(self, topic_partition: _TopicPartition, why: str) -> None:
        self._open.setdefault(topic_partition, why)

    async def _ends(
        self, written: dict[_TopicPartition, PartitionOffsets]
    ) -> dict[_TopicPartition, int | str]:
        """Return the log ends; retry, as followers may still be copying acknowledged records."""
        topic_partitions = {
            (self._ids.names.topic(topic), at): (topic, at) for topic, at in written
        }
        found: dict[_TopicPartition, int | str] = dict.fromkeys(written, _STOPPED)
        pending = set(topic_partitions)
        with suppress(ReplayError):  # timeout
            async for _ in self._cluster.attempts("logs end before the acknowledged records"):
                reported_ends = await end_offsets(self._cluster, pending)
                found |= {
                    topic_partitions[topic_partition]: end
                    for topic_partition, end in reported_ends.items()
                }
                pending = {
                    topic_partition
                    for topic_partition, end in reported_ends.items()
                    if isinstance(end, int)
                    and end < written[topic_partitions[topic_partition]].appended.live_end
                }
                if not pending:
                    break
        return found

    async def _check_log(
        self, topic_partition: _TopicPartition, log: PartitionOffsets, end: int | str
    ) -> None:
        """Compare the acknowledged records with the log of the target."""
        response_path = _path("responses", "partition_responses", topic_partition)
        request_path = _path("topic_data", "partition_data", topic_partition)
        for fault in log.appended.faults():
            path = (
                f"{request_path}.records"
                if fault.field == "records"
                else f"{response_path}.{fault.field}"
            )
            self._add(fault.step, path, fault.captured, fault.replayed)
        if isinstance(end, str):
            self._leave_open(topic_partition, end)
            return
        newest = log.appended.newest
        if end < newest.live_end:
            missing = Range(max(newest.captured, newest.captured + end - newest.live), newest.end)
            description = f"not in the log, which ends at offset {end} of the target"
            self._add(
                newest.step, f"{request_path}.records[{missing}]", _count(missing), description
            )
        if is_shared_log(*topic_partition, self._ids):
            unconfirmed, stretches = log.appended.unconfirmed, list(log.appended)
            self._shared.append(SharedLog(*topic_partition, end, unconfirmed.total, stretches))
            return
        unconfirmed = log.appended.unconfirmed
        for extra in self._limit_checks(topic_partition, _extra(log, end)):
            present = await self._data(topic_partition, extra.live)
            excess = unconfirmed.take(extra.live, max(present.size - extra.expected, 0))
            if excess > 0:
                first = next(iter(present))
                duplicates = Range(first.start, first.start + excess)
                description = (
                    f"{_count(duplicates)} more than were written, "
                    f"from offset {duplicates.start} of the target"
                )
                path = f"{request_path}.records[{extra.stretch.captured}]"
                self._add(extra.stretch.step, path, "once", description)

    async def _check_reader(self, account: ReaderAccount) -> None:
        """Compare the records given to a reader with the capture."""
        log, missing, withheld = self._ids.offsets.log(*account.log), Ranges(), Ranges()
        try:
            for gap in self._limit_checks(account.log, self._missing_offsets(account, log)):
                if log.appended.is_unwritten(*gap):
                    continue  # its producer was not replayed
                # Records that no later poll requested may still be in the log: not lost then.
                live = Range(log.live_offset(gap.start), log.live_offset(gap.end - 1) + 1)
                present = await self._data(account.log, live)
                for each in present.missing(*live):
                    start = log.captured_offset(each.start)
                    end = log.captured_offset(each.end - 1) + 1
                    missing.add(max(start, gap.start), min(end, gap.end))
            if not is_shared_log(*account.log, self._ids):
                withheld = (await self._withheld(account, log)).without(missing)
        finally:
            self._report_missing(account, missing, "not returned, and not in the target's log")
        self._report_missing(
            account, withheld, "not returned, although the target reported them as readable"
        )

    async def _withheld(self, account: ReaderAccount, log: PartitionOffsets) -> Ranges:
        """
        Return the missing records of a reader that its polls bring when repeated now.

        A poll that ended with a segment ends there again.
        """
        found = Ranges()
        for poll in account.polls:
            lacks = [part for each in poll.missing for part in account.missing.within(*each)]
            if not lacks:
                continue
            repeated = data_offsets(
                await self._fetch(account.log, log.live_offset(poll.start)), log
            )
            for each in lacks:
                for part in repeated.within(*each):
                    found.add(*part)
        return found

    def _report_missing(self, account: ReaderAccount, missing: Ranges, reason: str) -> None:
        if len(missing):
            first = next(iter(missing))
            path = f"{_path('responses', 'partitions', account.log)}.records[{first}]"
            captured = f"{missing.size:,} missing records, the first at offset {first.start}"
            self._add(account.step_of(first.start), path, captured, reason)

    def _missing_offsets(self, account: ReaderAccount, log: PartitionOffsets) -> Iterator[Range]:
        """
        Yield the missing offsets of a reader.

        Of a partial capture, and of a log that other parts write to, only those seen written.
        """
        for missing in account.missing:
            if self._ids.is_partial or is_shared_log(*account.log, self._ids):
                yield from log.live.record_ranges(*missing)
            else:
                yield missing

    def _limit_checks(self, topic_partition: _TopicPartition, found: Iterator[_T]) -> Iterator[_T]:
        yield from islice(found, _MAX_CHECKS)
        if next(found, None) is not None:
            self._leave_open(topic_partition, _NOT_ALL)

    async def _data(self, topic_partition: _TopicPartition, offsets: Range) -> Ranges:
        """
        Return the live offsets that have data records (no control records).

        Offsets not reached in `_MAX_FETCHES` count as present, and leave the log open.

        Raises:
            ReplayError: The target does not return records.
        """
        found, start = Ranges(), offsets.start
        for _ in range(_MAX_FETCHES):
            records = await self._fetch(topic_partition, start)
            for each in data_offsets(records).within(*offsets):
                found.add(*each)
            all_ = data_offsets(records, controls=True)
            if not len(all_) or all_.end <= start:
                return found
            start = all_.end
            if start >= offsets.end:
                return found
        found.add(start, offsets.end)
        self._leave_open(
            topic_partition, f"only the first {_MAX_FETCHES} Fetch responses were checked"
        )
        return found

    async def _fetch(self, topic_partition: _TopicPartition, start: int) -> bytes:
        return await fetch_records(
            self._cluster, self._ids.names.topic(topic_partition[0]), topic_partition[1], start
        )

    def _add(self, step: int, path: str, captured: str, replayed: str) -> None:
        self._found.append(Finding(step, Difference(path, captured, replayed)))


def _extra(log: PartitionOffsets, end: int) -> Iterator[ExcessRange]:
    """Yield the places where the log may have more records than the captured one."""
    yield from islice(log.appended.excess(), _MAX_CHECKS)
    newest = log.appended.newest
    if end > newest.live_end:
        yield ExcessRange(newest, Range(newest.live_end, end), 0)


def _path(topics: str, partitions: str, topic_partition: _TopicPartition) -> str:
    return f"{topics}[{topic_partition[0]}].{partitions}[{topic_partition[1]}]"


def _count(offsets: Range) -> str:
    return f"{offsets.size:,} record{'s' * (offsets.size != 1)}"
