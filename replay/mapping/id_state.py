"""Captured ids and their counterparts on the target, as far as they are known in one run."""

from __future__ import annotations

from typing import Any

from replay.client.broker_metadata import Topology
from replay.fields.field_layout import Role, Scope
from replay.mapping.broker_map import BrokerMap
from replay.mapping.member_ids import MemberMap
from replay.mapping.offset_map import TRANSLATED, OffsetMap, Policy
from replay.mapping.producer_ids import ProducerMap
from replay.mapping.reader_accounts import ReaderAccounts
from replay.mapping.resource_names import NameMap, TopicIds
from replay.model.refusal import RewriteError

_Epochs = dict[tuple[str | None, int | None, int], int]


class IdState:
    """
    The state of one run of a capture, or of one pass where it is played more than once.

    Attributes:
        target: What is known of the target; None where there is none: then all that only it could
            give stays as it was captured.
        names: Of topics, groups and transactional ids.
        captured_topics: Topic ids of the capture, as far as messages told them.
        live_topics: Topic ids of the target.
        brokers: Ids of brokers.
        producers: Producer ids, epochs and sequences.
        members: Members of groups, their generations and epochs.
        offsets: Offsets of all partitions.
        readers: What readers of partitions were given.
        leader_epochs: Captured topic, partition and leader epoch -> leader epoch of the target.
        captured_leader_epochs: The reverse.
        ended_transactions: How many transactions were ended.
        opaque_live: What the target gave for values of the roles in `GIVEN`.
        opaque_captured: The reverse.
        uncaptured_members: Group and member, as captured, whose join the capture does not show.
        synthesised_commits: How many transactions were committed whose end the capture does not
            show.
        is_partial: Whether the capture lacks packets.
        committed_offsets: Captured group, topic and partition of the offsets that were committed;
            of a capture that lacks packets.
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
        self.committed_offsets: set[tuple[str, str, int]] = set()

    def topic_of(self, scope: Scope) -> str | None:
        """Return the captured name of the topic of a scope, also where only its id is there."""
        if scope.topic or scope.topic_id is None:
            return scope.topic
        return self.captured_topics.topic_name(scope.topic_id)

    def live_producer(self, producer_id: int, epoch: int | None) -> tuple[int, int | None]:
        """
        Return id and epoch of a captured producer on the target.

        Raises:
            Refused: The capture does not show where it got its id.
        """
        if producer_id < 0:
            return producer_id, epoch
        found = self.producers.live(producer_id, epoch)
        if found is not None:
            return found
        if self.target is None:
            return producer_id, epoch
        what = f"the capture does not show where producer {producer_id} got its id"
        raise RewriteError(what, Role.PRODUCER_ID, (producer_id, epoch))

    def learn_opaque(self, role: Role, captured: Any, live: Any) -> None:
        """Take over what the target gave for a captured value of one of the `GIVEN` roles."""
        self.opaque_live[role, captured] = live
        self.opaque_captured[role, live] = captured

    def are_markers(self, scope: Scope, captured: int, live: int) -> bool:
        """
        Tell whether only ends of transactions lie between two offsets, both in captured terms.

        They come when they are written; who asks soon after may be told of them, or not yet.
        """
        topic, partition = self.topic_of(scope), scope.partition
        if topic is None or partition is None or not 0 < live - captured <= self.ended_transactions:
            return False
        between = range(captured, live)
        return not any(self.offsets.has_record(topic, partition, each) for each in between)

    def is_same_position(self, scope: Scope, captured: int, live: int) -> bool:
        """
        Return whether a captured offset has this one in its place on the target.

        The target may have a record of another offset there: where the capture lacks the first
        records of a log, its beginning on the target is that of the first record the capture shows.
        """
        topic, partition = self.topic_of(scope), scope.partition
        if topic is None or partition is None or captured < 0:
            return False
        return self.offsets.live(topic, partition, captured) == (live, TRANSLATED)

    def learn_epoch(self, topic: str, partition: int, captured: int, live: int) -> None:
        """Take over which leader epoch of the target stands for one of the capture."""
        if min(captured, live) >= 0:
            self.leader_epochs[topic, partition, captured] = live
            self.captured_leader_epochs[topic, partition, live] = captured
