"""Captured-to-live mapping of values: one method per role, with the name of the role."""

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
from cluster.fields.refusal import RewriteError
from dissector.protocol.field_roles import Role
from replay.mapping.id_state import IdState

MappedValue = tuple[Any, str]
"""A value, and the rule that chose it if there was a choice."""

UNKNOWN = "unknown"
"""The rule for values that are sent as captured because no mapping is known."""


class LiveMapping:
    """Maps captured values to live ones; raises `RewriteError` if there can be none."""

    def __init__(self, ids: IdState) -> None:
        self._ids = ids

    def topic(self, name: str, scope: Scope) -> MappedValue:
        """Return the live name of a topic."""
        return self._ids.names.topic(name), ""

    def topic_id(self, topic_id: UUID, scope: Scope) -> MappedValue:
        """Return the live id, by topic name; the captured one if the target lacks the topic."""
        ids = self._ids
        if topic_id == NO_ID:
            return topic_id, ""
        name = ids.captured_topics.topic_name(topic_id)
        if name is None:
            if ids.target is None:
                return topic_id, UNKNOWN
            raise RewriteError(
                f"the capture has no name for topic id {topic_id}", Role.TOPIC_ID, topic_id
            )
        found = ids.ended_topic_ids.get(topic_id)
        found = found or ids.live_topics.topic_id(ids.names.topic(name))
        return (topic_id, UNKNOWN) if found is None else (found, "")

    def topic_pattern(self, pattern: str, scope: Scope) -> MappedValue:
        """Return the regular expression for the live names."""
        return self._ids.names.pattern(pattern), ""

    def group(self, name: str, scope: Scope) -> MappedValue:
        """Return the live name of a group."""
        return self._ids.names.prefixed(name), ""

    def transactional_id(self, name: str, scope: Scope) -> MappedValue:
        """Return the live transactional id."""
        return self._ids.names.prefixed(name), ""

    def transactional_id_pattern(self, pattern: str, scope: Scope) -> MappedValue:
        """Return the regular expression for the live names."""
        return self._ids.names.pattern(pattern), ""

    def coordinator_key(self, key: str, scope: Scope) -> MappedValue:
        """Return the live key for a coordinator lookup."""
        if COORDINATOR_TYPES.get(scope.kind or 0) != SHARE:
            return self._ids.names.prefixed(key), ""
        names = self._ids.names
        return share_key(key, names.prefixed, lambda each: self.topic_id(each, scope)[0]), ""

    def resource(self, name: str, scope: Scope) -> MappedValue:
        """Return the live name of a resource of configurations or ACLs."""
        kind = RESOURCE_TYPES.get(scope.kind or 0)
        if kind == TOPIC:
            return self._ids.names.topic(name), ""
        if kind == BROKER and name.isdecimal():
            return str(self._ids.brokers.live(int(name))), ""
        return (self._ids.names.prefixed(name) if kind in (GROUP, TRANSACTION) else name), ""

    def broker_id(self, node: int, scope: Scope) -> MappedValue:
        """Return the live broker id."""
        return self._ids.brokers.live(node), ""

    def leader_epoch(self, epoch: int, scope: Scope) -> MappedValue:
        """Return the learned live epoch, else the leader's current one, else -1."""
        ids = self._ids
        topic = ids.topic_of(scope)
        if epoch < 0 or ids.target is None or topic is None or scope.partition is None:
            return epoch, ""
        known = ids.leader_epochs.get((topic, scope.partition, epoch))
        if known is not None:
            return known, ""
        leader = ids.target.leader(ids.names.topic(topic), scope.partition)
        return -1 if leader is None else leader.epoch, ""

    def fetched_epoch(self, epoch: int, scope: Scope) -> MappedValue:
        """Return the learned live epoch, else -1."""
        if epoch < 0 or self._ids.target is None:
            return epoch, ""
        return self._ids.leader_epochs.get(
            (self._ids.topic_of(scope), scope.partition, epoch), -1
        ), ""

    def offset(self, offset: int, scope: Scope) -> MappedValue:
        """Return the live offset."""
        topic = self._ids.topic_of(scope)
        if topic is None or scope.partition is None:
            return offset, ""
        return self._ids.offsets.live(topic, scope.partition, offset)

    def producer_id(self, producer_id: int, scope: Scope) -> MappedValue:
        """Return the live producer id."""
        epoch = scope.producer_epoch if producer_id == scope.producer_id else None
        return self._ids.live_producer(producer_id, epoch)[0], ""

    def producer_epoch(self, epoch: int, scope: Scope) -> MappedValue:
        """Return the live producer epoch."""
        if scope.producer_id is None:
            return epoch, ""
        return self._ids.live_producer(scope.producer_id, epoch)[1], ""

    def member(self, member: str, scope: Scope) -> MappedValue:
        """Return the member id assigned by the live coordinator."""
        return self._ids.members.live(scope.group or "", member), ""

    def generation(self, generation: int, scope: Scope) -> MappedValue:
        """Return the member's live generation."""
        group, member = scope.group or "", scope.member or ""
        return self._ids.members.live_generation(group, member, generation), ""

    member_epoch = generation

    def opaque(self, role: Role, value: Any) -> MappedValue:
        """Return the live value of one of `OPAQUE_ROLES`."""
        return self._ids.opaque_live.get((role, value), value), ""
