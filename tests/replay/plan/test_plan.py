"""A capture becomes steps."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from dissector.engine.exchanges.exchange import Exchange
from dissector.errors import CaptureError, FilterError, UsageError
from dissector.protocol.apis import KEYS
from dissector.public import open_capture
from replay.plan import read_exchange
from replay.plan.builder import TO_CONTROLLER
from replay.plan.plan import Plan
from replay.plan.read_exchange import ReadExchange
from replay.plan.request_shapes import ShapeIndex
from tests.default_frames import request, response, sized
from tests.replay.support.produce_messages import Written, produce_request, produce_response
from tests.replay.support.replay_captures import SHIPPED, exchange, saved
from tests.tcp_captures import Wire

HEARTBEAT, FETCH, METADATA, VERSIONS = (
    KEYS[name] for name in ("Heartbeat", "Fetch", "Metadata", "ApiVersions")
)
ALL = sorted(SHIPPED.glob("*.pcap*"))


def beat(number: int) -> tuple[bytes, bytes]:
    return request(HEARTBEAT, 4, number, group_id="g"), response(HEARTBEAT, 4, number)


def test_steps_come_in_the_order_of_their_requests(tmp_path: Path) -> None:
    wire = Wire()
    one, two = wire.connect(50000).syn(), wire.connect(50001).syn()
    one.client(beat(1)[0])
    two.client(beat(2)[0])
    two.broker(beat(2)[1])
    one.broker(beat(1)[1])
    exchange(one, *beat(3))
    with Plan.of(saved(tmp_path, wire)) as plan:
        steps = list(plan)
        assert [step.captured.correlation_id for step in steps] == [1, 2, 3]
        assert [step.number for step in steps] == [0, 1, 2]
        assert [step.captured.connection for step in steps] == [0, 1, 0]
        assert [step.after for step in steps] == [(), (), (0,)]
        first = steps[0].captured
        assert first.request == beat(1)[0][4:]
        assert first.response == beat(1)[1][4:]
        assert {tuple(numbers) for _, numbers, _ in plan.by_connection()} == {(0, 2), (1,)}


@pytest.mark.parametrize("name", ["librdkafka-idempotent", "kafka4-librdkafka-transactions"])
def test_steps_have_the_packets_of_their_requests(name: str) -> None:
    path = SHIPPED / f"{name}.pcap"
    packets = {(each.connection, each.request_packet) for each in open_capture(path)}
    with Plan.of(path) as plan:
        steps = list(plan)
    found = [(step.captured.connection, step.captured.request_packet) for step in steps]
    assert set(found) <= packets
    assert len(set(found)) == len(found) > 10
    by_connection = [
        [packet for of, packet in found if of == each] for each in {n for n, _ in found}
    ]
    assert all(each == sorted(each) for each in by_connection)


@pytest.mark.parametrize("name", ["kafka4-sweep-quorum", "kafka39-sweep-controllers"])
def test_requests_to_controllers_are_omitted(name: str) -> None:
    with Plan.of(SHIPPED / f"{name}.pcap") as plan:
        steps = list(plan)
    brokers = {step.captured.broker for step in steps if step.left_out == TO_CONTROLLER}
    assert brokers == {step.captured.broker for step in steps if step.captured.api == "Vote"}
    assert all(step.left_out for step in steps if step.captured.broker in brokers)
    assert not all(step.left_out for step in steps)


def test_connections_end_before_later_steps(tmp_path: Path) -> None:
    wire = Wire()
    one, two = wire.connect(50000).syn(), wire.connect(50001).syn()
    exchange(one, *beat(1))
    exchange(two, *beat(2))
    one.fin()
    exchange(two, *beat(3))
    with Plan.of(saved(tmp_path, wire)) as plan:
        found = [(tuple(numbers), end) for _, numbers, end in plan.by_connection()]
        assert found == [((0,), 2), ((1, 2), 3)]


def test_the_filter_selects_steps(tmp_path: Path) -> None:
    wire = Wire()
    connection = wire.connect().syn()
    for number in range(3):
        exchange(connection, *beat(number))
    path = saved(tmp_path, wire)
    with Plan.of(path, filter="correlation_id != 1") as plan:
        assert [step.captured.correlation_id for step in plan] == [0, 2]
        assert plan.filtered == 1
        assert plan.step(1).after == (0,)
    with pytest.raises(FilterError):
        Plan.of(path, filter="correlation_id ==")


def test_omitted_requests_are_counted(tmp_path: Path) -> None:
    wire = Wire()
    connection = wire.connect().syn()
    exchange(connection, request(KEYS["DeleteTopics"], 1, 1), response(KEYS["DeleteTopics"], 1, 1))
    exchange(connection, *beat(2))
    path = saved(tmp_path, wire)
    with Plan.of(path) as plan:
        assert list(plan.left_out.values()) == [1]
        assert [bool(step.left_out) for step in plan] == [True, False]
        assert plan.step(1).after == ()
        assert [plan.is_sent(number) for number in range(2)] == [False, True]
        assert [plan.end_of(limit) for limit in (None, 0, 1, 2)] == [2, 1, 2, 2]
    with Plan.of(path, allow=["DeleteTopics"]) as plan:
        assert not plan.left_out
        assert plan.step(1).after == (0,)
    with pytest.raises(UsageError):
        Plan.of(path, allow=["Everything"])


def test_produce_requests_refused_for_a_new_topic_are_omitted(
    tmp_path: Path,
) -> None:
    wire = Wire()
    once, twice = wire.connect(50000).syn(), wire.connect(50001).syn()
    key = KEYS["Produce"]
    for number, (connection, topic, error) in enumerate(
        ((twice, "new", 3), (once, "gone", 3), (once, "new", 3), (twice, "new", 0))
    ):
        asks = [{"name": topic, "partition_data": [{"index": 0, "records": b""}]}]
        says = {"index": 0, "error_code": error, "base_offset": 0, "log_append_time_ms": -1}
        answer = response(
            key, 2, number, responses=[{"name": topic, "partition_responses": [says]}]
        )
        exchange(connection, request(key, 2, number, acks=1, topic_data=asks), answer)
    with Plan.of(saved(tmp_path, wire)) as plan:
        assert [bool(step.left_out) for step in plan] == [True, False, False, False]


def test_missing_prerequisites_of_steps(tmp_path: Path) -> None:
    wire = Wire()
    connection = wire.connect().syn()
    create, describe = KEYS["CreateAcls"], KEYS["DescribeAcls"]
    exchange(connection, request(create, 2, 1), response(create, 2, 1))
    exchange(connection, request(describe, 2, 2), response(describe, 2, 2))
    exchange(connection, *beat(3))
    path = saved(tmp_path, wire)
    with Plan.of(path) as plan:
        assert [step.missing_prerequisites for step in plan] == [set(), {"CreateAcls"}, set()]
    with Plan.of(path, allow=["CreateAcls"]) as plan:
        assert not any(step.missing_prerequisites for step in plan)


def test_connections_between_brokers_are_omitted(tmp_path: Path) -> None:
    wire = Wire()
    connection, other = wire.connect(50000).syn(), wire.connect(50001).syn()
    for each in (connection, other):
        exchange(each, request(VERSIONS, 0, 1), response(VERSIONS, 0, 1))
    exchange(connection, request(FETCH, 11, 2, replica_id=3), response(FETCH, 11, 2))
    exchange(other, *beat(2))
    with Plan.of(saved(tmp_path, wire)) as plan:
        assert [step.captured.connection for step in plan if not step.left_out] == [1, 1]


def test_fetch_sessions_begun_before_the_capture_are_omitted(tmp_path: Path) -> None:
    wire = Wire()
    connection = wire.connect().syn()
    began = request(FETCH, 11, 1, session_id=0, session_epoch=0)
    exchange(connection, began, response(FETCH, 11, 1, session_id=7))
    for number, session in ((2, 7), (3, 8)):
        fetch = request(FETCH, 11, number, session_id=session, session_epoch=1)
        exchange(connection, fetch, response(FETCH, 11, number, session_id=session))
    with Plan.of(saved(tmp_path, wire)) as plan:
        assert ["before" in step.left_out for step in plan] == [False, False, True]


def test_share_sessions_belong_to_members_not_connections(tmp_path: Path) -> None:
    wire = Wire()
    said = [("ShareFetch", "m", 0), ("ShareAcknowledge", "m", 1), ("ShareAcknowledge", "other", 1)]
    for port, (name, member, epoch) in enumerate(said, 50000):
        body = {"group_id": "g", "member_id": member, "share_session_epoch": epoch, "topics": []}
        frame = request(KEYS[name], 1, 1, **body)
        exchange(wire.connect(port).syn(), frame, response(KEYS[name], 1, 1))
    with Plan.of(saved(tmp_path, wire)) as plan:
        assert ["before" in step.left_out for step in plan] == [False, False, True]


def test_topics_auto_created_by_metadata_requests(tmp_path: Path) -> None:
    wire = Wire()
    connection = wire.connect().syn()
    for number, (name, error) in enumerate([("made", 3), ("made", 0), ("not", 3), ("old", 0)]):
        topic = {"error_code": error, "name": name, "is_internal": False, "partitions": []}
        answer = response(METADATA, 1, number, topics=[topic], brokers=[])
        exchange(connection, request(METADATA, 1, number, topics=[{"name": name}]), answer)
    with Plan.of(saved(tmp_path, wire)) as plan:
        assert plan.created == {"made"}


def test_topics_brokers_and_orphans(tmp_path: Path) -> None:
    wire = Wire()
    connection = wire.connect().syn()
    partition = {"error_code": 0, "leader_id": 1, "replica_nodes": [], "isr_nodes": []}
    topic = {
        "error_code": 0,
        "name": "orders",
        "is_internal": False,
        "partitions": [partition | {"partition_index": each} for each in range(3)],
    }
    internal = topic | {"name": "__consumer_offsets"}
    brokers = [{"node_id": 4, "host": "10.0.0.2", "port": 9092, "rack": None}]
    answer = response(METADATA, 1, 1, topics=[topic, internal], brokers=brokers)
    exchange(connection, request(METADATA, 1, 1, topics=None), answer)
    exchange(connection, *beat(2))
    connection.broker(response(HEARTBEAT, 4, 99))
    with Plan.of(saved(tmp_path, wire)) as plan:
        assert plan.topics == {"orders": 3}
        assert plan.brokers == {"10.0.0.2:9092": 4}
        assert plan.orphans == 1
        (known,) = plan.connections.values()
        assert (known.requests, known.orphans) == (2, 1)
        assert known.score < 1


def test_assignments_of_leaders_are_found(tmp_path: Path) -> None:
    wire = Wire()
    key = KEYS["SyncGroup"]
    assignments = [{"member_id": "m", "assignment": b"a"}]
    sync = request(key, 3, 1, group_id="g", generation_id=5, assignments=assignments)
    exchange(wire.connect().syn(), sync, response(key, 3, 1))
    with Plan.of(saved(tmp_path, wire)) as plan:
        assert plan.assignments == {("g", 5): 0}


def test_standard_input_is_read_once() -> None:
    name = "librdkafka-idempotent.pcap"
    data = (SHIPPED / name).read_bytes()
    with Plan.of("-", stdin=io.BytesIO(data)) as piped, Plan.of(SHIPPED / name) as plan:
        assert list(piped) == list(plan)


def test_a_file_other_than_a_capture_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(b"no capture")
    with pytest.raises(CaptureError):
        Plan.of(tmp_path / "a.pcap")


@pytest.mark.thinned(3)
@pytest.mark.parametrize("path", ALL[:: max(len(ALL) // 12, 1)], ids=lambda path: path.name)
def test_shipped_captures_can_be_planned(path: Path) -> None:
    with Plan.of(path) as plan:
        for step in plan:
            assert all(each < step.number for each in step.after)
            if not step.left_out:
                assert step.captured.request_message().body is not None
                assert all(plan.is_sent(each) for each in step.after)


def producers(folder: Path) -> str:
    """Three producers of the same partitions, one with a producer id, and a consumer."""
    wire = Wire()
    connections = [wire.connect(50000 + number).syn() for number in range(4)]
    offset = 0
    for turn in range(6):
        for number, connection in enumerate(connections[:3]):
            producer = (7, 0, turn) if number == 1 else (-1, -1, -1)
            places = [("orders", turn % 2)] if number else [("orders", 0), ("orders", 1)]
            written = [Written(*place, (b"v",) * (turn + 1), producer) for place in places]
            connection.client(sized(produce_request(9, written, turn)))
        for number, connection in enumerate(connections[:3]):
            places = [("orders", turn % 2)] if number else [("orders", 0), ("orders", 1)]
            error = 6 if (turn, number) == (4, 2) else 0
            base = -1 if error else offset
            answered = [(*place, base) for place in places]
            connection.broker(sized(produce_response(9, answered, turn, error_code=error)))
            offset += turn + 1
        fetch = {"topic": "orders", "partitions": [_position(offset)]}
        exchange(connections[3], request(FETCH, 4, turn, topics=[fetch]), response(FETCH, 4, turn))
    return saved(folder, wire)


def _position(offset: int) -> dict[str, int]:
    return {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 9}


def test_plans_by_shape_equal_plans_by_decoded_bodies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = producers(tmp_path)
    with Plan.of(path) as plan:
        assert len({number for number in plan.shape_of if number >= 0}) == 3
        with monkeypatch.context() as patch:
            patch.setattr(ShapeIndex, "find", lambda *_: None)
            other = Plan.of(path)
        with other:
            assert list(plan) == list(other)
            assert plan.shape_of == other.shape_of
            assert plan.left_out == other.left_out
            assert plan.left_out
            assert (plan.topics, plan.connections) == (other.topics, other.connections)
            assert any(len(step.after) > 1 for step in plan)


@pytest.mark.parametrize("path", ALL[:: max(len(ALL) // 6, 1)], ids=lambda path: path.name)
def test_equal_exchanges_that_are_read_once_are_planned_as_if_read_each(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    def counted(exchange: Exchange, *rest: Any) -> ReadExchange:
        read.append(exchange)
        return ReadExchange(exchange, *rest)

    monkeypatch.setattr(read_exchange, "ReadExchange", counted)
    with Plan.of(path) as plan:
        once = len(read)
        read.clear()
        monkeypatch.setattr(read_exchange, "_MOST_BYTES", 0)
        with Plan.of(path) as other:
            assert len(read) > once
            assert list(plan) == list(other)
            for name in ("left_out", "topics", "topic_ids", "connections", "brokers", "replicas"):
                assert getattr(plan, name) == getattr(other, name)
            for name in ("ended_lives", "assignments", "group_topics", "clients", "holes"):
                assert getattr(plan, name) == getattr(other, name)
