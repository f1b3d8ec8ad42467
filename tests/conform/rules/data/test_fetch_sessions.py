"""Rules X, part 2: scenes that break and keep each rule."""

from __future__ import annotations

from typing import Any

from tests.conform.fetch_scenes import SESSION, fetch_request, fetch_response
from tests.conform.produce_scenes import batch
from tests.conform.scene import Scene, SceneConnection, breaks, broken, keeps

LIST_OFFSETS, HEARTBEAT, JOIN_GROUP = 2, 12, 11
LAST_EPOCH = 2**31 - 1


def begun(offsets: dict[int, int] | None = None) -> tuple[Scene, SceneConnection]:
    """Return a scene with the first exchange of a session."""
    scene = Scene()
    connection = scene.connect()
    offsets = offsets or {0: 10, 1: 10}
    fetch_request(connection, 1, offsets, session=(0, 0))
    fetch_response(connection, 1, {number: {} for number in offsets}, session_id=SESSION)
    return scene, connection


def fetches_again(
    connection: SceneConnection, number: int, epoch: int, partitions: Any = None, **answer: Any
) -> None:
    """Fetch in the session without changes, with a response."""
    fetch_request(connection, number, {}, session=(SESSION, epoch))
    fetch_response(connection, number, partitions or {}, **{"session_id": SESSION} | answer)


@keeps("X05")
@keeps("X06")
@keeps("X01")
@keeps("X07")
def usual_session() -> Scene:
    scene, connection = begun()
    fetches_again(connection, 2, 1, {0: {"records": batch(base_offset=10).to_bytes()}})
    fetch_request(connection, 3, {0: 12}, session=(SESSION, 2))
    fetch_response(connection, 3, {1: {"high_watermark": 101}}, session_id=SESSION)
    fetches_again(
        connection, 4, 3, {1: {"error_code": 6, "high_watermark": -1, "last_stable_offset": -1}}
    )
    fetches_again(connection, 5, 4, {1: {"high_watermark": 101}})
    fetch_request(connection, 6, {}, session=(SESSION, -1))
    fetch_response(connection, 6, {}, session_id=0)
    return scene


@keeps("X05")
def forgotten_by_the_broker() -> Scene:
    scene, connection = begun()
    fetches_again(connection, 2, 1)
    fetch_request(connection, 3, {}, session=(SESSION, 2))
    fetch_response(connection, 3, {}, error_code=70)
    return scene


@breaks("X05")
def epoch_is_skipped() -> Scene:
    scene, connection = begun()
    fetches_again(connection, 2, 1)
    fetches_again(connection, 3, 3, error_code=71, session_id=0)
    return scene


@breaks("X05")
def wrong_epoch_is_accepted() -> Scene:
    scene, connection = begun()
    fetches_again(connection, 2, 5)
    return scene


@breaks("X05")
def right_epoch_is_refused() -> Scene:
    scene, connection = begun()
    fetches_again(connection, 2, 1, error_code=71, session_id=0)
    return scene


@breaks("X05")
def answered_in_another_session() -> Scene:
    scene, connection = begun()
    fetches_again(connection, 2, 1, session_id=SESSION + 1)
    return scene


@breaks("X06")
def returned_again() -> Scene:
    scene, connection = begun()
    fetches_again(connection, 2, 1, {1: {}})
    return scene


@breaks("X06")
def returned_again_before_preferred_replicas() -> Scene:
    connection = Scene().connect()
    for number, (offsets, session) in enumerate([({0: 10}, (0, 0)), ({}, (SESSION, 1))], 1):
        fetch_request(connection, number, offsets, session=session, version=10)
        fetch_response(connection, number, {0: {}}, session_id=SESSION, version=10)
    return connection.scene


@breaks("X07")
def forgotten_by_the_client() -> Scene:
    scene, connection = begun()
    forgotten = [{"topic": "orders", "partitions": [1]}]
    fetch_request(connection, 2, {}, session=(SESSION, 1), forgotten_topics_data=forgotten)
    fetch_response(connection, 2, {}, session_id=SESSION)
    fetches_again(connection, 3, 2, {1: {"high_watermark": 101}})
    return scene


