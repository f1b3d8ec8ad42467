"""A topic that is deleted and created again has other logs, though the same name."""

from __future__ import annotations

from pathlib import Path

from cluster.fields.field_layout import Scope
from dissector.protocol.apis import KEYS
from dissector.protocol.field_roles import Role
from dissector.protocol.messages import decode_request, decode_response
from replay import Plan
from replay.mapping.id_map import IdMap
from replay.order.topic_lives import TopicLife, TopicLives, deletion_of
from tests.default_frames import request, response, sized
from tests.replay.support import produce_messages
from tests.replay.support.builders import uuid
from tests.replay.support.replay_captures import exchange, saved
from tests.tcp_captures import Wire, WireConnection

CREATE, DELETE, METADATA = (KEYS[name] for name in ("CreateTopics", "DeleteTopics", "Metadata"))


def create(connection: WireConnection, name: str = "t", error: int = 0) -> None:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 3}
    asked = topic | {"assignments": [], "configs": []}
    answer = topic | {"error_code": error, "topic_id": uuid(9), "error_message": None}
    answer |= {"topic_config_error_code": 0, "configs": []}
    pair = request(CREATE, 4, 1, topics=[asked]), response(CREATE, 4, 1, topics=[answer])
    exchange(connection, *pair)


def delete(connection: WireConnection, name: str = "t", error: int = 0) -> None:
    deleted = {"name": name, "error_code": error}
    asked = request(DELETE, 3, 2, topic_names=[name])
    exchange(connection, asked, response(DELETE, 3, 2, responses=[deleted]))


def metadata(connection: WireConnection, topic_id: int) -> None:
    topic = {"error_code": 0, "name": "t", "topic_id": uuid(topic_id), "is_internal": False}
    topic |= {"partitions": [], "topic_authorized_operations": 0}
    asked = {"topics": [{"topic_id": uuid(0), "name": "t"}]}
    pair = request(METADATA, 12, 3, **asked), response(METADATA, 12, 3, brokers=[], topics=[topic])
    exchange(connection, *pair)


def produce(connection: WireConnection, offset: int) -> None:
    asked = produce_messages.produce_request(9, [produce_messages.Written("t", 0)])
    answer = produce_messages.produce_response(9, [("t", 0, offset)])
    exchange(connection, sized(asked), sized(answer))


def reborn(folder: Path) -> str:
    """Append at offset 5, delete the topic, create it, append at offset 0."""
    wire = Wire()
    producer, admin = (wire.connect(50000 + at).syn() for at in range(2))
    metadata(admin, 1)
    produce(producer, 5)
    delete(admin)
    create(admin)
    metadata(admin, 2)
    produce(producer, 0)
    metadata(admin, 2)
    return saved(folder, wire)


def test_a_deletion_ends_a_life_and_later_logs_are_others(tmp_path: Path) -> None:
    with Plan.of(reborn(tmp_path), allow=["DeleteTopics"]) as plan:
        names = [step.captured.api for step in plan]
        assert names == [
            *("Metadata", "Produce", "DeleteTopics", "CreateTopics", "Metadata", "Produce"),
            "Metadata",
        ], "the second Produce has the lower offset, but in another log"
        assert plan.ended_lives == {2: [("t", (uuid(1),), (uuid(2),))]}
        assert 1 in plan.step(2).after, "records are appended before the topic is deleted"
        assert list(plan.topic_ids) == [uuid(2), uuid(1)], "the newest is that of the first life"
        assert plan.given_topics == {"t"}, "it exists before the capture creates it"
        assert not plan.absent_topics


def test_a_deletion_in_another_part_ends_a_life_where_the_next_is_used(tmp_path: Path) -> None:
    ends: dict[str, list[int]] = {}
    foreign: dict[str, bool] = {}
    for part in ("1/2", "2/2"):
        with Plan.of(reborn(tmp_path), allow=["DeleteTopics"], part=part) as plan:
            ends |= {step.captured.api: list(plan.ended_lives) for step in plan}
            foreign |= {step.captured.api: deletion_of("t") in plan.foreign for step in plan}
    assert ends["DeleteTopics"] == [2]
    assert ends["Produce"] == [5], "the first one that waits for the deletion"
    assert (foreign["DeleteTopics"], foreign["Produce"]) == (False, True)


def test_a_deletion_that_is_not_sent_ends_a_life_where_the_next_begins(tmp_path: Path) -> None:
    with Plan.of(reborn(tmp_path)) as plan:
        assert plan.step(2).left_out
        assert list(plan.ended_lives) == [3], "CreateTopics"
    for part in ("1/2", "2/2"):
        with Plan.of(reborn(tmp_path), part=part) as plan:
            assert deletion_of("t") not in plan.foreign


def test_another_topic_id_ends_a_life_without_a_captured_deletion(tmp_path: Path) -> None:
    with Plan.of(reborn(tmp_path), filter="api in {Metadata, Produce}") as plan:
        assert [step.captured.api for step in plan][:3] == ["Metadata", "Produce", "Metadata"]
        assert list(plan.ended_lives) == [2]


def test_a_topic_that_only_the_capture_creates_is_left_to_it(tmp_path: Path) -> None:
    wire = Wire()
    admin = wire.connect().syn()
    create(admin)
    create(admin, "there already", error=36)
    delete(admin)
    create(admin)
    with Plan.of(saved(tmp_path, wire)) as plan:
        assert plan.absent_topics == {"t"}


def test_a_failed_deletion_ends_nothing() -> None:
    lives = TopicLives()
    asked = decode_request(request(DELETE, 3, 2, topic_names=["t", "u"])[4:])
    deleted = [{"name": "t", "error_code": 3}, {"name": "u", "error_code": 0}]
    answer = decode_response(response(DELETE, 3, 2, responses=deleted)[4:], DELETE, 3)
    assert lives.record(0, asked, answer, {})
    assert [end.life for end in lives.ends()] == [("u", 0)]
    assert lives.log(("t", 0)) == ("t", 0)
    assert lives.log(("u", 0)) == (TopicLife("u", 1), 0)
    assert not lives.record(1, asked, None, {uuid(1): "u"})
    assert lives.of_id(uuid(1)) == TopicLife("u", 1)


def test_what_was_learned_of_a_topic_ends_with_it() -> None:
    ids = IdMap()
    ids.captured_topics.learn({uuid(2): "t", uuid(1): "t"})
    ids.live_topics.learn({uuid(11): "t"})
    for topic in ("t", "u"):
        ids.offsets.log(topic, 0).learn_appended(5, 70, 3, 0)
        ids.learn_epoch(topic, 0, 4, 9)
        ids.committed_offsets["g", topic, 0] = 6, 71
    ids.end_topic("t", [uuid(1)], [uuid(2)])
    assert [place for place, _ in ids.offsets.logs()] == [("u", 0)]
    assert list(ids.leader_epochs) == [("u", 0, 4)]
    assert list(ids.captured_leader_epochs) == [("u", 0, 9)]
    assert list(ids.committed_offsets) == [("g", "u", 0)]
    ids.live_topics.learn({uuid(12): "t"})
    live = [ids.live(Role.TOPIC_ID, uuid(each), Scope())[0] for each in (1, 2)]
    assert live == [uuid(11), uuid(12)], "the deleted topic keeps its id"
    assert [ids.captured(Role.TOPIC_ID, each, Scope()) for each in live] == [uuid(1), uuid(2)]
