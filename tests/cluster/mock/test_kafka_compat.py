from __future__ import annotations

import pytest
from construct import Container

from cluster.mock.kafka_compat import ADAPTED_APIS, LEGAL_TOPIC, KafkaCompat
from dissector.protocol.apis import KEYS
from dissector.protocol.messages import Message

POSITION = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata")


def request_of(api: str, version: int, **body: object) -> Message:
    return Message(
        "request",
        b"",
        0,
        KEYS[api],
        version,
        client_id="reader",
        body=Container(body),
    )


def joins(version: int, member: str = "", **more: object) -> Message:
    return request_of("JoinGroup", version, group_id="g", member_id=member, **more)


def partition(**fields: object) -> Container:
    topic = Container(name="t", partitions=[Container(partition_index=0, **fields)])
    return Container(group_id="g", topics=[topic])


def commits(compat: KafkaCompat, error: int, offset: int = 5, metadata: str | None = None) -> int:
    committed = {
        "committed_offset": offset,
        "committed_metadata": metadata,
        "committed_leader_epoch": 3,
    }
    request = request_of("OffsetCommit", 6, **partition(**committed))
    answer = compat.adapt_response(request, partition(error_code=error))
    assert answer is not None
    return int(answer.topics[0].partitions[0].error_code)


def fetched(compat: KafkaCompat) -> tuple[int, int, str]:
    answer = partition(committed_offset=1, committed_leader_epoch=0, metadata=None, error_code=0)
    answer = compat.adapt_response(request_of("OffsetFetch", 5, **partition()), answer)
    assert answer is not None
    found = answer.topics[0].partitions[0]
    return found.committed_offset, found.committed_leader_epoch, found.metadata