@keeps("X08")
def pipelined_behind_another_request() -> Scene:
    scene = Scene()
    connection = scene.connect().request(HEARTBEAT, 4, 1, group_id="g", member_id="m")
    fetch_request(connection, 2, {0: 10})
    scene.wait_ms(9000)
    connection.response(HEARTBEAT, 4, 1)
    fetch_response(connection, 2, {0: {}})
    return scene


@breaks("X08")
def waits_too_long() -> Scene:
    scene = Scene()
    connection = scene.connect()
    fetch_request(connection, 1, {0: 10})
    scene.wait_ms(9000)
    fetch_response(connection, 1, {0: {}})
    fetch_request(connection, 2, {0: 10})
    return scene


def listed(version: int, time: int) -> Scene:
    scene = Scene()
    partitions = [{"partition_index": 0, "timestamp": time}]
    topics = [{"name": "orders", "partitions": partitions}]
    scene.connect().request(LIST_OFFSETS, version, 1, replica_id=-1, topics=topics)
    return scene


@keeps("X10")
def greatest_timestamp() -> Scene:
    return listed(7, -3)


@keeps("X10")
def any_timestamp() -> Scene:
    return listed(4, 1_700_000_000_000)


@breaks("X10")
def timestamp_before_the_requested() -> Scene:
    return listed(6, -3)


@breaks("X10")
def no_record_with_the_timestamp() -> Scene:
    return listed(11, -9)


@keeps("X11")
def replica() -> Scene:
    scene = Scene()
    connection = scene.connect()
    fetch_request(connection, 1, {0: 10}, replica_id=1)
    fetch_response(connection, 1, {0: {}})
    return scene


@keeps("X11")
def consumer() -> Scene:
    scene = Scene()
    connection = scene.connect()
    fetch_request(connection, 1, {0: 10}, version=15)
    fetch_response(connection, 1, {0: {}}, version=15)
    return scene


@breaks("X11")
def replica_and_consumer() -> Scene:
    scene = Scene()
    connection = scene.connect()
    fetch_request(
        connection, 1, {0: 10}, version=15, replica_state={"replica_id": 1, "replica_epoch": 5}
    )
    fetch_response(connection, 1, {0: {}}, version=15)
    fetch_request(connection, 2, {0: 10}, version=14)
    fetch_response(connection, 2, {0: {}}, version=14)
    return scene


def test_a_session_without_its_beginning_has_no_findings() -> None:
    scene, connection = begun()
    fetches_again(connection, 2, 5, {7: {}})
    scene.lose(0)
    verdict = scene.judge()
    assert broken(verdict) == []
    assert not verdict.tallies["X05"].judged
    assert verdict.tallies["X05"].unjudged


def test_a_session_that_begins_in_the_capture_is_judged_on_an_older_connection() -> None:
    scene = Scene()
    connection = scene.connect(syn=False)
    fetch_request(connection, 1, {0: 10}, session=(0, 0))
    fetch_response(connection, 1, {0: {}}, session_id=SESSION)
    fetches_again(connection, 2, 1)
    kept = scene.judge()
    fetches_again(connection, 3, 7)
    assert kept.tallies["X05"].judged == 1
    assert broken(kept) == []
    assert broken(scene.judge()) == ["X05"]


def test_an_older_connection_with_lost_packets_has_no_findings() -> None:
    scene = Scene()
    connection = scene.connect(syn=False)
    fetch_request(connection, 1, {0: 10}, session=(0, 0))
    fetch_response(connection, 1, {0: {}}, session_id=SESSION)
    fetches_again(connection, 2, 1)
    fetches_again(connection, 3, 2)
    scene.lose(2, 3)
    verdict = scene.judge()
    assert broken(verdict) == []
    assert not verdict.tallies["X05"].judged
