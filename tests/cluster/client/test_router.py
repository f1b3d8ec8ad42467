from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from construct import Container
from hypothesis import given
from hypothesis import strategies as st

from cluster.client.broker_metadata import Broker, Leader, Topic
from cluster.client.cluster import Cluster, CoordinatorType
from cluster.client.fan_in import merge
from cluster.client.router import DESTINATIONS, Destination, destination_of, route
from cluster.fields.roles import walk
from dissector.protocol.api import Api
from dissector.protocol.apis import KEYS, NAMES, all_apis, api
from dissector.protocol.field_roles import Role
from tests.replay.support.scripted_broker import filled

NODES = (1, 2, 3)


class KnownCluster(Cluster):
    """A target of three brokers, with coordinators by the first letter of the key."""

    def __init__(self, leaders: dict[tuple[str, int], int] | None = None) -> None:
        super().__init__([])
        self.brokers = {node: Broker(node, "b", 9092) for node in NODES}
        self.controller = 3
        for (name, partition), node in (leaders or {}).items():
            topic = self.topics.setdefault(name, Topic(name, topic_id(name)))
            topic.leaders[partition] = Leader(node, 0)
            self.topic_names[topic_id(name)] = name

    async def coordinator(self, kind: CoordinatorType, key: str) -> int | None:
        return {"a": 1, "b": 2, "c": 3}.get(key[:1])


def topic_id(name: str) -> UUID:
    return UUID(bytes=name.encode().ljust(16, b"\1"))


def routed(
    name: str, version: int, body: dict[str, Any], cluster: Cluster | None = None, home: int = 2
) -> list[tuple[int, Container]]:
    whole = filled(declared(name).request.fields, version, body)
    return asyncio.run(route(KEYS[name], version, whole, cluster or KnownCluster(), home))


def declared(name: str) -> Api:
    found = api(KEYS[name])
    assert found is not None
    return found


TOPICS = {
    ("Produce", 9): ("topic_data", "name", "partition_data", "index"),
    ("Produce", 13): ("topic_data", "topic_id", "partition_data", "index"),
    ("Fetch", 12): ("topics", "topic", "partitions", "partition"),
    ("Fetch", 17): ("topics", "topic_id", "partitions", "partition"),
    ("ListOffsets", 7): ("topics", "name", "partitions", "partition_index"),
    ("DeleteRecords", 2): ("topics", "name", "partitions", "partition_index"),
    ("OffsetForLeaderEpoch", 4): ("topics", "topic", "partitions", "partition"),
    ("DescribeProducers", 0): ("topics", "name", "partition_indexes", ""),
    ("ShareFetch", 1): ("topics", "topic_id", "partitions", "partition_index"),
    ("ShareAcknowledge", 1): ("topics", "topic_id", "partitions", "partition_index"),
}
"""API and version -> fields of the array of topics, the topic, its partitions, the partition."""


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("name", "version"), TOPICS)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 5)),
        st.sampled_from([*NODES, 9]),
        min_size=1,
    )
)
def test_each_partition_goes_to_its_leader(
    name: str, version: int, leaders: dict[tuple[str, int], int]
) -> None:
    """Broker 9 is not in the target's metadata: its partitions go to the home broker."""
    array, field, inner, item = TOPICS[name, version]
    cluster = KnownCluster(leaders)
    topics: dict[str, list[int]] = {}
    for topic, partition in leaders:
        topics.setdefault(topic, []).append(partition)
    named = {topic: topic if field != "topic_id" else topic_id(topic) for topic in topics}
    body = {
        array: [
            {field: named[topic], inner: [{item: each} if item else each for each in partitions]}
            for topic, partitions in topics.items()
        ]
    }
    got: dict[tuple[str, int], int] = {}
    parts = routed(name, version, body, cluster)
    for node, part in parts:
        declared(name).request.codec(version).build(part)
        for topic in part[array]:
            for each in topic[inner]:
                (known,) = (name for name, value in named.items() if value == topic[field])
                place = (known, each[item] if item else each)
                assert place not in got
                got[place] = node
    assert got == {place: node if node in NODES else 2 for place, node in leaders.items()}
    assert len({node for node, _ in parts}) == len(parts)


