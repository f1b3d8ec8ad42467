"""Traffic recorded on a real broker, replayed at a fresh one, gives the same final contents."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import pytest
from confluent_kafka import Consumer, TopicPartition
from construct import Container

from cluster.client.cluster import Cluster
from cluster.conversion.resource_names import NameMap
from dissector.protocol.apis import api
from dissector.protocol.messages import Message
from dissector.protocol.records import parse_records
from replay.mapping.id_map import IdMap
from replay.model.outcome import Outcome
from replay.options.pacing import Pace
from replay.options.play_options import PlayOptions
from replay.plan.plan import Plan
from replay.run.runner import ReplayRun
from replay.sessions.retry_policy import errors_of
from tests.broker.conftest import StartCluster
from tests.broker.replay.cases import PLAIN_4
from tests.replay.support.replay_captures import SHIPPED
from tests.replay.support.step_observer import StepObserver

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

Logs = dict[tuple[str, int], list[tuple[bytes | None, bytes | None]]]

CAPTURES = (
    "kafka4-librdkafka-group",
    "kafka4-librdkafka-group-cooperative",
    "kafka4-librdkafka-group-848",
    "kafka4-librdkafka-transactions",
    "kafka4-librdkafka-codecs",
    "kafka4-librdkafka-fenced",
    "kafka4-aiokafka-group",
    "kafka4-java-clients",
    "kafka39-librdkafka-group",
)


async def played(plan: Plan, target: str, prefix: str) -> list[Outcome]:
    cluster = await Cluster.connect([target])
    try:
        names = NameMap(prefix=prefix)
        outcomes: list[Outcome] = []
        seen = StepObserver(outcomes.append)
        run = ReplayRun(plan, cluster, lambda _: IdMap(cluster, names), seen, PlayOptions(Pace(0)))
        async with asyncio.timeout(120):
            await run.play()
        assert not run.left_behind
        return outcomes
    finally:
        cluster.close()


def body(message: Message) -> Container:
    assert message.body is not None
    return message.body


def written(plan: Plan) -> Logs:
    """The records of the capture, by offset."""
    found: dict[tuple[str, int], dict[int, list[tuple[bytes | None, bytes | None]]]]
    found = defaultdict(dict)
    for step in plan:
        answered = step.captured.response_message()
        if step.captured.api != "Produce" or answered is None or step.left_out:
            continue
        produced = {
            (topic.get("name") or plan.topic_ids[topic.topic_id], each.index): each
            for topic in body(answered).responses
            for each in topic.partition_responses
        }
        for topic in body(step.captured.request_message()).topic_data:
            name = topic.get("name") or plan.topic_ids[topic.topic_id]
            for each in topic.partition_data:
                answer = produced[name, each.index]
                if not answer.error_code:
                    batches = parse_records(each.records)
                    found[name, each.index][answer.base_offset] = [
                        (record.key, record.value) for batch in batches for record in batch.records
                    ]
    return {
        log: [record for _, records in sorted(parts.items()) for record in records]
        for log, parts in found.items()
    }


def held(target: str, prefix: str, expected: Logs) -> Logs:
    """The records of the target, read by another client."""
    consumer = Consumer(
        {
            "bootstrap.servers": target,
            "group.id": f"{prefix}check",
            "isolation.level": "read_uncommitted",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    found: Logs = {log: [] for log in expected}
    places = [TopicPartition(prefix + topic, partition, 0) for topic, partition in expected]
    consumer.assign(places)
    ended = 0
    while ended < len(places):
        message = consumer.poll(20)
        assert message is not None, "the target does not return its records"
        if message.error() is not None:
            ended += 1
        else:
            topic, partition = message.topic(), message.partition()
            assert topic is not None
            assert partition is not None
            found[topic.removeprefix(prefix), partition].append((message.key(), message.value()))
    consumer.close()
    return found


def committed(outcomes: list[Outcome]) -> dict[tuple[str, str, int], int]:
    """The last commits of the capture: group, topic, partition -> offset."""
    found = {}
    for outcome in sorted(outcomes, key=lambda each: each.step.captured.request_time_ns):
        request_body = body(outcome.step.captured.request_message())
        if outcome.step.captured.api == "OffsetCommit" and not outcome.failure:
            for topic in request_body.topics:
                for each in topic.partitions:
                    if "name" in topic:
                        found[request_body.group_id, topic.name, each.partition_index] = (
                            each.committed_offset
                        )
    return found


@pytest.mark.parametrize("name", CAPTURES)
def test_the_target_has_the_captured_records(kafka: StartCluster, name: str) -> None:
    target = kafka(PLAIN_4).bootstrap()  # records are older than the default retention
    prefix = f"run-{name}."
    with Plan.of(SHIPPED / f"{name}.pcap") as plan:
        outcomes = asyncio.run(played(plan, target, prefix))
        assert not [each.failure for each in outcomes if each.failure != each.step.left_out]
        assert [changed for each in outcomes if (changed := _changed(each))] == []
        expected = written(plan)
        assert expected
        assert held(target, prefix, expected) == expected
        for (group, topic, partition), offset in committed(outcomes).items():
            consumer = Consumer({"bootstrap.servers": target, "group.id": prefix + group})
            (place,) = consumer.committed([TopicPartition(prefix + topic, partition)], 20)
            consumer.close()
            assert place.offset == offset


def _changed(outcome: Outcome) -> tuple[int, str, list[int], list[int]] | None:
    """Errors that differ from the capture."""
    captured, step = outcome.step.captured, outcome.step.number
    answered, found = captured.response_message(), api(captured.api_key)
    if answered is None or answered.body is None or outcome.response is None or found is None:
        return None
    before = sorted(errors_of(found.response, answered.api_version or 0, answered.body))
    now = sorted(errors_of(found.response, outcome.version, outcome.response))
    return None if before == now else (step, captured.api, before, now)