def test_a_join_without_a_member_id_gets_member_id_required() -> None:
    compat = KafkaCompat()
    first, second = (compat.respond_instead(joins(4)) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.error_code == second.error_code == 79
    assert first.member_id.startswith("reader-")
    assert first.member_id != second.member_id


@pytest.mark.parametrize(
    "message", [joins(3), joins(5, "m"), joins(5, group_instance_id="i"), request_of("Metadata", 5)]
)
def test_other_requests_go_to_the_mock(message: Message) -> None:
    assert KafkaCompat().respond_instead(message) is None


@pytest.mark.parametrize(
    ("names", "pattern", "names_sent", "pattern_sent"),
    [
        (["t"], None, ["t"], ""),
        (["t"], "", ["t"], ""),
        (["t"], "x.*", ["t"], "x.*"),
        (None, None, None, None),
        (None, "", None, None),
        ([], "", None, None),
        (None, "x.*", [], "x.*"),
    ],
)
def test_topics_and_pattern_reach_the_mock_together(
    names: list[str] | None,
    pattern: str | None,
    names_sent: list[str] | None,
    pattern_sent: str | None,
) -> None:
    subscription = {"subscribed_topic_names": names, "subscribed_topic_regex": pattern}
    beats = request_of("ConsumerGroupHeartbeat", 1, **subscription)
    body = KafkaCompat().adapt_request(beats)
    sent = body.subscribed_topic_names, body.subscribed_topic_regex
    assert sent == (names_sent, pattern_sent)
    assert (body is not beats.body) == (sent != (names, pattern))


def test_a_heartbeat_without_its_required_member_id_is_refused() -> None:
    answer = KafkaCompat().respond_instead(request_of("ConsumerGroupHeartbeat", 1, member_id=""))
    assert answer is not None
    assert answer.error_code == 42
    assert (
        KafkaCompat().respond_instead(request_of("ConsumerGroupHeartbeat", 1, member_id="m"))
        is None
    )


@pytest.mark.parametrize(("acks", "is_answered"), [(0, False), (1, True), (-1, True)])
def test_acks_0_gets_no_response(acks: int, is_answered: bool) -> None:
    answer = KafkaCompat().adapt_response(
        request_of("Produce", 7, acks=acks, topic_data=[]), Container(responses=[])
    )
    assert (answer is not None) is is_answered


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ü", "x" * 250, "a\n"])
def test_invalid_topic_names(name: str) -> None:
    assert not LEGAL_TOPIC.fullmatch(name)


@pytest.mark.parametrize("name", ["a", "...", ".a", "x" * 249, "A-z_0.9"])
def test_valid_topic_names(name: str) -> None:
    assert LEGAL_TOPIC.fullmatch(name)


def test_a_topic_with_an_invalid_name_is_refused() -> None:
    topics = [Container(name=each, error_code=3, partitions=[1]) for each in ("a b", "ab", None)]
    answer = KafkaCompat().adapt_response(request_of("Metadata", 12), Container(topics=topics))
    assert answer is not None
    shown = [(topic.error_code, topic.partitions) for topic in answer.topics]
    assert shown == [(17, []), (3, [1]), (3, [1])]


def test_committed_offsets_are_returned_with_metadata_and_epoch() -> None:
    compat = KafkaCompat()
    assert fetched(compat) == (-1, -1, "")
    assert commits(compat, 0) == 0
    assert fetched(compat) == (5, 3, "")
    assert commits(compat, 22, offset=9) == 22
    assert fetched(compat) == (5, 3, "")
    assert commits(compat, 0, offset=9, metadata="noted") == 0
    assert fetched(compat) == (9, 3, "noted")


def test_all_offsets_of_a_group_are_returned() -> None:
    compat = KafkaCompat()
    assert commits(compat, 0) == 0
    for group, expected in (("g", [("t", 0, 5, 3, "")]), ("other", [])):
        asks = request_of("OffsetFetch", 6, group_id=group, topics=None)
        answer = compat.adapt_response(asks, Container(topics=[], error_code=0))
        assert answer is not None
        shown = [
            (topic.name, *(each[name] for name in POSITION))
            for topic in answer.topics
            for each in topic.partitions
        ]
        assert shown == expected


@pytest.mark.parametrize(("wants", "expected"), [(True, 3576), (False, -1)])
def test_authorized_operations_are_returned_on_request(wants: bool, expected: int) -> None:
    topics = [
        Container(name=name, error_code=error, partitions=[], topic_authorized_operations=-1)
        for name, error in (("a", 0), ("b", 3))
    ]
    asks = request_of("Metadata", 12, include_topic_authorized_operations=wants)
    answer = KafkaCompat().adapt_response(asks, Container(topics=topics))
    assert answer is not None
    assert [topic.topic_authorized_operations for topic in answer.topics] == [expected, -1]


def test_members_commit_while_others_join_but_not_before_their_assignment() -> None:
    compat, joining = KafkaCompat(), joins(5, "m")
    assert compat.adapt_request(joining) is joining.body
    assert commits(compat, 27) == 0
    assert fetched(compat) == (5, 3, "")
    compat.adapt_response(joining, Container(error_code=0))
    assert commits(compat, 27, offset=9) == 27
    assert fetched(compat) == (5, 3, "")


def test_a_leave_response_lists_the_members_that_left() -> None:
    members = [Container(member_id=each, group_instance_id=None) for each in "ab"]
    leaves = request_of("LeaveGroup", 4, members=members)
    answer = KafkaCompat().adapt_response(leaves, Container(error_code=0, members=[]))
    assert answer is not None
    assert [each.member_id for each in answer.members] == ["a", "b"]
    assert KafkaCompat().adapt_response(leaves, Container(error_code=0)) == Container(error_code=0)


def syncs(member: str, generation: int = 3, **assigned: bytes) -> Message:
    parts = [Container(member_id=name, assignment=data) for name, data in assigned.items()]
    body = {"group_id": "g", "member_id": member, "generation_id": generation}
    return request_of("SyncGroup", 3, assignments=parts, **body)


def synced(
    compat: KafkaCompat, message: Message, error: int, data: bytes | None
) -> tuple[int, bytes]:
    compat.adapt_request(message)
    answer = compat.adapt_response(message, Container(error_code=error, assignment=data))
    assert answer is not None
    return answer.error_code, answer.assignment


@pytest.mark.parametrize(("assignment", "expected"), [(None, b""), (b"", b""), (b"a", b"a")])
def test_a_missing_assignment_becomes_an_empty_one(
    assignment: bytes | None, expected: bytes
) -> None:
    assert synced(KafkaCompat(), syncs("m"), 0, assignment) == (0, expected)


def test_a_member_that_syncs_after_the_leader_gets_its_assignment() -> None:
    compat = KafkaCompat()
    assert synced(compat, syncs("late"), 42, None) == (42, b"")
    assert synced(compat, syncs("leader", leader=b"l", late=b"p"), 0, b"l") == (0, b"l")
    assert synced(compat, syncs("late"), 42, None) == (0, b"p")
    assert synced(compat, syncs("late", generation=2), 42, None) == (42, b"")
    assert synced(compat, syncs("late"), 27, None) == (27, b"")


def test_other_apis_are_not_adapted() -> None:
    assert KEYS["JoinGroup"] in ADAPTED_APIS
    assert KEYS["Fetch"] not in ADAPTED_APIS
    answer = Container(error_code=0)
    assert KafkaCompat().adapt_response(request_of("ConsumerGroupHeartbeat", 0), answer) is answer
