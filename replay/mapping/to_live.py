"""What the target has for captured values: a method per role, which has the role's name."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from replay.fields.field_layout import Role, Scope
from replay.mapping.id_state import IdState
from replay.mapping.resource_names import NO_ID, share_key
from replay.model.kafka_enums import (
    BROKER,
    COORDINATOR_TYPES,
    GROUP,
    RESOURCE_TYPES,
    SHARE,
    TOPIC,
    TRANSACTION,
)
from replay.model.refusal import RewriteError

MappedValue = tuple[Any, str]
"""A value, and which rule chose it where there was a choice."""

UNKNOWN = "unknown"
"""Sent as it was captured, because nothing is known of it."""


class LiveMapping:
    """From the capture to the target; a value that nothing stands for is `RewriteError`."""

    def __init__(self, ids: IdState) -> None:
        self._ids = ids

    def topic(self, name: str, scope: Scope) -> MappedValue:
        """Give a topic its name."""
        return self._ids.names.topic(name), ""

    def topic_id(self, topic_id: UUID, scope: Scope) -> MappedValue:
        """Find the id by the topic's name; one that the target lacks is sent as it was captured."""
        world = self._ids
        if topic_id == NO_ID:
            return topic_id, ""
        name = world.captured_topics.topic_name(topic_id)
        if name is None:
            if world.target is None:
                return topic_id, UNKNOWN
            raise RewriteError(
                f"the capture nowhere names the topic with id {topic_id}", Role.TOPIC_ID, topic_id
            )
        found = world.live_topics.topic_id(world.names.topic(name))
        return (topic_id, UNKNOWN) if found is None else (found, "")

    def topic_pattern(self, pattern: str, scope: Scope) -> MappedValue:
        """Have a regular expression match the new names."""
        return self._ids.names.pattern(pattern), ""

    def group(self, name: str, scope: Scope) -> MappedValue:
        """Give a group its name."""
        return self._ids.names.prefixed(name), ""

    def transactional_id(self, name: str, scope: Scope) -> MappedValue:
        """Give a transactional id its name."""
        return self._ids.names.prefixed(name), ""

    def transactional_id_pattern(self, pattern: str, scope: Scope) -> MappedValue:
        """Have a regular expression match the new names."""
        return self._ids.names.pattern(pattern), ""

    def coordinator_key(self, key: str, scope: Scope) -> MappedValue:
        """Name what a coordinator is looked for."""
        if COORDINATOR_TYPES.get(scope.kind or 0) != SHARE:
            return self._ids.names.prefixed(key), ""
        names = self._ids.names
        return share_key(key, names.prefixed, lambda each: self.topic_id(each, scope)[0]), ""

    def resource(self, name: str, scope: Scope) -> MappedValue:
        """Name what is configured, or what an ACL is about."""
        kind = RESOURCE_TYPES.get(scope.kind or 0)
        if kind == TOPIC:
            return self._ids.names.topic(name), ""
        if kind == BROKER and name.isdecimal():
            return str(self._ids.brokers.live(int(name))), ""
        return (self._ids.names.prefixed(name) if kind in (GROUP, TRANSACTION) else name), ""

    def broker_id(self, node: int, scope: Scope) -> MappedValue:
        """Choose a broker for one that is named."""
        return self._ids.brokers.live(node), ""

    def leader_epoch(self, epoch: int, scope: Scope) -> MappedValue:
        """Take the epoch that stands for this one, else the present one, else say that none is."""
        world = self._ids
        topic = world.topic_of(scope)
        if epoch < 0 or world.target is None or topic is None or scope.partition is None:
            return epoch, ""
        known = world.leader_epochs.get((topic, scope.partition, epoch))
        if known is not None:
            return known, ""
        leader = world.target.leader(world.names.topic(topic), scope.partition)
        return -1 if leader is None else leader.epoch, ""

    def fetched_epoch(self, epoch: int, scope: Scope) -> MappedValue:
        """Take the epoch that stands for this one, else say that none is known."""
        if epoch < 0 or self._ids.target is None:
            return epoch, ""
        return self._ids.leader_epochs.get(
            (self._ids.topic_of(scope), scope.partition, epoch), -1
        ), ""

    def offset(self, offset: int, scope: Scope) -> MappedValue:
        """Translate an offset of a partition."""
        topic = self._ids.topic_of(scope)
        if topic is None or scope.partition is None:
            return offset, ""
        return self._ids.offsets.live(topic, scope.partition, offset)

    def producer_id(self, producer_id: int, scope: Scope) -> MappedValue:
        """Take the id that was given for this one."""
        epoch = scope.producer_epoch if producer_id == scope.producer_id else None
        return self._ids.live_producer(producer_id, epoch)[0], ""

    def producer_epoch(self, epoch: int, scope: Scope) -> MappedValue:
        """Take the epoch that was given for this one."""
        if scope.producer_id is None:
            return epoch, ""
        return self._ids.live_producer(scope.producer_id, epoch)[1], ""

    def member(self, member: str, scope: Scope) -> MappedValue:
        """Take the id that the group's coordinator gave."""
        return self._ids.members.live(scope.group or "", member), ""

    def generation(self, generation: int, scope: Scope) -> MappedValue:
        """Take the generation that the member is in."""
        group, member = scope.group or "", scope.member or ""
        return self._ids.members.live_generation(group, member, generation), ""

    member_epoch = generation

    def opaque(self, role: Role, value: Any) -> MappedValue:
        """Take what the target gave for a value of one of the roles that are only handed back."""
        return self._ids.opaque_live.get((role, value), value), ""
