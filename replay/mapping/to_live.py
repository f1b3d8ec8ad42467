"""What the target has for captured values: a method per role, which has the role's name."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from replay.fields.field_layout import Role, Scope
from replay.mapping.id_state import IdState
from replay.mapping.resource_names import NO_ID, share_key
from replay.model.kafka_enums import (
    BROKER,
    COORDINATED,
    GROUP,
    RESOURCES,
    SHARE,
    TOPIC,
    TRANSACTION,
)
from replay.model.refusal import Refused

Found = tuple[Any, str]
"""A value, and which rule chose it where there was a choice."""

UNKNOWN = "unknown"
"""Sent as it was captured, because nothing is known of it."""


class ToLive:
    """From the capture to the target; a value that nothing stands for is `Refused`."""

    def __init__(self, world: IdState) -> None:
        self._world = world

    def topic(self, name: str, scope: Scope) -> Found:
        """Give a topic its name."""
        return self._world.names.topic(name), ""

    def topic_id(self, topic_id: UUID, scope: Scope) -> Found:
        """Find the id by the topic's name; one that the target lacks is sent as it was captured."""
        world = self._world
        if topic_id == NO_ID:
            return topic_id, ""
        name = world.captured_topics.topic_name(topic_id)
        if name is None:
            if world.target is None:
                return topic_id, UNKNOWN
            raise Refused(
                f"the capture nowhere names the topic with id {topic_id}", Role.TOPIC_ID, topic_id
            )
        found = world.live_topics.topic_id(world.names.topic(name))
        return (topic_id, UNKNOWN) if found is None else (found, "")

    def topic_pattern(self, pattern: str, scope: Scope) -> Found:
        """Have a regular expression match the new names."""
        return self._world.names.pattern(pattern), ""

    def group(self, name: str, scope: Scope) -> Found:
        """Give a group its name."""
        return self._world.names.other(name), ""

    def transactional_id(self, name: str, scope: Scope) -> Found:
        """Give a transactional id its name."""
        return self._world.names.other(name), ""

    def transactional_id_pattern(self, pattern: str, scope: Scope) -> Found:
        """Have a regular expression match the new names."""
        return self._world.names.pattern(pattern), ""

    def coordinator_key(self, key: str, scope: Scope) -> Found:
        """Name what a coordinator is looked for."""
        if COORDINATED.get(scope.kind or 0) != SHARE:
            return self._world.names.other(key), ""
        names = self._world.names
        return share_key(key, names.other, lambda each: self.topic_id(each, scope)[0]), ""

    def resource(self, name: str, scope: Scope) -> Found:
        """Name what is configured, or what an ACL is about."""
        kind = RESOURCES.get(scope.kind or 0)
        if kind == TOPIC:
            return self._world.names.topic(name), ""
        if kind == BROKER and name.isdecimal():
            return str(self._world.brokers.live(int(name))), ""
        return (self._world.names.other(name) if kind in (GROUP, TRANSACTION) else name), ""

    def broker_id(self, node: int, scope: Scope) -> Found:
        """Choose a broker for one that is named."""
        return self._world.brokers.live(node), ""

    def leader_epoch(self, epoch: int, scope: Scope) -> Found:
        """Take the epoch that stands for this one, else the present one, else say that none is."""
        world = self._world
        topic = world.topic_of(scope)
        if epoch < 0 or world.target is None or topic is None or scope.partition is None:
            return epoch, ""
        known = world.epochs.get((topic, scope.partition, epoch))
        if known is not None:
            return known, ""
        leader = world.target.leader(world.names.topic(topic), scope.partition)
        return -1 if leader is None else leader.epoch, ""

    def fetched_epoch(self, epoch: int, scope: Scope) -> Found:
        """Take the epoch that stands for this one, else say that none is known."""
        if epoch < 0 or self._world.target is None:
            return epoch, ""
        return self._world.epochs.get((self._world.topic_of(scope), scope.partition, epoch), -1), ""

    def offset(self, offset: int, scope: Scope) -> Found:
        """Translate an offset of a partition."""
        topic = self._world.topic_of(scope)
        if topic is None or scope.partition is None:
            return offset, ""
        return self._world.offsets.live(topic, scope.partition, offset)

    def producer_id(self, producer_id: int, scope: Scope) -> Found:
        """Take the id that was given for this one."""
        epoch = scope.producer_epoch if producer_id == scope.producer_id else None
        return self._world.live_producer(producer_id, epoch)[0], ""

    def producer_epoch(self, epoch: int, scope: Scope) -> Found:
        """Take the epoch that was given for this one."""
        if scope.producer_id is None:
            return epoch, ""
        return self._world.live_producer(scope.producer_id, epoch)[1], ""

    def member(self, member: str, scope: Scope) -> Found:
        """Take the id that the group's coordinator gave."""
        return self._world.members.live(scope.group or "", member), ""

    def generation(self, generation: int, scope: Scope) -> Found:
        """Take the generation that the member is in."""
        group, member = scope.group or "", scope.member or ""
        return self._world.members.turn(group, member, generation), ""

    member_epoch = generation

    def given(self, role: Role, value: Any) -> Found:
        """Take what the target gave for a value of one of the roles that are only handed back."""
        return self._world.given.get((role, value), value), ""