def test_a_request_for_one_broker_is_not_copied() -> None:
    cluster = KnownCluster({("a", 0): 3, ("a", 1): 3, ("b", 0): 1})
    whole = filled(declared("Fetch").request.fields, 12, {"topics": [topic("a", 0, 1)]})
    ((node, body),) = asyncio.run(route(KEYS["Fetch"], 12, whole, cluster, 1))
    assert node == 3
    assert body is whole


def topic(name: str, *partitions: int) -> Container:
    fields = next(f for f in declared("Fetch").request.fields if f.name == "topics").fields
    body = {"topic": name, "partitions": [Container(partition=each) for each in partitions]}
    return filled(fields, 12, body)


def test_forgotten_partitions_go_to_the_broker_of_their_session() -> None:
    cluster = KnownCluster({("a", 0): 1, ("a", 1): 3})
    forgotten = [Container(topic="a", partitions=[0, 1])]
    body = {"topics": [topic("a", 1)], "forgotten_topics_data": forgotten, "session_id": 7}
    parts = dict(routed("Fetch", 12, body, cluster))
    assert {
        node: (
            [each.topic for each in part.topics],
            [list(each.partitions) for each in part.forgotten_topics_data],
            part.session_id,
        )
        for node, part in parts.items()
    } == {3: (["a"], [[1]], 7), 1: ([], [[0]], 7)}
    assert forgotten[0].partitions == [0, 1]


@pytest.mark.parametrize(
    ("topics", "home", "node"),
    [
        ([], 3, 3),
        ([], 77, 1),
        ([topic("nowhere", 0)], 3, 3),
        ([topic("a")], 3, 3),
    ],
)
def test_partitions_without_a_leader_go_to_the_home_broker(
    topics: list[Container], home: int, node: int
) -> None:
    parts = routed("Fetch", 12, {"topics": topics}, KnownCluster({("a", 0): 1}), home)
    assert [got for got, _ in parts] == [node]
    assert parts[0][1].topics == topics


@pytest.mark.parametrize(
    ("name", "version", "field", "key", "node"),
    [
        ("JoinGroup", 5, "group_id", "a-group", 1),
        ("OffsetCommit", 8, "group_id", "c-group", 3),
        ("OffsetCommit", 8, "group_id", "unknown", 2),
        ("OffsetCommit", 8, "group_id", "", 2),
        ("TxnOffsetCommit", 3, "group_id", "c", 3),
        ("InitProducerId", 4, "transactional_id", "c", 3),
        ("InitProducerId", 4, "transactional_id", None, 2),
        ("EndTxn", 3, "transactional_id", "a", 1),
        ("AddPartitionsToTxn", 3, "v3_and_below_transactional_id", "a", 1),
        ("AddOffsetsToTxn", 3, "transactional_id", "a", 1),
        ("ConsumerGroupHeartbeat", 1, "group_id", "c", 3),
        ("CreateTopics", 5, "timeout_ms", 1, 3),
        ("Metadata", 9, "topics", None, 2),
    ],
)
def test_requests_go_to_the_broker_of_their_key(
    name: str, version: int, field: str, key: Any, node: int
) -> None:
    ((got, body),) = routed(name, version, {field: key})
    assert got == node
    assert body[field] == key


def test_an_unknown_controller_is_the_home_broker() -> None:
    cluster = KnownCluster()
    cluster.controller = -1
    assert [node for node, _ in routed("CreateTopics", 5, {}, cluster)] == [2]


