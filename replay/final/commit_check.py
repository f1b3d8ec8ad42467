"""Compares the committed offsets of groups with what a pass committed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from construct import Container

from cluster.client.broker_metadata import NO_ID
from cluster.client.cluster import Cluster, CoordinatorType
from cluster.client.router import MISROUTED
from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS
from dissector.protocol.error_codes import ERRORS, error_name
from replay.compare.other_parts import is_deleted_elsewhere
from replay.final.asking import ask_until
from replay.final.commits import Commit, GroupLog
from replay.final.findings import Findings
from replay.mapping.id_map import IdMap

_FIRST_STABLE = 7
"""First version of OffsetFetch that can wait for the ends of transactions (KIP-447)."""


class Stored(NamedTuple):
    """A committed offset of the target; offset -1 for none."""

    offset: int
    leader_epoch: int
    metadata: str


_Answer = Stored | int
"""What the target has for a partition of a group, or its error code."""


class CommitCheck:
    """
    Asks the target for the committed offsets that a pass must have left.

    Args:
        ids: The id mapping of the finished pass.
        cluster: The target.
        findings: Takes the differences.
    """

    def __init__(self, ids: IdMap, cluster: Cluster, findings: Findings) -> None:
        self._ids = ids
        self._cluster = cluster
        self._findings = findings
        # Older targets may not have stored the offsets of a transaction yet that has ended.
        newest = cluster.versions.get(KEYS["OffsetFetch"], (0, 0))[1]
        self._may_be_early = newest < _FIRST_STABLE

    async def run(self, expected: Mapping[GroupLog, list[Commit]]) -> None:
        """Compare the offsets of these partitions, group by group."""
        groups: dict[str, list[GroupLog]] = {}
        for place in expected:
            is_shared = ("group", self._ids.names.unprefixed(place.group)) in self._ids.foreign
            topic = self._ids.names.captured_topic(place.topic)
            is_shared = is_shared or is_deleted_elsewhere(topic, self._ids)
            if not is_shared and place.topic in self._cluster.topics:
                groups.setdefault(place.group, []).append(place)
        for group, places in groups.items():
            answers, why = await self._answers(group, {each: expected[each] for each in places})
            for place in places:
                self._compare(place, expected[place], answers.get(place), why)

    async def _answers(
        self, group: str, expected: Mapping[GroupLog, list[Commit]]
    ) -> tuple[dict[GroupLog, _Answer], str]:
        """Return the answers for a group, and why some may be missing."""

        def is_settled(answers: Mapping[GroupLog, _Answer]) -> bool:
            return not any(self._may_change(answers.get(e), expected[e]) for e in expected)

        try:
            answers = await ask_until(
                self._cluster, lambda: self._ask(group, expected.keys()), is_settled
            )
        except ReplayError as error:
            return {}, str(error)
        return answers, "OffsetFetch: no response for the partition"

    def _may_change(self, answer: _Answer | None, commits: list[Commit]) -> bool:
        if isinstance(answer, Stored):
            is_in_transaction = any(each.is_in_transaction for each in commits)
            return self._may_be_early and is_in_transaction and not _is_one_of(answer, commits)
        return answer is not None and ERRORS.get(answer, ("", False))[1]

    async def _ask(self, group: str, places: Collection[GroupLog]) -> dict[GroupLog, _Answer]:
        node = await self._cluster.coordinator(CoordinatorType.GROUP, group)
        response = await self._cluster.request(node, "OffsetFetch", self._body(group, places))
        of_group = next(iter(response.get("groups") or ()), response)
        if error := of_group.get("error_code", 0):
            if error in MISROUTED:
                self._cluster.forget_coordinator(CoordinatorType.GROUP, group)
            return dict.fromkeys(places, error)
        return dict(self._stored(group, of_group))

    def _body(self, group: str, places: Collection[GroupLog]) -> dict[str, object]:
        partitions: dict[str, list[int]] = {}
        for place in places:
            partitions.setdefault(place.topic, []).append(place.partition)
        topics = [
            {
                "name": name,
                "topic_id": self._cluster.topic_id(name) or NO_ID,
                "partition_indexes": sorted(numbers),
            }
            for name, numbers in partitions.items()
        ]
        return {
            "group_id": group,
            "groups": [
                {"group_id": group, "member_id": None, "member_epoch": -1, "topics": topics}
            ],
            "topics": topics,
            "require_stable": True,
        }

    def _stored(self, group: str, of_group: Container) -> Iterator[tuple[GroupLog, _Answer]]:
        for topic in of_group.topics:
            name = topic.get("name") or self._cluster.topic_name(topic.get("topic_id") or NO_ID)
            for each in topic.partitions:
                epoch, text = each.get("committed_leader_epoch", -1), each.metadata or ""
                stored = Stored(each.committed_offset, epoch, text)
                place = GroupLog(group, name or "", each.partition_index)
                yield place, each.error_code or stored

    def _compare(
        self, place: GroupLog, commits: list[Commit], answer: _Answer | None, why: str
    ) -> None:
        topic = self._ids.names.captured_topic(place.topic)
        if not isinstance(answer, Stored):
            reason = f"OffsetFetch: {error_name(answer)}" if answer else why
            self._findings.leave_open(topic, place.partition, reason)
            return
        if _is_one_of(answer, commits):
            return
        last = max((each for each in commits if each.is_acknowledged), key=lambda each: each.begun)
        name, captured, replayed = self._words(topic, place.partition, last, answer)
        path = f"topics[{topic}].partitions[{place.partition}].{name}"
        self._findings.add(last.step, path, captured, f"{replayed} at the end (OffsetFetch)")

    def _words(
        self, topic: str, partition: int, commit: Commit, answer: Stored
    ) -> tuple[str, str, str]:
        """Return the field that differs, its committed value and that of the target."""
        if answer.offset < 0:
            return "committed_offset", self._offset(topic, partition, commit.offset), "none"
        if answer.offset != commit.offset:
            at = topic, partition
            sides = self._offset(*at, commit.offset), self._offset(*at, answer.offset)
            return "committed_offset", *sides
        if answer.metadata != commit.metadata:
            return "committed_metadata", repr(commit.metadata), repr(answer.metadata)
        return "committed_leader_epoch", str(commit.leader_epoch), str(answer.leader_epoch)

    def _offset(self, topic: str, partition: int, live: int) -> str:
        return f"offset {self._ids.offsets.captured(topic, partition, live)}"


def _is_one_of(stored: Stored, commits: list[Commit]) -> bool:
    return any(
        stored.offset == each.offset
        and stored.metadata == each.metadata
        and (min(stored.leader_epoch, each.leader_epoch) < 0 or stored[1] == each.leader_epoch)
        for each in commits
    )
