"""Subscriptions and assignments: of clients, of newer versions, and invalid ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.apis import api
from dissector.protocol.embedded.fields import read_embedded
from dissector.protocol.embedded.membership.consumer_protocol import ConsumerProtocolSubscription
from dissector.protocol.embedded.membership.group_members import MemberField, read_member
from dissector.protocol.messages import Message

SUBSCRIPTION_V0 = bytes.fromhex("0000 00000001 0001 74 ffffffff")
SUBSCRIPTION_V1 = bytes.fromhex("0001 00000001 0001 74 ffffffff 00000001 0001 75 00000001 00000007")
ASSIGNMENT_V0 = bytes.fromhex("0000 00000001 0001 74 00000002 00000000 00000001 00000000")
WORKER_V0 = bytes.fromhex("0000 0003 687474 0000000000000009")
WORKER_V1 = bytes.fromhex(
    "0001 0003 687474 0000000000000009 00000025 0001 0000 0001 6c 0001 75 0000000000000009"
    "00000001 0001 63 00000001 ffffffff 00000000"
)

KNOWN = [
    (
        "consumer",
        "metadata",
        SUBSCRIPTION_V0,
        "ConsumerProtocolSubscription",
        {"topics": ["t"], "user_data": None},
    ),
    (
        "consumer",
        "metadata",
        SUBSCRIPTION_V1,
        "ConsumerProtocolSubscription",
        {
            "topics": ["t"],
            "user_data": None,
            "owned_partitions": [{"topic": "u", "partitions": [7]}],
        },
    ),
    (
        "consumer",
        "assignment",
        ASSIGNMENT_V0,
        "ConsumerProtocolAssignment",
        {"assigned_partitions": [{"topic": "t", "partitions": [0, 1]}], "user_data": b""},
    ),
    (
        "connect",
        "metadata",
        WORKER_V0,
        "ConnectWorkerMetadata",
        {"url": "htt", "config_offset": 9},
    ),
    (
        "connect",
        "metadata",
        WORKER_V1,
        "ConnectWorkerMetadata",
        {"url": "htt", "config_offset": 9, "allocation": WORKER_V1[19:]},
    ),
]


@pytest.mark.parametrize("guessed", [False, True])
@pytest.mark.parametrize(("protocol_type", "part", "data", "name", "value"), KNOWN)
def test_known_metadata(
    protocol_type: str,
    part: MemberField,
    data: bytes,
    name: str,
    value: dict[str, object],
    guessed: bool,
) -> None:
    found = read_member("m", data, part, None if guessed else protocol_type)
    assert found is not None
    assert (found.path, found.name, found.value, found.problems) == ("m", name, value, [])
    assert found.version == found.written_version == int.from_bytes(data[:2], "big")
    tree = found.spans()
    assert tree is not None
    assert (tree.start, tree.end, tree.value) == (2, len(data), value)


def test_the_allocation_of_a_worker_contains_an_assignment() -> None:
    found = read_member("m", WORKER_V1, "metadata", "connect")
    assert found is not None
    (allocation,) = found.inner
    assert (allocation.path, allocation.name) == ("allocation", "ConnectAssignment")
    assert allocation.value == {
        "error": 0,
        "leader": "l",
        "leader_url": "u",
        "config_offset": 9,
        "assignment": [{"connector": "c", "tasks": [-1]}],
        "revoked": [],
    }


def test_a_newer_version_is_decoded_as_the_newest_known() -> None:
    v3 = ConsumerProtocolSubscription.codec(3).build(
        {"topics": ["t"], "user_data": b"u", "owned_partitions": [], "rack_id": "r"}
    )
    found = read_member("m", b"\0\7" + v3 + b"more", "metadata", "consumer")
    assert found is not None
    assert (found.version, found.written_version, found.left) == (3, 7, b"more")
    assert found.value is not None
    assert found.value.rack_id == "r"
    assert not found.problems
    assert read_member("m", b"\0\7" + v3 + b"more", "metadata", None) is None


def test_a_mismatch_is_a_problem_if_the_type_is_known() -> None:
    left = read_member("m", SUBSCRIPTION_V0 + b"xy", "metadata", "consumer")
    assert left is not None
    assert left.value == {"topics": ["t"], "user_data": None}
    assert [str(p) for p in left.problems] == [
        "m at byte 13: 2 bytes are left over after ConsumerProtocolSubscription"
    ]
    short = read_member("m", SUBSCRIPTION_V0[:-1], "metadata", "consumer")
    assert short is not None
    assert short.value is None
    assert [(p.path, p.position) for p in short.problems] == [("m.user_data", 9)]
    assert read_member("m", b"\0", "metadata", "consumer").problems[0].position == 0  # type: ignore[union-attr]


@pytest.mark.parametrize("data", [b"", SUBSCRIPTION_V0 + b"x", b'{"host":"a"}', b"\0"])
def test_undecodable_metadata_is_not_guessed(data: bytes) -> None:
    assert read_member("m", data, "metadata", None) is None


def test_other_protocols_are_not_decoded() -> None:
    assert read_member("m", SUBSCRIPTION_V0, "metadata", "sr") is None


@given(
    data=st.binary(max_size=80),
    part=st.sampled_from(["metadata", "assignment"]),
    protocol_type=st.sampled_from([None, "consumer", "connect"]),
)
def test_hostile_bytes(data: bytes, part: MemberField, protocol_type: str | None) -> None:
    found = read_member("m", data, part, protocol_type)
    if found is not None and found.value is None:
        assert found.problems


topics = st.lists(st.text(max_size=6), max_size=4)
partitions = st.lists(st.integers(0, 2**31 - 1), max_size=3)


@given(topics=topics, user_data=st.binary(max_size=9), each=partitions)
def test_metadata_of_aiokafka_is_decoded(
    topics: list[str], user_data: bytes, each: list[int]
) -> None:
    protocol = pytest.importorskip("aiokafka.coordinator.protocol")
    metadata = protocol.ConsumerProtocolMemberMetadata(0, topics, user_data).encode()
    found = read_member("m", metadata, "metadata", "consumer")
    assert found is not None
    assert found.value == {"topics": topics, "user_data": user_data}
    given_out = [(topic, each) for topic in topics]
    assignment = protocol.ConsumerProtocolMemberAssignment(0, given_out, user_data).encode()
    found = read_member("m", assignment, "assignment", "consumer")
    assert found is not None
    assert found.value == {
        "assigned_partitions": [{"topic": t, "partitions": p} for t, p in given_out],
        "user_data": user_data,
    }


@pytest.mark.parametrize("version", range(4))
@given(topics=topics, each=partitions)
def test_metadata_of_kafka_python_is_decoded(
    version: int, topics: list[str], each: list[int]
) -> None:
    theirs = pytest.importorskip("kafka.protocol.consumer.metadata")
    topic_partition = theirs.ConsumerProtocolSubscription.TopicPartition
    subscription = theirs.ConsumerProtocolSubscription(
        topics=topics,
        user_data=None,
        owned_partitions=[topic_partition(topic=t, partitions=each) for t in topics],
        generation_id=5,
        rack_id="r",
        version=version,
    )
    found = read_member("m", bytes(subscription.encode(header=True)), "metadata", "consumer")
    assert found is not None
    assert not found.problems
    assert found.version == version
    assert found.value is not None
    assert found.value.topics == topics
    if version >= 1:
        owned = [(o.topic, o.partitions) for o in found.value.owned_partitions]
        assert owned == [(t, each) for t in topics]
    if version == 3:
        assert (found.value.generation_id, found.value.rack_id) == (5, "r")


VECTORS = [
    ("ExtractJoinGroupReq", "protocols[0].metadata", {"topics": ["quickstart-events"]}),
    ("ExtractJoinGroupResp", "members[0].metadata", {"topics": ["quickstart-events"]}),
    ("ExtractSyncGroupReq", "assignments[0].assignment", None),
    ("ExtractSyncGroupResp", "assignment", None),
]


@pytest.mark.parametrize(("name", "path", "value"), VECTORS)
def test_real_bytes(shared: Path, name: str, path: str, value: dict[str, object] | None) -> None:
    vectors = json.loads((shared / "captures/pixie__kafka_test_vectors.json").read_text())
    vector = next(v for v in vectors if v["name"] == name)
    schema = api(vector["api_key"]).schema(vector["kind"])  # type: ignore[union-attr]
    body = schema.codec(vector["api_version"]).parse(bytes.fromhex(vector["hex"]))
    message = Message(vector["kind"], b"", 0, vector["api_key"], vector["api_version"], body=body)
    (found,) = read_embedded(message)
    assert found.path == path
    assert found.version == 1
    assert found.value is not None
    if value is not None:
        assert found.value.topics == value["topics"]
        assert not found.problems
    else:
        assigned = {"topic": "quickstart-events", "partitions": [0]}
        assert found.value.assigned_partitions == [assigned]


STICKY_V0 = bytes.fromhex("00000001 0001 74 00000001 00000007")
STICKY_V1 = STICKY_V0 + bytes.fromhex("00000009")
GENERATION = bytes.fromhex("00000009")
HAD = [{"topic": "t", "partitions": [7]}]


@pytest.mark.parametrize(
    ("assignor", "data", "value"),
    [
        ("sticky", STICKY_V0, {"previous_assignment": HAD}),
        ("sticky", STICKY_V1, {"previous_assignment": HAD, "generation": 9}),
        ("cooperative-sticky", STICKY_V1, {"previous_assignment": HAD, "generation": 9}),
        ("cooperative-sticky", GENERATION, {"generation": 9}),
        ("sticky", bytes(4), {"previous_assignment": []}),
        ("sticky", STICKY_V1 + b"x", None),
        ("cooperative-sticky", b"", None),
        ("range", GENERATION, None),
        (None, GENERATION, None),
    ],
)
def test_user_data_of_assignors(
    assignor: str | None, data: bytes, value: dict[str, object] | None
) -> None:
    codec = ConsumerProtocolSubscription.codec(0)
    metadata = b"\0\0" + codec.build({"topics": ["t"], "user_data": data})
    found = read_member("m", metadata, "metadata", "consumer", assignor)
    assert found is not None
    assert [(each.path, each.value) for each in found.inner] == (
        [] if value is None else [("user_data", value)]
    )
