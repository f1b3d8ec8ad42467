"""
What librdkafka's mock cluster answers otherwise than Kafka, mended on the way in and out.

Source: Kafka, GroupCoordinatorService.java, Topic.java; KIP-394 (members without an id), KIP-848.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from uuid import uuid4

from construct import Container

from dissector.protocol.apis import KEYS
from dissector.protocol.error_codes import error_code
from dissector.protocol.messages import Message

LEGAL_TOPIC = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
"""Source: Topic.java."""

_MEMBER_ID_REQUIRED = error_code("MEMBER_ID_REQUIRED")
_REBALANCES = error_code("REBALANCE_IN_PROGRESS")
_OUT_OF_TURN = error_code("INVALID_REQUEST")
_INVALID_TOPIC = error_code("INVALID_TOPIC_EXCEPTION")

_FIRST_THAT_WANTS_IDS = 4
"""The version of JoinGroup from which a member without an id is sent back with one (KIP-394)."""

_Place = tuple[str, str, int]
"""Group, topic, partition."""

SENT_AS = {
    (KEYS["Produce"], 5): 6,
    (KEYS["JoinGroup"], 6): 5,
    (KEYS["SyncGroup"], 4): 3,
    (KEYS["LeaveGroup"], 3): 2,
    (KEYS["LeaveGroup"], 4): 2,
}
"""API and version that the mock offers, and does not read or write right: asked for instead."""


class Mends:
    """
    What is known of one mock cluster.

    Its requests and answers go through here: `instead`, and else `asked` and `answered`.
    """

    def __init__(self) -> None:
        self._committed: dict[_Place, tuple[int, int, str]] = {}
        self._assigned: dict[str, tuple[int, dict[str, bytes]]] = {}
        self._joining: defaultdict[str, set[str]] = defaultdict(set)

    def instead(self, asked: Message) -> Container | None:
        """Answer what the mock is not to be asked; None for everything else."""
        body = asked.body
        if asked.api != "JoinGroup" or body is None or body.member_id:
            return None
        is_static = body.get("group_instance_id") is not None
        if (asked.api_version or 0) < _FIRST_THAT_WANTS_IDS or is_static:
            return None
        return Container(
            throttle_time_ms=0,
            error_code=_MEMBER_ID_REQUIRED,
            generation_id=-1,
            protocol_name="",
            leader="",
            member_id=f"{asked.client_id or ''}-{uuid4()}",
            members=[],
        )

    def asked(self, asked: Message) -> bool:
        """Note what the mock is asked; tell whether something in it had to be changed."""
        body = asked.body
        assert body is not None
        if asked.api == "JoinGroup":
            self._joining[body.group_id].add(body.member_id)
        if asked.api == "SyncGroup" and body.assignments:
            parts = {each.member_id: each.assignment for each in body.assignments}
            self._assigned[body.group_id] = body.generation_id, parts
        # A null pattern beside names would end the process.
        is_null = body.get("subscribed_topic_regex", "") is None
        if is_null:
            body.subscribed_topic_regex = ""
        return is_null

    def answered(self, asked: Message, answer: Container) -> Container | None:
        """Change an answer to what Kafka would say; None where it would say nothing."""
        assert asked.body is not None
        mend = _MENDS.get(asked.api or "")
        return answer if mend is None else mend(self, asked.body, answer)

    def produced(self, asked: Container, answer: Container) -> Container | None:
        """Say nothing where nobody wants to know."""
        return answer if asked.acks else None

    def named(self, asked: Container, answer: Container) -> Container | None:
        """Refuse names that no topic can have."""
        for topic in answer.topics:
            if topic.name is not None and not LEGAL_TOPIC.fullmatch(topic.name):
                topic.error_code, topic.partitions = _INVALID_TOPIC, []
        return answer

    def joined(self, asked: Container, answer: Container) -> Container:
        """Note that a member does not wait for the others any more."""
        self._joining[asked.group_id].discard(asked.member_id)
        return answer

    def synced(self, asked: Container, answer: Container) -> Container:
        """
        Tell its part also to a member that asks when the group is stable; an empty one for none.

        Source: ClassicGroup and GroupMetadataManager, classicGroupSync.
        """
        generation, parts = self._assigned.get(asked.group_id, (-1, {}))
        if answer.error_code == _OUT_OF_TURN and generation == asked.generation_id:
            answer.error_code = 0
            answer.assignment = parts.get(asked.member_id)
        answer.assignment = answer.assignment or b""
        return answer

    def left(self, asked: Container, answer: Container) -> Container:
        """Say who has left, for the versions that have room for that."""
        (answer.member_id,) = [each.member_id for each in asked.get("members", [asked])]
        return answer

    def committed(self, asked: Container, answer: Container) -> Container:
        """
        Remember what is committed, of which the mock forgets a part.

        Members commit also while others are joining, which the mock does not let them. Source:
        ClassicGroup.validateOffsetCommit.
        """
        errors = {}
        for place, partition in _partitions(asked, answer):
            if partition.error_code == _REBALANCES and self._joining.get(asked.group_id):
                partition.error_code = 0
            errors[place] = partition.error_code
        for place, partition in _partitions(asked, asked):
            if not errors.get(place, 0):
                epoch = partition.get("committed_leader_epoch", -1)
                metadata = partition.committed_metadata or ""
                self._committed[place] = partition.committed_offset, epoch, metadata
        return answer

    def fetched(self, asked: Container, answer: Container) -> Container:
        """Tell what was committed."""
        for place, partition in _partitions(asked, answer):
            offset, epoch, metadata = self._committed.get(place, (-1, -1, ""))
            partition.committed_offset, partition.metadata = offset, metadata
            if "committed_leader_epoch" in partition:
                partition.committed_leader_epoch = epoch
        return answer


def _partitions(asked: Container, body: Container) -> Iterator[tuple[_Place, Container]]:
    """Yield group, topic and number of the partitions of a body, with each of them."""
    for topic in body.topics or ():
        for partition in topic.partitions:
            yield (asked.group_id, topic.name, partition.partition_index), partition


_MENDS: dict[str, Callable[[Mends, Container, Container], Container | None]] = {
    "Produce": Mends.produced,
    "Metadata": Mends.named,
    "JoinGroup": Mends.joined,
    "SyncGroup": Mends.synced,
    "LeaveGroup": Mends.left,
    "OffsetCommit": Mends.committed,
    "TxnOffsetCommit": Mends.committed,
    "OffsetFetch": Mends.fetched,
}

MENDED = frozenset(KEYS[name] for name in (*_MENDS, "ConsumerGroupHeartbeat"))
"""The APIs that are looked at; all others go through as they are."""
