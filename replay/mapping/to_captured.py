"""Live-to-captured mapping of values: one method per role, with the name of the role."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from cluster.conversion.resource_names import NO_ID, share_key
from cluster.fields.field_layout import Scope
from cluster.fields.kafka_enums import (
    BROKER,
    COORDINATOR_TYPES,
    GROUP,
    RESOURCE_TYPES,
    SHARE,
    TOPIC,
    TRANSACTION,
)
from dissector.protocol.field_roles import Role
from replay.mapping.id_state import IdState


class CapturedMapping:
    """Maps live values to captured ones; a value without a mapping stays unchanged."""

    def __init__(self, ids: IdState) -> None:
        self._ids = ids

    def topic(self, name: str, scope: Scope) -> str:
        """Return the captured name of a topic."""
        return self._ids.names.captured_topic(name)

    def topic_id(self, topic_id: UUID, scope: Scope) -> UUID:
        """Return the captured id, found by topic name."""
        if topic_id == NO_ID:
            return topic_id
        if (ended := self._ids.captured_ended_topic_ids.get(topic_id)) is not None:
            return ended
        name = self._ids.live_topics.topic_name(topic_id)
        captured = self._ids.names.captured_topic(name) if name else None
        return (captured and self._ids.captured_topics.topic_id(captured)) or topic_id

    def topic_pattern(self, pattern: str, scope: Scope) -> str:
        """Return the regular expression for the captured names."""
        return self._ids.names.captured_pattern(pattern)

    def group(self, name: str, scope: Scope) -> str:
        """Return the captured name of a group."""
        return self._ids.names.unprefixed(name)

    def transactional_id(self, name: str, scope: Scope) -> str:
        """Return the captured transactional id."""
        return self._ids.names.unprefixed(name)

    def transactional_id_pattern(self, pattern: str, scope: Scope) -> str:
        """Return the regular expression for the captured names."""
        return self._ids.names.captured_pattern(pattern)

    def coordinator_key(self, key: str, scope: Scope) -> str:
        """Return the captured key of a coordinator lookup."""
        names = self._ids.names
        if COORDINATOR_TYPES.get(scope.kind or 0) != SHARE:
            return names.unprefixed(key)
        return share_key(key, names.unprefixed, lambda each: self.topic_id(each, scope))

    def resource(self, name: str, scope: Scope) -> str:
        """Return the captured name of a resource."""
        kind = RESOURCE_TYPES.get(scope.kind or 0)
        if kind == TOPIC:
            return self._ids.names.captured_topic(name)
        if kind == BROKER and name.isdecimal():
            return str(self._ids.brokers.captured(int(name)))
        return self._ids.names.unprefixed(name) if kind in (GROUP, TRANSACTION) else name

    def broker_id(self, node: int, scope: Scope) -> int:
        """Return the captured broker id."""
        return self._ids.brokers.captured(node)

    def leader_epoch(self, epoch: int, scope: Scope) -> int:
        """Return the captured leader epoch."""
        place = self._ids.topic_of(scope), scope.partition, epoch
        return self._ids.captured_leader_epochs.get(place, epoch)

    fetched_epoch = leader_epoch

    def offset(self, offset: int, scope: Scope) -> int:
        """Return the captured offset."""
        topic = self._ids.topic_of(scope)
        if topic is None or scope.partition is None:
            return offset
        return self._ids.offsets.captured(topic, scope.partition, offset)

    def producer_id(self, producer_id: int, scope: Scope) -> int:
        """Return the captured producer id."""
        found = self._ids.producers.captured(producer_id, None)
        return found[0] if found else producer_id

    def producer_epoch(self, epoch: int, scope: Scope) -> int:
        """Return the captured epoch of a captured producer."""
        if scope.producer_id is None:
            return epoch
        return self._ids.producers.captured_epoch(scope.producer_id, epoch)

    def sequence(self, sequence: int, scope: Scope) -> int:
        """Return the captured sequence of a captured producer."""
        topic, partition = self._ids.topic_of(scope), scope.partition
        producer_id, epoch = scope.producer_id, scope.producer_epoch
        if topic is None or partition is None or producer_id is None or epoch is None:
            return sequence
        producers = self._ids.producers
        return producers.captured_sequence((producer_id, epoch), topic, partition, sequence)

    def member(self, member: str, scope: Scope) -> str:
        """Return the captured id of a member."""
        return self._ids.members.captured(scope.group or "", member)

    def generation(self, generation: int, scope: Scope) -> int:
        """Return the captured generation."""
        group, member = scope.group or "", scope.member or ""
        return self._ids.members.captured_generation(group, member, generation)

    member_epoch = generation

    def opaque(self, role: Role, value: Any) -> Any:
        """Return the captured value of one of `OPAQUE_ROLES`."""
        return self._ids.opaque_captured.get((role, value), value)
