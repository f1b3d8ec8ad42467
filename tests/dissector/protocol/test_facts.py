"""Errors, topics and names of topic ids, collected from bodies."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dissector.protocol.api import Kind
from dissector.protocol.apis import all_apis, api
from dissector.protocol.error_codes import error_name
from dissector.protocol.facts import Facts, carries_topic_names, collect, extraction_plan
from dissector.protocol.schema import Field, Schema, split_tagged
from tests.example_counts import examples
from tests.message_strategies import values

A, B, C = (UUID(int=n) for n in (10, 11, 12))
ZERO = UUID(int=0)


def _schema(key: int, kind: Kind) -> Schema:
    found = api(key)
    assert found is not None
    return found.schema(kind)


def facts_of(key: int, kind: Kind, version: int, value: dict[str, Any]) -> Facts:
    """Encode and decode a value, like a body from a capture."""
    schema = _schema(key, kind)
    codec = schema.codec(version)
    facts = Facts()
    collect(schema, version, codec.parse(codec.build(value)), facts)
    return facts


def _metadata_topic(error: int, name: str | None, topic_id: UUID, *errors: int) -> dict[str, Any]:
    return {
        "error_code": error,
        "name": name,
        "topic_id": topic_id,
        "is_internal": False,
        "partitions": [
            {
                "error_code": code,
                "partition_index": index,
                "leader_id": 1,
                "replica_nodes": [],
                "isr_nodes": [],
                "offline_replicas": [],
            }
            for index, code in enumerate(errors)
        ],
    }


ASKED = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": False}

# Key, kind, version, value, errors, topics, names.
CASES: list[tuple[int, Kind, int, dict[str, Any], list[str], list[Any], dict[UUID, str]]] = [
    (
        3,
        "response",
        12,
        {
            "throttle_time_ms": 0,
            "brokers": [],
            "controller_id": 1,
            "topics": [
                _metadata_topic(0, "a", A, 0, 5, 5),
                _metadata_topic(100, None, B),
                _metadata_topic(3, "c", ZERO),
                _metadata_topic(0, "", C),
            ],
        },
        ["LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_ID", "UNKNOWN_TOPIC_OR_PARTITION"],
        ["a", B, "c", C],
        {A: "a"},
    ),
    (
        3,
        "request",
        12,
        ASKED | {"topics": [{"name": "a", "topic_id": ZERO}, {"name": None, "topic_id": B}]},
        [],
        ["a", B],
        {},
    ),
    (3, "request", 12, ASKED | {"topics": None}, [], [], {}),
    (
        19,
        "response",
        7,
        {
            "throttle_time_ms": 0,
            "topics": [
                {
                    "name": "new",
                    "topic_id": A,
                    "error_code": 0,
                    "configs": None,
                    "error_message": None,
                },
                {
                    "name": "old",
                    "topic_id": ZERO,
                    "error_code": 36,
                    "configs": [],
                    "error_message": "x",
                },
            ],
        },
        ["TOPIC_ALREADY_EXISTS"],
        ["new", "old"],
        {A: "new"},
    ),
    (
        75,
        "response",
        0,
        {
            "throttle_time_ms": 0,
            "topics": [
                {
                    "error_code": 0,
                    "name": "a",
                    "topic_id": A,
                    "is_internal": False,
                    "partitions": [],
                    "topic_authorized_operations": 0,
                }
            ],
            "next_cursor": {"topic_name": "b", "partition_index": 1},
        },
        [],
        ["a", "b"],
        {A: "a"},
    ),
    (
        20,
        "request",
        6,
        {
            "topics": [{"name": None, "topic_id": A}, {"name": "b", "topic_id": ZERO}],
            "timeout_ms": 1,
        },
        [],
        [A, "b"],
        {},
    ),
    (20, "request", 3, {"topic_names": ["a", "b", "a"], "timeout_ms": 1}, [], ["a", "b"], {}),
    (
        0,
        "request",
        9,
        {
            "acks": 1,
            "timeout_ms": 1,
            "topic_data": [
                {"name": "b", "partition_data": []},
                {"name": "a", "partition_data": [{"index": 0, "records": b""}]},
            ],
        },
        [],
        ["b", "a"],
        {},
    ),
    (
        0,
        "request",
        13,
        {"acks": 1, "timeout_ms": 1, "topic_data": [{"topic_id": C, "partition_data": []}]},
        [],
        [C],
        {},
    ),
    (
        0,
        "response",
        3,
        {
            "responses": [
                {
                    "name": "a",
                    "partition_responses": [
                        {"index": 0, "error_code": code, "base_offset": 0} for code in (6, 0, -1, 6)
                    ],
                }
            ]
        },
        ["NOT_LEADER_OR_FOLLOWER", "UNKNOWN_SERVER_ERROR"],
        ["a"],
        {},
    ),
    (
        1,
        "response",
        16,
        {
            "throttle_time_ms": 0,
            "error_code": 70,
            "session_id": 0,
            "responses": [{"topic_id": A, "partitions": []}],
        },
        ["FETCH_SESSION_ID_NOT_FOUND"],
        [A],
        {},
    ),
    (12, "response", 1, {"throttle_time_ms": 0, "error_code": 999}, ["ERROR_999"], [], {}),
    (12, "response", 1, {"throttle_time_ms": 0, "error_code": 0}, [], [], {}),
    (
        69,
        "response",
        0,
        {
            "throttle_time_ms": 0,
            "groups": [
                {
                    "error_code": 69,
                    "error_message": None,
                    "group_id": "g",
                    "group_state": "s",
                    "group_epoch": 1,
                    "assignment_epoch": 1,
                    "assignor_name": "x",
                    "authorized_operations": 0,
                    "members": [
                        {
                            "member_id": "m",
                            "member_epoch": 1,
                            "client_id": "c",
                            "client_host": "h",
                            "subscribed_topic_names": ["s"],
                            "assignment": {
                                "topic_partitions": [
                                    {"topic_id": A, "topic_name": "a", "partitions": [0]}
                                ]
                            },
                            "target_assignment": {"topic_partitions": []},
                        }
                    ],
                }
            ],
        },
        ["GROUP_ID_NOT_FOUND"],
        ["s", "a"],
        {A: "a"},
    ),
]


@pytest.mark.parametrize(("key", "kind", "version", "value", "errors", "topics", "names"), CASES)
def test_facts(
    key: int,
    kind: Kind,
    version: int,
    value: dict[str, Any],
    errors: list[str],
    topics: list[Any],
    names: dict[UUID, str],
) -> None:
    facts = facts_of(key, kind, version, value)
    assert list(facts.errors) == errors
    assert set(facts.topics) == set(topics)
    assert facts.names == names
    if names:
        assert carries_topic_names(_schema(key, kind), version)


def test_topics_are_in_wire_order() -> None:
    for key, kind, version, value, _, topics, _ in CASES:
        assert list(facts_of(key, kind, version, value).topics) == topics


def test_errors_are_in_wire_order() -> None:
    partition = {
        "partition_index": 0,
        "committed_offset": 0,
        "committed_leader_epoch": 0,
        "metadata": "",
        "error_code": 3,
    }
    topics = [{"name": "a", "partitions": [partition]}]
    value = {"throttle_time_ms": 0, "topics": topics, "error_code": 16}
    errors = list(facts_of(9, "response", 5, value).errors)
    assert errors == ["UNKNOWN_TOPIC_OR_PARTITION", "NOT_COORDINATOR"]


def test_facts_of_several_bodies_are_joined() -> None:
    facts = Facts()
    for key, code in ((12, 27), (13, 25), (12, 27)):
        schema = _schema(key, "response")
        collect(schema, 1, schema.codec(1).parse(bytes(4) + code.to_bytes(2, "big")), facts)
    assert list(facts.errors) == ["REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID"]


def test_empty_names_in_an_array_are_skipped() -> None:
    value = {"topic_names": ["", "a", None], "timeout_ms": 1}
    assert list(facts_of(20, "request", 3, value).topics) == ["a"]


DEFINING_VERSIONS = {
    ("Metadata", "request"): range(10, 14),
    ("Metadata", "response"): range(10, 14),
    ("LeaderAndIsr", "request"): range(5, 8),
    ("UpdateMetadata", "request"): range(7, 9),
    ("CreateTopics", "response"): range(7, 8),
    ("DeleteTopics", "request"): range(6, 7),
    ("DeleteTopics", "response"): range(6, 7),
    ("ConsumerGroupDescribe", "response"): range(2),
    ("DescribeTopicPartitions", "response"): range(1),
    ("ShareGroupDescribe", "response"): range(2),
    ("DescribeShareGroupOffsets", "response"): range(2),
    ("AlterShareGroupOffsets", "response"): range(1),
    ("DeleteShareGroupOffsets", "response"): range(1),
}


def test_versions_that_define_topic_names() -> None:
    defining: dict[tuple[str, str], list[int]] = {}
    kinds: tuple[Kind, ...] = ("request", "response")
    for found in all_apis():
        for kind in kinds:
            schema = found.schema(kind)
            for version in schema.versions:
                if carries_topic_names(schema, version):
                    defining.setdefault((found.name, kind), []).append(version)
    assert defining == {message: list(versions) for message, versions in DEFINING_VERSIONS.items()}


def test_plans_are_cached() -> None:
    schema = _schema(3, "response")
    assert extraction_plan(schema, 12) is extraction_plan(schema, 12)
    assert not extraction_plan(_schema(12, "request"), 4)


def _everything(fields: tuple[Field, ...], version: int, body: Any, facts: Facts) -> None:
    """Collect facts slowly, from every field of a body."""
    plain, tagged = split_tagged(fields, version)
    for field in plain + tagged:
        value = body[field.name]
        if field.name.endswith("error_code") and value:
            facts.errors[error_name(value)] = None
        if field.entity == "topicName":
            facts.topics.update(dict.fromkeys(value if isinstance(value, list) else [value]))
        if field.type == "struct" and value is not None:
            _everything(field.fields, version, value, facts)
        for item in (value or ()) if field.type == "[]struct" else ():
            _everything(field.fields, version, item, facts)


@given(data=st.data())
@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
def test_no_fact_is_missed(data: st.DataObject) -> None:
    found = data.draw(st.sampled_from(all_apis()))
    schema = found.schema(data.draw(st.sampled_from(("request", "response"))))
    version = data.draw(st.sampled_from(list(schema.versions)))
    body = data.draw(values(schema, version))
    facts, expected = Facts(), Facts()
    collect(schema, version, body, facts)
    _everything(schema.fields, version, body, expected)
    assert set(facts.errors) == set(expected.errors)
    names = {topic for topic in facts.topics if isinstance(topic, str)}
    assert names - {""} == {topic for topic in expected.topics if topic}
    assert ZERO not in facts.topics
    assert ZERO not in facts.names
    assert set(facts.names.values()) <= names
