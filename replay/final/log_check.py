"""
Compares the logs of the target with the bounds that it reported during a pass.

Only what is certain is judged: ends and starts while the partition kept its leader and leader
epoch, leader epochs while the topic kept its id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cluster.client.cluster import Cluster
from cluster.client.topic_admin import EARLIEST, end_offsets, fetch_partition
from dissector.errors import ReplayError
from dissector.protocol.error_codes import error_code
from replay.final.asking import ask_until
from replay.final.findings import Findings
from replay.final.log_bounds import LogBounds, Reported
from replay.mapping.id_map import IdMap

_Log = tuple[str, int]
"""Topic of the target, and partition."""

_OUT_OF_RANGE = error_code("OFFSET_OUT_OF_RANGE")
_UNKNOWN_EPOCH = "ListOffsets: UNKNOWN_LEADER_EPOCH"


class _Place(NamedTuple):
    """A log at the end of a pass: its captured topic, partition, start and end; -1 if unknown."""

    topic: str
    partition: int
    start: int
    end: int


class LogCheck:
    """
    Compares bounds with the logs at the end of a pass.

    Args:
        ids: The id mapping of the finished pass.
        cluster: The target; its metadata are of now.
        findings: Takes the differences.
    """

    def __init__(self, ids: IdMap, cluster: Cluster, findings: Findings) -> None:
        self._ids = ids
        self._cluster = cluster
        self._findings = findings

    async def run(self, logs: Mapping[_Log, LogBounds]) -> None:
        """Compare the bounds of these logs."""
        same = {place: log for place, log in logs.items() if self._is_same_topic(place, log)}
        for place, log in same.items():
            self._check_epoch(self._place(place), log, self._epoch(place))
        led = {place: log for place, log in same.items() if self._is_same_leader(place, log)}
        starts = await end_offsets(self._cluster, led, EARLIEST)
        ends = await self._ends(led)
        for live, log in led.items():
            at_end = self._place(live, starts[live], ends[live])
            self._check_ends(at_end, log)
            if self._ids.offsets.log(at_end.topic, at_end.partition).appended:
                await self._check_answers(live, at_end)

    def _is_same_topic(self, place: _Log, log: LogBounds) -> bool:
        return place[0] in self._cluster.topics and (
            self._cluster.topic_id(place[0]) == log.topic_id
        )

    def _is_same_leader(self, place: _Log, log: LogBounds) -> bool:
        leader = self._cluster.leader(*place)
        return leader is not None and leader.epoch >= 0 and leader == log.leader

    def _epoch(self, place: _Log) -> int:
        leader = self._cluster.topics[place[0]].leaders.get(place[1])
        return -1 if leader is None else leader.epoch

    def _place(self, place: _Log, start: int | str = -1, end: int | str = -1) -> _Place:
        known = (each if isinstance(each, int) else -1 for each in (start, end))
        return _Place(self._ids.names.captured_topic(place[0]), place[1], *known)

    def _check_epoch(self, place: _Place, log: LogBounds, epoch: int) -> None:
        if log.epoch is not None and 0 <= epoch < log.epoch.value:
            replayed = f"leader epoch {log.epoch.value}, although {epoch} is the newest one"
            self._add(place, log.epoch, f"at most {epoch}", replayed)

    async def _ends(self, logs: Mapping[_Log, LogBounds]) -> dict[_Log, int | str]:
        """Ask for the ends with the leader epochs of Metadata, which leaders must know."""

        async def ask() -> dict[_Log, int | str]:
            return await end_offsets(self._cluster, logs, with_epochs=True)

        def is_settled(ends: dict[_Log, int | str]) -> bool:  # a leader may be the last to know
            return _UNKNOWN_EPOCH not in ends.values()

        ends = await ask_until(self._cluster, ask, is_settled)
        for live, end in ends.items():
            reported = logs[live].epoch
            if end == _UNKNOWN_EPOCH and reported is not None:
                replayed = f"leader epoch {self._epoch(live)}, which the leader does not know"
                self._add(self._place(live), reported, "the epoch of the leader", replayed)
        return ends

    def _check_ends(self, place: _Place, log: LogBounds) -> None:
        if log.contradiction is not None:
            self._check_contradiction(place, log.contradiction)
        elif log.end is not None and 0 <= place.end < log.end.value:
            replayed = f"{log.end.value}, although the log ends at {place.end} (ListOffsets)"
            self._add(place, log.end, f"at most {place.end}", replayed)
        if log.start is not None and 0 <= place.start < log.start.value:
            replayed = f"{log.start.value}, although the log starts at {place.start} (ListOffsets)"
            self._add(place, log.start, f"at most {place.start}", replayed)

    def _check_contradiction(self, place: _Place, reported: Reported) -> None:
        bound, value = reported.bound, reported.value
        if reported.field == "log_start_offset":
            replayed = f"{value}, although records from offset {bound} on were returned"
            self._add(place, reported, f"at most {bound}", replayed)
        else:
            replayed = f"{value}, although the leader had reported or returned up to {bound} before"
            self._add(place, reported, f"at least {bound}", replayed)

    async def _check_answers(self, log: _Log, place: _Place) -> None:
        """Ask whether the log ends and starts where ListOffsets says."""
        newest = self._ids.offsets.log(place.topic, place.partition).appended.newest
        asked = Reported(0, "base_offset", ("responses", "partition_responses"), newest.step)
        if place.end >= 0 and await self._is_outside(log, place, place.end):
            replayed = f"ends before it, although ListOffsets says {place.end}"
            self._add(place, asked, f"the log ends at {place.end}", replayed)
        if place.start > 0 and await self._is_outside(log, place, place.start - 1) is False:
            replayed = f"has offset {place.start - 1}, although ListOffsets says {place.start}"
            self._add(place, asked, f"the log starts at {place.start}", replayed)

    async def _is_outside(self, log: _Log, place: _Place, offset: int) -> bool | None:
        """Return whether a log has no offset; None if the target does not say."""
        try:
            answer = await fetch_partition(self._cluster, *log, offset)
        except ReplayError as error:
            self._findings.leave_open(place.topic, place.partition, str(error))
            return None
        if answer.error_code and answer.error_code != _OUT_OF_RANGE:
            return None
        return bool(answer.error_code)

    def _add(self, place: _Place, reported: Reported, captured: str, replayed: str) -> None:
        topics, partitions = reported.arrays
        path = f"{topics}[{place.topic}].{partitions}[{place.partition}].{reported.field}"
        self._findings.add(reported.step, path, captured, replayed)
