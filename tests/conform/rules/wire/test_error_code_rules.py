"""Rules C: scenes that break and keep each rule."""

from __future__ import annotations

from uuid import UUID

from tests.conform.scene import Scene, breaks, findings, keeps

LIST_OFFSETS, HEARTBEAT, CREATE_TOPICS, CURSORS = 2, 12, 19, 75
ORDERS_ID = UUID("5f7d1f1e-9d1c-4f43-8d6b-0c1a2b3c4d5e")


def _heartbeat(error_code: int) -> Scene:
    connection = Scene().connect().request(HEARTBEAT, 4, 1, group_id="g", member_id="m")
    return connection.response(HEARTBEAT, 4, 1, error_code=error_code).scene


@keeps("C01")
def known_code() -> Scene:
    return _heartbeat(25)


@breaks("C01")
def unknown_code() -> Scene:
    return _heartbeat(999)


def test_an_unknown_code_has_a_position() -> None:
    finding = next(each for each in findings(_heartbeat(999).judge()) if each.rule.id == "C01")
    assert finding.path == "error_code"
    assert finding.span == (9, 11)
    assert finding.found == "error code 999 is unknown"


def _offset(**values: int) -> Scene:
    topic_request = {"name": "orders", "partitions": [{"partition_index": 0, "timestamp": -1}]}
    topic_response = {"name": "orders", "partitions": [{"partition_index": 0, **values}]}
    connection = (
        Scene().connect().request(LIST_OFFSETS, 7, 1, replica_id=-1, topics=[topic_request])
    )
    return connection.response(LIST_OFFSETS, 7, 1, topics=[topic_response]).scene


@keeps("C03")
def nothing_beside_an_error() -> Scene:
    return _offset(error_code=3, offset=-1, timestamp=-1, leader_epoch=-1)


@breaks("C03")
def offset_beside_an_error() -> Scene:
    return _offset(error_code=3, offset=17, timestamp=-1, leader_epoch=-1)


def _created(topic_id: UUID, error_code: int = 0) -> Scene:
    topic = {"name": "orders", "num_partitions": 1, "replication_factor": 1}
    topic_response = {"name": "orders", "topic_id": topic_id, "error_code": error_code}
    connection = Scene().connect().request(CREATE_TOPICS, 7, 1, topics=[topic], timeout_ms=1000)
    return connection.response(CREATE_TOPICS, 7, 1, topics=[topic_response]).scene


@keeps("C02")
def created_with_an_id() -> Scene:
    return _created(ORDERS_ID)


@keeps("C02")
def not_created() -> Scene:
    return _created(UUID(int=0), error_code=36)


@breaks("C02")
def created_without_an_id() -> Scene:
    return _created(UUID(int=0))


def _cursors(partition_index: int) -> Scene:
    cursor = {"topic_name": "orders", "partition_index": 5}
    topic = {"name": "orders"}
    connection = Scene().connect()
    connection.request(CURSORS, 0, 1, topics=[topic], response_partition_limit=5, cursor=cursor)
    return connection.response(
        CURSORS, 0, 1, next_cursor=cursor | {"partition_index": partition_index}
    ).scene


@keeps("C04")
def cursor_advances() -> Scene:
    return _cursors(10)


@breaks("C04")
def cursor_stands_still() -> Scene:
    return _cursors(5)
