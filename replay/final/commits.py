"""
The offsets that a pass committed, and which of them the target must hold at its end.

Of commits that overlap in time any may be the last. A commit without a response, or with an error,
may have been stored. Offsets of a transaction are stored by its end; the coordinator orders them by
their commit, not by that end.

Source: Kafka, OffsetMetadataManager.java (replayEndTransactionMarker, deleteOffsets); KIP-211
(expiry), KIP-447, KIP-496 (OffsetDelete).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple

from construct import Container

from cluster.conversion.resource_names import NO_ID, TopicDirectory
from replay.sessions.open_transactions import transactional_id_of


class GroupLog(NamedTuple):
    """A group, and a partition that it reads; names of the target."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Commit:
    """
    One sent commit of an offset.

    Attributes:
        offset: The offset.
        leader_epoch: The leader epoch with it; -1 for none.
        metadata: The text with it.
        step: The step that sent it.
        is_in_transaction: Whether a transaction has to end before it is stored.
        begun: When it was sent, in the count of requests and responses.
        ended: When its response, or that of its transaction's end, came; None without one.
        is_acknowledged: Whether the target acknowledged it.
    """

    offset: int
    leader_epoch: int
    metadata: str
    step: int
    is_in_transaction: bool
    begun: int
    ended: int | None = None
    is_acknowledged: bool = False


_Entry = tuple[GroupLog, Commit]
_COMMITS = frozenset({"OffsetCommit", "TxnOffsetCommit"})


class Commits:
    """
    The commits of a pass.

    Args:
        topics: Names the topic ids of the target.
    """

    def __init__(self, topics: TopicDirectory) -> None:
        self._topics = topics
        self._now = count()
        self._possible: dict[GroupLog, list[Commit]] = {}
        self._in_flight: dict[int, tuple[Container, list[_Entry]]] = {}
        self._open: dict[str, list[_Entry]] = {}
        self._doubtful_ends: set[str] = set()
        self._unjudged: set[GroupLog] = set()

    def record_request(self, api: str, version: int, body: Container, step: int) -> None:
        """Record a request that is about to be sent."""
        if api in _COMMITS:
            self._begin(version, body, step)
        elif api == "EndTxn" and body.committed:
            self._doubtful_ends.add(body.transactional_id)
        else:
            self._forget_deleted(api, body)

    def record_response(self, api: str, body: Container, response: Container) -> None:
        """Record the response to a request."""
        if api in _COMMITS:
            self._end(body, response)
        elif api == "EndTxn" and not response.error_code:
            self._end_transaction(body)
        elif api == "InitProducerId" and not response.error_code:
            self._abort(transactional_id_of(body) or "")
        else:
            self._forget_deleted(api, body)

    def certain(self) -> Iterator[tuple[GroupLog, list[Commit]]]:
        """Yield the partitions with a committed offset, and the commits that may be the last."""
        for place, commits in self._possible.items():
            if place not in self._unjudged and any(each.is_acknowledged for each in commits):
                yield place, commits

    def _begin(self, version: int, body: Container, step: int) -> None:
        begun, transactional_id = next(self._now), transactional_id_of(body)
        # ZooKeeper keeps offsets of v0, and a time or retention of its own may expire others soon.
        is_expiring = body.get("retention_time_ms", -1) >= 0 or not (version or transactional_id)
        entries = []
        for place, each in self._partitions(body, body.group_id):
            if is_expiring or each.get("commit_timestamp", -1) >= 0:
                self._unjudged.add(place)
            text, epoch = each.committed_metadata or "", each.get("committed_leader_epoch", -1)
            offset, is_in = each.committed_offset, bool(transactional_id)
            commit = Commit(offset, epoch, text, step, is_in, begun)
            self._possible.setdefault(place, []).append(commit)
            entries.append((place, commit))
        self._in_flight[id(body)] = body, entries

    def _end(self, body: Container, response: Container) -> None:
        _, entries = self._in_flight.pop(id(body), (body, []))
        stored = {
            place
            for place, each in self._partitions(response, body.group_id)
            if not each.error_code
        }
        ended, transactional_id = next(self._now), transactional_id_of(body)
        for place, commit in entries:
            is_stored = place in stored and not transactional_id
            answered = replace(commit, ended=ended, is_acknowledged=is_stored)
            self._replace(place, commit, answered)
            if transactional_id and place in stored:
                self._open.setdefault(transactional_id, []).append((place, answered))

    def _end_transaction(self, body: Container) -> None:
        if not body.committed:
            self._abort(body.transactional_id)
            return
        ended = next(self._now)
        for place, commit in self._open.pop(body.transactional_id, ()):
            self._replace(place, commit, replace(commit, ended=ended, is_acknowledged=True))
        self._doubtful_ends.discard(body.transactional_id)

    def _abort(self, transactional_id: str) -> None:
        """Drop the offsets of a transaction, unless its commit may have succeeded before."""
        entries = self._open.pop(transactional_id, ())
        if transactional_id not in self._doubtful_ends:
            for place, commit in entries:
                self._replace(place, commit, None)
        self._doubtful_ends.discard(transactional_id)

    def _replace(self, place: GroupLog, commit: Commit, other: Commit | None) -> None:
        """Replace a commit, and drop those that an acknowledged one follows."""
        commits = [each for each in self._possible.get(place, ()) if each is not commit]
        if other is not None:
            if other.is_acknowledged:
                commits = [
                    each for each in commits if each.ended is None or each.ended > other.begun
                ]
            commits.append(other)
        self._possible[place] = commits

    def _forget_deleted(self, api: str, body: Container) -> None:
        """Forget offsets that a request deletes; both before and after it, as it takes time."""
        if api == "DeleteGroups":
            groups = frozenset(body.groups_names)
            self._forget(each for each in self._possible if each.group in groups)
        elif api == "OffsetDelete":
            self._forget(place for place, _ in self._partitions(body, body.group_id))
        elif api == "DeleteTopics":
            topics = {self._name(each) for each in body.get("topics") or ()}
            topics.update(body.get("topic_names") or ())
            self._forget(each for each in self._possible if each.topic in topics)

    def _forget(self, places: Iterable[GroupLog]) -> None:
        for place in list(places):
            self._possible.pop(place, None)

    def _partitions(self, body: Container, group: str) -> Iterator[tuple[GroupLog, Container]]:
        for topic in body.topics:
            name = self._name(topic)
            for each in topic.partitions if name else ():
                yield GroupLog(group, name, each.partition_index), each

    def _name(self, topic: Container) -> str:
        topic_id = topic.get("topic_id") or NO_ID
        return topic.get("name") or self._topics.topic_name(topic_id) or ""
