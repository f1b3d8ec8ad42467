"""The mapping learner: extends the id mapping from pairs of captured and live responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from construct import Container

from cluster.conversion.resource_names import TopicIds
from cluster.fields.batch_rewriter import count_records, match_records
from cluster.fields.field_layout import FieldValue, Scope, ValueField
from cluster.fields.roles import layout_of, walk
from dissector.protocol.api import Api
from dissector.protocol.apis import api
from dissector.protocol.facts import Facts, carries_topic_names, collect
from dissector.protocol.field_roles import Role
from dissector.protocol.headers import PRODUCE
from dissector.protocol.messages import Message
from dissector.protocol.schema import Schema
from replay.mapping.alignment import PairWalk, compile_pairs
from replay.mapping.id_map import OPAQUE_ROLES, IdMap
from replay.mapping.offset_map import COUNTED, TRANSLATED
from replay.model.step import Step

_ROOT = frozenset[Role]()
_RECORDS = frozenset({Role.RECORDS})

_COMMITS = frozenset({"OffsetCommit", "TxnOffsetCommit"})

_POSITIONS = frozenset({"base_offset", "offset", "committed_offset", "end_offset", "start_offset"})
"""
Offset fields with the same position in both logs. Watermarks are not among them: they depend on the
moment.
"""


def learn(
    step: Step,
    request: Mapping[str, Any],
    captured: Message | None,
    live: Container,
    version: int,
    ids: IdMap,
) -> None:
    """
    Learn from a response of the target.

    Args:
        step: The replayed step.
        request: The body of the sent request.
        captured: The captured response, or None.
        live: The body of the target's response.
        version: The version of `request` and `live`.
        ids: The id mapping to extend.
    """
    known_api = api(step.captured.api_key)
    if known_api is None:
        return
    learn_topics(known_api.response, version, live, ids.live_topics)
    if known_api.name in _COMMITS:
        _learn_commits(step, request, version, ids)
    if captured is None or captured.body is None or captured.api_version is None:
        if known_api.name == "JoinGroup" and not live.error_code:
            _learn_next_generation(step, live, ids)
        return
    learn_topics(known_api.response, captured.api_version, captured.body, ids.captured_topics)
    pair = _ResponsePair(known_api, request, version, ids, step)
    captured_scope = ids.captured_scope(pair.scope)
    walk_pairs = _pair_walk(known_api.response, captured.api_version, version)
    for captured_field, live_field in walk_pairs(
        captured.body, live, captured_scope, pair.scope, ids
    ):
        pair.learn_field(captured_field, live_field)
    pair.finish(captured.body, live)


def _learn_next_generation(step: Step, live: Container, ids: IdMap) -> None:
    """Learn a member's generation from a join without a captured response."""
    request = step.captured.request_message().body
    if request is not None:
        ids.members.learn_next_generation(request.group_id, request.member_id, live.generation_id)


def _learn_commits(step: Step, request: Mapping[str, Any], version: int, ids: IdMap) -> None:
    """Record the offsets that a request commits, as captured and as sent."""
    captured = step.captured.request_message()
    if captured.body is None or captured.schema is None or captured.api_version is None:
        return
    walk_pairs = _pair_walk(captured.schema, captured.api_version, version)
    for captured_field, live_field in walk_pairs(captured.body, request, Scope(), Scope(), ids):
        partition = ids.group_partition(captured_field.scope)
        if captured_field.role is Role.OFFSET and partition is not None:
            ids.committed_offsets[partition] = captured_field.value, live_field.value


def learn_unconfirmed(step: Step, request: Mapping[str, Any], version: int, ids: IdMap) -> None:
    """Note that the records of a Produce request may be appended at an unknown offset."""
    produce = api(PRODUCE)
    assert produce is not None
    schema = produce.request
    for field_value in walk(schema, version, request, _RECORDS):
        scope = ids.captured_scope(field_value.scope)
        topic = ids.topic_of(scope)
        if topic is not None and scope.partition is not None:
            log = ids.offsets.log(topic, scope.partition)
            log.appended.add_unconfirmed(count_records(field_value.value), step.number)


def learn_topics(schema: Schema, version: int, body: Mapping[str, Any], topics: TopicIds) -> None:
    """Learn topic ids and names, if the message has them."""
    if carries_topic_names(schema, version):
        facts = Facts()
        collect(schema, version, body, facts)
        topics.learn(facts.names)


@cache
def _pair_walk(schema: Schema, captured: int, live: int) -> PairWalk:
    return compile_pairs(
        layout_of(schema, captured, LEARNED), layout_of(schema, live, LEARNED), _learnable_condition
    )


def _learnable_condition(leaf: ValueField) -> str:
    """Return the condition under which a field pair can be learned from; empty if never."""
    if leaf.role is Role.OFFSET and leaf.name not in _POSITIONS:
        return ""
    is_count = leaf.role in (Role.OFFSET, Role.LEADER_EPOCH) and not leaf.is_list
    return "x >= 0 and y >= 0" if is_count else "True"


