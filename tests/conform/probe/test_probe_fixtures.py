"""The probe's own topics and groups are created and deleted."""

from __future__ import annotations

from typing import Any

import pytest

from conform.probe.probe_fixtures import Fixtures
from conform.probe.probe_target import NotJudged, Target
from dissector.protocol.messages import Message
from tests.conform.probe.test_probe_target import with_target
from tests.replay.support.scripted_broker import Answer, offers

UNKNOWN_TOPIC, POLICY_VIOLATION, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP = 3, 44, 69, 68


def _created(message: Message) -> Answer:
    assert message.body is not None
    return {"topics": [{"name": each.name} for each in message.body.topics]}


def _metadata(message: Message) -> Answer:
    assert message.body is not None
    partition = {"leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]}
    topics = [{"name": each.name, "partitions": [partition]} for each in message.body.topics or ()]
    return {"topics": topics}


def test_a_topic_is_created_once_under_the_prefix() -> None:
    made: list[Any] = []

    def created(message: Message) -> Answer:
        made.append(message.body)
        return _created(message)

    async def do(target: Target) -> None:
        own = Fixtures(target)
        topic = await own.topic("t", {"cleanup.policy": "compact"})
        assert await own.topic("t") is topic
        assert topic.name == f"{own.prefix}t"
        assert own.prefix.startswith("kafkashark-conform-")
        assert topic.leader_id == 1
        (body,) = made
        assert [(c.name, c.value) for c in body.topics[0].configs] == [
            ("cleanup.policy", "compact")
        ]

    with_target({"CreateTopics": created, "Metadata": _metadata, "ListOffsets": lambda _: {}}, do)


def test_a_new_leader_is_awaited() -> None:
    errors = iter([UNKNOWN_TOPIC, UNKNOWN_TOPIC, 0])

    def listed(message: Message) -> Answer:
        partition = {"partition_index": 0, "error_code": next(errors)}
        return {"topics": [{"name": "t", "partitions": [partition]}]}

    async def do(target: Target) -> None:
        assert (await Fixtures(target).topic("t")).leader_id == 1
        assert next(errors, None) is None

    with_target({"CreateTopics": _created, "Metadata": _metadata, "ListOffsets": listed}, do)


def test_refused_fixtures_leave_rules_unjudged() -> None:
    async def do(target: Target) -> None:
        with pytest.raises(NotJudged, match="POLICY_VIOLATION"):
            await Fixtures(target).topic("t")

    with_target(
        {"CreateTopics": lambda _: {"topics": [{"name": "t", "error_code": POLICY_VIOLATION}]}}, do
    )


def test_without_create_topics_metadata_may_create_the_topic() -> None:
    bodies: list[Any] = []

    def after_a_refusal(message: Message) -> Answer:
        bodies.append(message.body)
        return _metadata(message)

    async def do(target: Target) -> None:
        own = Fixtures(target)
        await own.topic("t")
        assert bodies[-1].allow_auto_topic_creation
        with pytest.raises(NotJudged, match="CreateTopics"):
            await own.topic("other", {"cleanup.policy": "compact"})

    with_target(
        {"ApiVersions": offers(ApiVersions=(0, 4), Metadata=(0, 12)), "Metadata": after_a_refusal},
        do,
    )


def test_fixtures_are_removed_and_those_left_are_reported() -> None:
    gone: list[str] = []

    def topics(message: Message) -> Answer:
        assert message.body is not None
        (topic,) = message.body.topics
        gone.append(topic.name)
        return {"responses": [{"name": topic.name, "error_code": UNKNOWN_TOPIC}]}

    def groups(message: Message) -> Answer:
        assert message.body is not None
        (group,) = message.body.groups_names
        error = NON_EMPTY_GROUP if group.endswith("busy") else GROUP_ID_NOT_FOUND
        return {"results": [{"group_id": group, "error_code": error}]}

    async def do(target: Target) -> None:
        own = Fixtures(target)
        names = [own.topic_name("a"), own.topic_name("b")]
        own.group_id("over")
        busy = own.group_id("busy")
        own.absent_name("never made")
        assert await own.remove() == [f"group {busy}: NON_EMPTY_GROUP"]
        assert gone == names

    with_target({"DeleteTopics": topics, "DeleteGroups": groups}, do)


def test_undeletable_fixtures_are_left() -> None:
    async def do(target: Target) -> None:
        own = Fixtures(target)
        topic = own.topic_name("t")
        assert await own.remove() == [f"topic {topic}: the broker offers no DeleteTopics"]

    with_target({"ApiVersions": offers(ApiVersions=(0, 4), Metadata=(0, 12))}, do)