@pytest.mark.parametrize(
    ("name", "version", "array", "field"),
    [
        ("DescribeGroups", 5, "groups", ""),
        ("DeleteGroups", 2, "groups_names", ""),
        ("OffsetFetch", 8, "groups", "group_id"),
        ("ConsumerGroupDescribe", 0, "group_ids", ""),
        ("DescribeTransactions", 0, "transactional_ids", ""),
        ("AddPartitionsToTxn", 5, "transactions", "transactional_id"),
        ("DescribeShareGroupOffsets", 0, "groups", "group_id"),
    ],
)
def test_a_request_for_several_groups_goes_to_each_coordinator(
    name: str, version: int, array: str, field: str
) -> None:
    keys = ["a1", "b1", "a2", "c1", "unknown"]
    body = {array: [Container({field: key}) if field else key for key in keys]}
    parts = {
        node: [each[field] if field else each for each in part[array]]
        for node, part in routed(name, version, body)
    }
    assert parts == {1: ["a1", "a2"], 2: ["b1", "unknown"], 3: ["c1"]}


def test_broker_configurations_are_requested_from_that_broker() -> None:
    resources = [(2, "topic"), (4, "3"), (4, ""), (8, "1"), (4, "99")]
    body = {
        "resources": [
            Container(resource_type=kind, resource_name=name, configuration_keys=None)
            for kind, name in resources
        ]
    }
    parts = {
        node: [each.resource_name for each in part.resources]
        for node, part in routed("DescribeConfigs", 4, body)
    }
    assert parts == {2: ["topic", "", "99"], 3: ["3"], 1: ["1"]}


def test_every_api_has_a_destination_at_every_version() -> None:
    named = [name for names in DESTINATIONS.values() for name in names.split()]
    assert len(set(named)) == len(named)
    assert set(named) <= set(NAMES.values())
    assert destination_of(KEYS["Metadata"]) is Destination.HOME
    assert destination_of(999) is Destination.HOME
    for each in all_apis():
        for version in each.request.versions:
            body = filled(each.request.fields, version, {})
            ((node, got),) = asyncio.run(route(each.key, version, body, KnownCluster(), 2))
            assert node == (3 if destination_of(each.key) is Destination.CONTROLLER else 2)
            assert got is body


def answer_part(name: str, version: int, part: Container) -> Container:
    """Answer a part as its broker would: each requested partition, in order."""
    array, field, inner, item = TOPICS[name, version]
    schema = declared(name).response
    topics = next(f for f in schema.fields if f.name in ("responses", "topics"))
    topic_names = {f.name for f in topics.fields if version in f.versions}
    partitions = next(f for f in topics.fields if f.fields and f.type == "[]struct")
    number = next(f.name for f in partitions.fields if f.type == "int32")
    body = {
        topics.name: [
            {
                next(n for n in (field, "topic", "name") if n in topic_names): topic[field],
                partitions.name: [
                    {number: each[item] if item else each, "error_code": 0} for each in topic[inner]
                ],
            }
            for topic in part[array]
        ]
    }
    return filled(schema.fields, version, body)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("name", "version"), TOPICS)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 5)), st.sampled_from(NODES)
    )
)
def test_merged_responses_cover_the_whole_request(
    name: str, version: int, leaders: dict[tuple[str, int], int]
) -> None:
    array, field, inner, item = TOPICS[name, version]
    topics: dict[str, list[int]] = {}
    for topic, partition in leaders:
        topics.setdefault(topic, []).append(partition)
    body = {
        array: [
            {
                field: topic_id(topic) if field == "topic_id" else topic,
                inner: [{item: each} if item else each for each in partitions],
            }
            for topic, partitions in topics.items()
        ]
    }
    whole = filled(declared(name).request.fields, version, body)
    parts = routed(name, version, body, KnownCluster(leaders))
    schema = declared(name).response
    merged = merge(schema, version, [answer_part(name, version, part) for _, part in parts])
    schema.codec(version).build(merged)
    assert partition_values(name, version, merged) == partition_values(
        name, version, answer_part(name, version, whole)
    )


def partition_values(name: str, version: int, answer: Container) -> list[Any]:
    wanted = frozenset({Role.PARTITION})
    places = list(walk(declared(name).response, version, answer, wanted))
    assert len({place.path for place in places}) == len(places)
    return sorted(
        (str(place.scope.topic), str(place.scope.topic_id), place.value) for place in places
    )
