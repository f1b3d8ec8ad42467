"""Learning the target's ids from responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from construct import Container
from hypothesis import given
from hypothesis import strategies as st

from cluster.conversion.resource_names import NameMap
from cluster.fields.field_layout import SCOPE_FIELDS, Scope
from dissector.protocol.field_roles import Role
from dissector.protocol.records import Record, new_batch
from replay.mapping.id_map import IdMap
from replay.mapping.learner import learn
from replay.mapping.request_rewriter import rewrite
from replay.model.outcome import Verdict
from tests.replay.support.builders import request, response, step, topology, uuid, whole
from tests.replay.support.comparison import found as compared
from tests.replay.support.outcomes import outcome


def _learn(
    ids: IdMap,
    name: str,
    version: int,
    sent: Mapping[str, Any],
    captured: Mapping[str, Any],
    live: Mapping[str, Any],
    live_version: int | None = None,
) -> None:
    there = version if live_version is None else live_version
    learn(
        step(name, version),
        whole(name, there, sent),
        response(name, version, captured),
        whole(name, there, live, "response"),
        there,
        ids,
    )


def _batch(values: list[bytes], base: int = 0) -> bytes:
    records = [Record(0, 0, i, None, value, (), base + i, 0) for i, value in enumerate(values)]
    return new_batch(records, base_offset=base).to_bytes()


def _produced(topics: Mapping[str, tuple[int, int]], error: int = 0) -> dict[str, Any]:
    """Base offset by topic and partition."""
    return {
        "responses": [
            {
                "name": name,
                "topic_id": uuid(ord(name[-1])),
                "partition_responses": [
                    {"index": partition, "error_code": error, "base_offset": base}
                ],
            }
            for name, (partition, base) in topics.items()
        ]
    }


def _produce(topics: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    """Number of records by topic and partition."""
    return {
        "transactional_id": None,
        "acks": 1,
        "timeout_ms": 1,
        "topic_data": [
            {
                "name": name,
                "topic_id": uuid(ord(name[-1])),
                "partition_data": [{"index": partition, "records": _batch([b"v"] * count)}],
            }
            for name, (partition, count) in topics.items()
        ],
    }


def test_offsets_are_learned_from_produce_responses() -> None:
    ids = IdMap(topology({}), NameMap(prefix="p-"))
    sent = _produce({"p-a": (0, 3), "p-b": (1, 2)})
    live = _produced({"p-b": (1, 5), "p-a": (0, 7)})
    _learn(ids, "Produce", 8, sent, _produced({"a": (0, 100), "b": (1, 200)}), live)
    assert ids.offsets.live("a", 0, 102) == (9, "translated")
    assert ids.offsets.live("b", 1, 202) == (7, "translated")
    assert ids.offsets.live("b", 1, 203) == (8, "counted")
    assert ids.offsets.captured("a", 0, 8) == 101


def test_nothing_is_learned_from_errors() -> None:
    ids = IdMap(topology({}))
    sent = _produce({"a": (0, 3)})
    _learn(ids, "Produce", 8, sent, _produced({"a": (0, 1)}), _produced({"a": (0, -1)}, 3))
    assert ids.offsets.live("a", 0, 1) == (1, "kept")


def test_topics_by_id_equal_topics_by_name() -> None:
    ids = IdMap(topology({"a": ord("a")}))
    ids.captured_topics.learn({uuid(ord("a")): "a"})
    sent, answer = _produce({"a": (0, 3)}), _produced({"a": (0, 4)})
    _learn(ids, "Produce", 8, sent, _produced({"a": (0, 50)}), answer, 13)
    assert ids.offsets.live("a", 0, 51) == (5, "translated")


def _fetched(records: bytes) -> dict[str, Any]:
    partition = {
        "partition_index": 0,
        "error_code": 0,
        "high_watermark": 999,
        "aborted_transactions": None,
        "records": records,
    }
    return {"session_id": 0, "responses": [{"topic": "a", "partitions": [partition]}]}


FETCH = {"max_wait_ms": 1, "min_bytes": 1, "topics": [], "forgotten_topics_data": []}


def test_records_are_mapped_by_fetch_responses() -> None:
    ids = IdMap(topology({}))
    captured = _fetched(_batch([b"a", b"b", b"c"], 100))
    _learn(ids, "Fetch", 11, FETCH, captured, _fetched(_batch([b"b", b"c"], 7)))
    assert ids.offsets.live("a", 0, 102) == (8, "translated")
    assert ids.offsets.live("a", 0, 999) == (905, "counted")


def test_positions_are_learned_where_no_records_are_known() -> None:
    def listed(offset: int) -> dict[str, Any]:
        partition = {"partition_index": 0, "error_code": 0, "timestamp": -1, "offset": offset}
        partition["leader_epoch"] = 3 if offset == 100 else 0
        return {"topics": [{"name": "a", "partitions": [partition]}]}

    ids = IdMap(topology({}))
    sent = {"replica_id": -1, "isolation_level": 0, "topics": []}
    _learn(ids, "ListOffsets", 5, sent, listed(100), listed(20))
    assert ids.offsets.live("a", 0, 100) == (20, "translated")
    assert ids.leader_epochs == {("a", 0, 3): 0}
    ids.offsets.learn("a", 0, 90, 90, 20)
    _learn(ids, "ListOffsets", 5, sent, listed(100), listed(20))
    assert ids.offsets.live("a", 0, 100) == (100, "translated")


def test_positions_overlapping_a_write_do_not_replace_known_records() -> None:
    """Else an offset committed at the end of the log would become the former end."""

    def listed(offset: int) -> dict[str, Any]:
        return {"topics": [{"name": "a", "partitions": [{"partition_index": 0, "offset": offset}]}]}

    ids = IdMap(topology({}))
    changed = step("ListOffsets", 5)
    changed.overlaps = {("partition", "a", 0): True}
    answers = (
        response("ListOffsets", 5, listed(21)),
        whole("ListOffsets", 5, listed(16), "response"),
    )
    ids.offsets.learn("a", 0, 13, 13, 6)
    learn(changed, whole("ListOffsets", 5, {}), *answers, 5, ids)
    assert ids.offsets.live("a", 0, 21) == (21, "counted")


@pytest.mark.parametrize("name", ["OffsetCommit", "TxnOffsetCommit"])
def test_committed_offsets_in_responses_are_not_learned(name: str) -> None:
    def position(topic: str, offset: int) -> dict[str, Any]:
        partition = {"partition_index": 0, "committed_offset": offset}
        return {"topics": [{"name": topic, "partitions": [partition]}]}

    ids = IdMap(topology({}), NameMap(prefix="p-"))
    made = outcome(name, 2, {}, {}, request={"group_id": "g", **position("a", 7)})
    sent = whole(name, 2, {"group_id": "p-g", **position("p-a", 107)})
    answers = made.step.captured.response_message(), made.response or Container()
    learn(made.step, sent, *answers, 2, ids)
    for live, verdict in ((108, Verdict.DIFFERS), (107, Verdict.SAME)):
        request_body = whole("OffsetFetch", 5, {"group_id": "p-g"})
        answers = (
            response("OffsetFetch", 5, position("a", 7)),
            whole("OffsetFetch", 5, position("p-a", live), "response"),
        )
        learn(step("OffsetFetch", 5), request_body, *answers, 5, ids)
        bodies = position("a", 7), position("p-a", live)
        assert compared("OffsetFetch", 5, *bodies, ids, request={"group_id": "g"})[0] is verdict


def _joined(member: str, generation: int, error: int = 0) -> dict[str, Any]:
    return {
        "error_code": error,
        "generation_id": generation,
        "protocol_name": "range",
        "leader": "leader",
        "member_id": member,
        "members": [],
    }


def test_ids_and_generations_of_members_are_learned() -> None:
    ids = IdMap(topology({}), NameMap(prefix="p-"))
    join = {
        "group_id": "p-g",
        "session_timeout_ms": 1,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [],
    }
    _learn(ids, "JoinGroup", 4, join, _joined("m-1", -1, 79), _joined("m-2", -1, 79))
    assert ids.members.live("g", "m-1") == "m-2"
    join["member_id"] = "m-2"
    _learn(ids, "JoinGroup", 4, join, _joined("m-1", 8), _joined("m-2", 1))
    beat = request("Heartbeat", 3, {"group_id": "g", "generation_id": 8, "member_id": "m-1"})
    sent = rewrite(beat, 3, ids).body
    assert (sent.group_id, sent.member_id, sent.generation_id) == ("p-g", "m-2", 1)


def test_member_epochs_are_learned() -> None:
    def answer(epoch: int) -> dict[str, Any]:
        return {
            "error_code": 0,
            "member_id": "m",
            "member_epoch": epoch,
            "heartbeat_interval_ms": 1,
            "assignment": None,
        }

    ids = IdMap(topology({}))
    beat: dict[str, Any] = {"group_id": "g", "member_id": "m", "member_epoch": 0}
    beat |= {"subscribed_topic_names": None, "subscribed_topic_regex": None}
    beat |= {"server_assignor": None, "topic_partitions": None}
    _learn(ids, "ConsumerGroupHeartbeat", 1, beat, answer(7), answer(2))
    for epoch, expected in ((7, 2), (0, 0), (-1, -1), (-2, -2)):
        message = request("ConsumerGroupHeartbeat", 1, {**beat, "member_epoch": epoch})
        assert rewrite(message, 1, ids).body.member_epoch == expected
    commit = {"group_id": "g", "generation_id_or_member_epoch": 7, "member_id": "m", "topics": []}
    sent = rewrite(request("OffsetCommit", 9, commit), 9, ids).body
    assert sent.generation_id_or_member_epoch == 2


def _init(producer_id: int, epoch: int) -> dict[str, Any]:
    return {"error_code": 0, "producer_id": producer_id, "producer_epoch": epoch}


INIT = {"transactional_id": None, "transaction_timeout_ms": 1}
END = {"transactional_id": "x", "producer_id": 70, "producer_epoch": 4, "committed": True}


def test_producers_are_learned_from_init_and_from_the_end_of_transactions() -> None:
    ids = IdMap(topology({}))
    _learn(ids, "InitProducerId", 4, INIT, _init(9, 2), _init(70, 4))
    assert ids.producers.live(9, 2) == (70, 4)
    _learn(ids, "EndTxn", 5, END, _init(9, 3), _init(70, 5))
    assert ids.producers.live(9, 3) == (70, 5)


def test_a_target_without_epoch_bumps_keeps_its_epoch() -> None:
    ids = IdMap(topology({}))
    _learn(ids, "InitProducerId", 4, INIT, _init(9, 2), _init(70, 4))
    _learn(ids, "EndTxn", 5, END, _init(9, 3), {"error_code": 0}, 3)
    assert ids.producers.live(9, 3) == (70, 4)


def test_topic_ids_are_learned_on_both_sides() -> None:
    def described(name: str, number: int) -> dict[str, Any]:
        topic = {"error_code": 0, "name": name, "topic_id": uuid(number), "partitions": []}
        return {"brokers": [], "controller_id": 0, "topics": [topic]}

    ids = IdMap(topology({}), NameMap(prefix="p-"))
    sent = {"topics": None, "allow_auto_topic_creation": False}
    _learn(ids, "Metadata", 12, sent, described("t", 7), described("p-t", 70))
    scope = Scope()
    assert ids.live(Role.TOPIC_ID, uuid(7), scope) == (uuid(70), "")
    assert ids.captured(Role.TOPIC_ID, uuid(70), scope) == uuid(7)


def test_sessions_and_tokens_are_learned() -> None:
    ids = IdMap(topology({}))
    captured = {"session_id": 5, "responses": []}
    _learn(ids, "Fetch", 11, FETCH, captured, {"session_id": 6, "responses": []})
    assert rewrite(request("Fetch", 11, {**FETCH, "session_id": 5}), 11, ids).body.session_id == 6
    assert ids.captured(Role.SESSION_ID, 6, Scope()) == 5


def test_directories_of_the_target_are_learned() -> None:
    def log_dirs(*paths: str) -> dict[str, Any]:
        return {"results": [{"log_dir": path, "topics": []} for path in paths]}

    ids = IdMap(topology({}))
    _learn(ids, "DescribeLogDirs", 1, {"topics": None}, log_dirs("/a", "/b"), log_dirs("/x", "/y"))
    moved = {"dirs": [{"path": "/b", "topics": []}, {"path": "/elsewhere", "topics": []}]}
    sent = rewrite(request("AlterReplicaLogDirs", 1, moved), 1, ids).body
    assert [each.path for each in sent.dirs] == ["/y", "/elsewhere"]


def test_without_a_captured_response_only_names_are_learned() -> None:
    ids = IdMap(topology({}))
    live = whole("Produce", 8, _produced({"a": (0, 1)}), "response")
    learn(step("Produce", 8), whole("Produce", 8, _produce({"a": (0, 1)})), None, live, 8, ids)
    assert ids.offsets.live("a", 0, 1) == (1, "kept")


@given(
    ours=st.integers(1, 2**62),
    theirs=st.integers(1, 2**62),
    epochs=st.tuples(st.integers(0, 2**15 - 1), st.integers(0, 2**15 - 1)),
)
def test_learned_ids_map_both_ways(ours: int, theirs: int, epochs: tuple[int, int]) -> None:
    ids = IdMap(topology({}), NameMap(prefix="p-"))
    _learn(ids, "InitProducerId", 4, INIT, _init(ours, epochs[0]), _init(theirs, epochs[1]))
    sent = _produce({"p-a": (0, 3)})
    _learn(ids, "Produce", 8, sent, _produced({"a": (0, ours)}), _produced({"p-a": (0, theirs)}))
    scope = Scope(topic="a", partition=0, producer_id=ours, producer_epoch=epochs[0])
    for role, captured, live in (
        (Role.PRODUCER_ID, ours, theirs),
        (Role.PRODUCER_EPOCH, *epochs),
        (Role.OFFSET, ours + 2, theirs + 2),
        (Role.TOPIC, "a", "p-a"),
    ):
        assert ids.live(role, captured, scope)[0] == live
        assert ids.captured(role, live, scope) == captured
    there = Scope(topic="p-a", partition=0, producer_id=theirs, producer_epoch=epochs[1])
    back = ids.captured_scope(there)
    assert all(getattr(back, name) == getattr(scope, name) for name in SCOPE_FIELDS)


def test_ends_of_transactions_are_counted() -> None:
    ids = IdMap(topology({}))
    sent = {"transactional_id": "t", "producer_id": 9, "producer_epoch": 0}
    _learn(ids, "EndTxn", 3, sent, {}, {"error_code": 51})
    _learn(ids, "EndTxn", 3, sent, {}, {})
    assert ids.ended_transactions == 1
