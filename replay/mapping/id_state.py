"""State of the id mapping: captured values and their counterparts on the target."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from cluster.client.broker_metadata import Topology
from cluster.conversion.resource_names import NameMap, TopicIds
from cluster.fields.field_layout import Scope
from cluster.fields.refusal import RewriteError
from dissector.protocol.field_roles import Role
from replay.mapping.broker_map import BrokerMap
from replay.mapping.member_ids import MemberMap
from replay.mapping.offset_map import TRANSLATED, OffsetMap, Policy
from replay.mapping.producer_ids import ProducerMap
from replay.mapping.reader_accounts import ReaderAccounts

GroupPartition = tuple[str, str, int]
"""A group, a topic and a partition."""

_Epochs = dict[tuple[str | None, int | None, int], int]


class IdState:
    """
    The state of one pass over a capture.

    Attributes:
        target: The metadata of the target. None without a target: then values that only it can
            assign stay as captured.
        names: Names of topics, groups and transactional ids.
        captured_topics: Topic ids of the capture, as far as messages have shown them.
        live_topics: Topic ids of the target.
        brokers: Broker ids.
        producers: Producer ids, epochs and sequences.
        members: Group members, their generations and epochs.
        offsets: Offsets of all partitions.
        readers: The records returned to readers of partitions.
        leader_epochs: Captured topic, partition and leader epoch -> live leader epoch.
        captured_leader_epochs: The reverse.
        ended_transactions: The number of ended transactions.
        opaque_live: Captured -> live values of the roles in `OPAQUE_ROLES`.
        opaque_captured: The reverse.
        uncaptured_members: Group and member, as captured, of members without a captured join.
        synthesised_commits: The number of transactions that were committed without a captured end.
        is_partial: Whether the capture lacks packets.
        foreign: Resources that other parts of the capture change, which other processes play.
        ended_topic_ids: Captured ids of deleted topics -> their live ids.
        captured_ended_topic_ids: The reverse.
        committed_offsets: Group, topic and partition, as captured -> the captured and the live
            offset of the newest commit.
    """

    def __init__(
        self,
        target: Topology | None = None,
        names: NameMap | None = None,
        policy: Policy = "kept",
    ) -> None:
        self.target = target
        self.names = names or NameMap()
        self.captured_topics = TopicIds()
        self.live_topics = TopicIds(target)
        self.brokers = BrokerMap(target)
        self.producers = ProducerMap()
        self.members = MemberMap()
        self.offsets = OffsetMap(policy)
        self.readers = ReaderAccounts()
        self.leader_epochs: _Epochs = {}
        self.captured_leader_epochs: _Epochs = {}
        self.ended_transactions = 0
        self.opaque_live: dict[tuple[Role, Any], Any] = {}
        self.opaque_captured: dict[tuple[Role, Any], Any] = {}
        self.uncaptured_members: set[tuple[str, str]] = set()
        self.synthesised_commits = 0
        self.is_partial = False
        self.foreign: frozenset[tuple[Any, ...]] = frozenset()
        self.committed_offsets: dict[GroupPartition, tuple[int, int]] = {}
        self.ended_topic_ids: dict[UUID, UUID] = {}
        self.captured_ended_topic_ids: dict[UUID, UUID] = {}

    def end_topic(self, topic: str, ids: Iterable[UUID], next_ids: Iterable[UUID]) -> None:
        """
        Forget all that was learned of a topic, as it is deleted, and may be created again.

        Args:
            topic: The captured name.
            ids: The captured ids that it had.
            next_ids: Those that it will have.
        """
        live = self.live_topics.topic_id(self.names.topic(topic))
        self.live_topics.forget(self.names.topic(topic))
        if live is not None:
            self.ended_topic_ids.update(dict.fromkeys(ids, live))
            self.captured_ended_topic_ids.update((live, each) for each in ids)
        self.captured_topics.learn(dict.fromkeys(next_ids, topic))
        self.offsets.forget(topic)
        self.readers.forget(topic)
        epochs = self.leader_epochs, self.captured_leader_epochs
        self.leader_epochs, self.captured_leader_epochs = (
            {place: epoch for place, epoch in each.items() if place[0] != topic} for each in epochs
        )
        commits = self.committed_offsets.items()
        self.committed_offsets = {at: offsets for at, offsets in commits if at[1] != topic}

    def topic_of(self, scope: Scope) -> str | None:
        """Return the captured topic name of a scope, also if it has only the topic id."""
        if scope.topic or scope.topic_id is None:
            return scope.topic
        return self.captured_topics.topic_name(scope.topic_id)

    def group_partition(self, scope: Scope) -> GroupPartition | None:
        """Return the group, and the partition by captured topic name, of a captured scope."""
        topic, partition = self.topic_of(scope), scope.partition
        if scope.group is None or topic is None or partition is None:
            return None
        return scope.group, topic, partition

    def live_producer(self, producer_id: int, epoch: int | None) -> tuple[int, int | None]:
        """
        Return id and epoch of a captured producer on the target.

        Raises:
            RewriteError: The capture does not contain the response that assigned its id.
        """
        if producer_id < 0:
            return producer_id, epoch
        found = self.producers.live(producer_id, epoch)
        if found is not None:
            return found
        if self.target is None:
            return producer_id, epoch
        reason = f"the capture does not show where producer {producer_id} got its id"
        raise RewriteError(reason, Role.PRODUCER_ID, (producer_id, epoch))

    def learn_opaque(self, role: Role, captured: Any, live: Any) -> None:
        """Learn the live value for a captured value of one of `OPAQUE_ROLES`."""
        self.opaque_live[role, captured] = live
        self.opaque_captured[role, live] = captured

    def are_markers(self, scope: Scope, captured: int, live: int) -> bool:
        """
        Return whether only transaction markers lie between two offsets, both in captured terms.

        Markers are written asynchronously: a request soon after may see them or not.
        """
        topic, partition = self.topic_of(scope), scope.partition
        if topic is None or partition is None or not 0 < live - captured <= self.ended_transactions:
            return False
        between = range(captured, live)
        return not any(self.offsets.has_record(topic, partition, each) for each in between)

    def is_same_position(self, scope: Scope, captured: int, live: int) -> bool:
        """
        Return whether a captured offset maps to this live offset, or was committed as that.

        The target may have a record of another offset there: if the capture lacks the first records
        of a log, the log start on the target corresponds to the first captured record.
        """
        topic, partition = self.topic_of(scope), scope.partition
        if topic is None or partition is None or captured < 0:
            return False
        if self.offsets.live(topic, partition, captured) == (live, TRANSLATED):
            return True
        group_partition = scope.group or "", topic, partition
        return self.committed_offsets.get(group_partition) == (captured, live)

    def forget_epoch(self, scope: Scope, captured: int) -> None:
        """Forget the live leader epoch for a captured one: the leader has another one by now."""
        place = self.topic_of(scope), scope.partition, captured
        self.leader_epochs.pop(place, None)

    def learn_epoch(self, topic: str, partition: int, captured: int, live: int) -> None:
        """Learn the live leader epoch for a captured one."""
        if min(captured, live) >= 0:
            self.leader_epochs[topic, partition, captured] = live
            self.captured_leader_epochs[topic, partition, live] = captured
