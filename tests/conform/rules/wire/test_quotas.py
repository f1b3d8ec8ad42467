"""Rules Q: scenes that break and keep each rule."""

from __future__ import annotations

from tests.conform.scene import Scene, breaks, broken, keeps

METADATA, FETCH, CONTROLLED_SHUTDOWN = 3, 1, 7


def _throttled(wait_ms: int, version: int = 9) -> Scene:
    scene = Scene()
    connection = scene.connect().request(METADATA, version, 1, topics=None)
    connection.response(METADATA, version, 1, throttle_time_ms=500)
    scene.wait_ms(wait_ms)
    connection.request(METADATA, version, 2, topics=None).response(METADATA, version, 2)
    return scene


@breaks("Q01")
def does_not_wait() -> Scene:
    return _throttled(20)


@keeps("Q01")
@keeps("Q02")
def waits() -> Scene:
    return _throttled(500)


def test_requests_in_flight_are_exempt() -> None:
    scene = Scene()
    connection = (
        scene.connect().request(METADATA, 9, 1, topics=None).request(METADATA, 9, 2, topics=None)
    )
    connection.response(METADATA, 9, 1, throttle_time_ms=500).response(METADATA, 9, 2)
    verdict = scene.judge()
    assert broken(verdict) == []
    assert not verdict.tallies["Q01"].judged


def test_old_versions_are_throttled_by_the_broker() -> None:
    assert not _throttled(20, version=5).judge().tallies["Q01"].judged


@breaks("Q02")
def sends_as_an_old_client() -> Scene:
    return (
        Scene()
        .connect()
        .request(FETCH, 3, 1, replica_id=-1, max_bytes=1)
        .response(FETCH, 3, 1)
        .scene
    )


@breaks("Q02")
def sends_a_removed_api() -> Scene:
    return (
        Scene()
        .connect()
        .request(CONTROLLED_SHUTDOWN, 1, 1)
        .response(CONTROLLED_SHUTDOWN, 1, 1)
        .scene
    )