@dataclass(slots=True)
class _ResponsePair:
    """A captured and a live response to learn from."""

    api: Api
    request: Mapping[str, Any]
    version: int
    ids: IdMap
    step: Step
    scope: Scope = field(init=False)
    _counts: dict[tuple[Any, int | None], int] | None = None

    def __post_init__(self) -> None:
        node = layout_of(self.api.request, self.version, _ROOT)
        self.scope = Scope().inside(node, self.request)

    def learn_field(self, captured: FieldValue, live: FieldValue) -> None:
        """Learn from a field that both responses have."""
        learn_method = _LEARN_METHODS.get(captured.role)
        if learn_method is not None:
            learn_method(self, captured, live)

    def finish(self, captured: Mapping[str, Any], live: Mapping[str, Any]) -> None:
        """Learn from the responses as a whole."""
        if self.api.name == "EndTxn" and not live.get("error_code"):
            self.ids.ended_transactions += 1
        if captured.get("producer_id", -1) >= 0 and "producer_id" not in live:
            # EndTxn before v5: the target keeps the epoch it has.
            sent = self.request["producer_id"], self.request["producer_epoch"]
            self.ids.producers.learn((captured["producer_id"], captured["producer_epoch"]), sent)

    def member(self, captured: FieldValue, live: FieldValue) -> None:
        if captured.path == "member_id":
            self.ids.members.learn(captured.scope.group or "", captured.value, live.value)

    def generation(self, captured: FieldValue, live: FieldValue) -> None:
        if "." not in captured.path:
            group, member = captured.scope.group or "", captured.scope.member or ""
            self.ids.members.learn_generation(group, member, captured.value, live.value)

    def producer(self, captured: FieldValue, live: FieldValue) -> None:
        if "." not in captured.path:
            epoch = captured.path.removesuffix("id") + "epoch"
            self.ids.producers.learn(
                (captured.value, captured.parent[epoch]), (live.value, live.parent[epoch])
            )

    def opaque(self, captured: FieldValue, live: FieldValue) -> None:
        if captured.value and live.value:
            self.ids.learn_opaque(captured.role, captured.value, live.value)

    def epoch(self, captured: FieldValue, live: FieldValue) -> None:
        topic, partition = self.ids.topic_of(captured.scope), captured.scope.partition
        if topic is not None and partition is not None:
            self.ids.learn_epoch(topic, partition, captured.value, live.value)

    def offset(self, captured: FieldValue, live: FieldValue) -> None:
        topic, partition = self.ids.topic_of(captured.scope), captured.scope.partition
        if topic is None or partition is None:
            return
        offsets = self.ids.offsets
        if captured.field.name == "base_offset":
            count = self._count(live.scope)
            offsets.log(topic, partition).learn_appended(
                captured.value, live.value, count, self.step.number
            )
        elif not self._is_known(captured, topic, partition):
            offsets.learn(topic, partition, captured.value, live.value)

    def _is_known(self, captured: FieldValue, topic: str, partition: int) -> bool:
        """
        Return whether the live offset of a position is known, better than by this response.

        It may be of another moment if the request overlapped a change. The replay's own commits are
        known, whatever the target returns.
        """
        commit = self.ids.committed_offsets.get((captured.scope.group or "", topic, partition))
        if captured.field.name == "committed_offset" and commit and commit[0] == captured.value:
            return True
        rule = self.ids.offsets.rule(topic, partition, captured.value)
        overlaps = self.step.overlaps.keys()
        changes = {("partition", topic, partition), ("group", captured.scope.group)}
        return rule == TRANSLATED or (rule == COUNTED and not changes.isdisjoint(overlaps))

    def records(self, captured: FieldValue, live: FieldValue) -> None:
        topic, partition = self.ids.topic_of(captured.scope), captured.scope.partition
        if topic is not None and partition is not None:
            log = self.ids.offsets.log(topic, partition)
            for start, other, length in match_records(captured.value, live.value):
                log.learn_fetched(start, other, length)

    def _count(self, scope: Scope) -> int:
        """Return the number of records sent to a partition."""
        if self._counts is None:
            self._counts = {
                (
                    field_value.scope.topic or field_value.scope.topic_id,
                    field_value.scope.partition,
                ): count_records(field_value.value)
                for field_value in walk(self.api.request, self.version, self.request, _RECORDS)
            }
        return self._counts.get((scope.topic or scope.topic_id, scope.partition), 0)


_LEARN_METHODS: dict[Role, Callable[[_ResponsePair, FieldValue, FieldValue], None]] = {
    Role.MEMBER: _ResponsePair.member,
    Role.GENERATION: _ResponsePair.generation,
    Role.MEMBER_EPOCH: _ResponsePair.generation,
    Role.PRODUCER_ID: _ResponsePair.producer,
    Role.LEADER_EPOCH: _ResponsePair.epoch,
    Role.OFFSET: _ResponsePair.offset,
    Role.RECORDS: _ResponsePair.records,
    **dict.fromkeys(OPAQUE_ROLES, _ResponsePair.opaque),
}

LEARNED = frozenset(_LEARN_METHODS)
"""The roles of the fields that are learned from."""
