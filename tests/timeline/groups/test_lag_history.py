"""The lag of groups by hour: committed offsets against the high watermarks of the same time."""

from __future__ import annotations

from tests.conform.fetch_scenes import fetch_request, fetch_response
from tests.conform.scene import Scene, SceneConnection
from tests.timeline.events_of import corpus_events, events_of, only

COMMIT = 8


def fetch(connection: SceneConnection, high_watermark: int, partition: int = 0) -> None:
    """Fetch without records, which shows a high watermark."""
    fetch_request(connection, 1, {partition: 0})
    fetch_response(connection, 1, {partition: {"high_watermark": high_watermark}})


def commit(connection: SceneConnection, offset: int, partition: int = 0, group: str = "g") -> None:
    """Commit an offset of a simple consumer."""
    place = {"partition_index": partition}
    asked = [{**place, "committed_offset": offset}]
    connection.request(
        COMMIT,
        7,
        2,
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[{"name": "orders", "partitions": asked}],
    )
    connection.response(COMMIT, 7, 2, topics=[{"name": "orders", "partitions": [place]}])


def test_lag_is_of_committed_offsets_at_their_time() -> None:
    scene = Scene()
    connection = scene.connect()
    fetch(connection, 100)
    commit(connection, 100)
    commit(connection, 40, group="other")
    fetch(connection, 50, partition=1)
    commit(connection, 50, partition=1)
    fetch(connection, 400)
    scene.wait_ms(20_000)
    fetch(connection, 60, partition=1)
    commit(connection, 150)
    own, other = only(events_of(scene, "group"), "lag")
    assert (own.subject, other.subject) == ("g", "other")
    assert own.text.startswith(
        "lag at most 310 in all partitions, 260 at the end: orders 0: 250, orders 1: 10; "
        "above 0 for 20.0"
    )
    assert other.text.startswith("lag at most 360 in all partitions, 360 at the end: orders 0: 360")
    assert {each.api for each in own.evidence} == {"Fetch", "OffsetCommit"}
    assert not own.certain


def test_the_lag_of_a_group_passes_a_filter_of_the_group() -> None:
    scene = Scene()
    connection = scene.connect()
    commit(connection, 4)
    fetch(connection, 10)
    commit(connection, 5)
    fetch(connection, 100)
    (event,) = only(events_of(scene, "group"), "lag")
    assert "OffsetCommit" in {each.api for each in event.evidence}


def test_a_group_that_catches_up_has_no_lag() -> None:
    scene = Scene()
    connection = scene.connect()
    fetch(connection, 10)
    commit(connection, 4)
    commit(connection, 10)
    (event,) = only(events_of(scene, "group"), "lag")
    assert event.text == "lag at most 6 in all partitions, 0 at the end"


def test_the_lag_of_a_group_without_a_name() -> None:
    """Brokers take the empty group of simple consumers in OffsetCommit."""
    scene = Scene()
    connection = scene.connect()
    commit(connection, 4, group="")
    fetch(connection, 10)
    commit(connection, 5, group="")
    (event,) = only(events_of(scene, "group"), "lag")
    assert event.subject == ""
    assert event.text.startswith("lag at most 6 in all partitions, 5 at the end: orders 0: 5")


def test_each_hour_has_its_lag() -> None:
    scene = Scene()
    connection = scene.connect()
    fetch(connection, 10)
    commit(connection, 4)
    scene.wait_ms(3_600_000)
    commit(connection, 7)
    first, second = only(events_of(scene, "group"), "lag")
    assert (first.certain, second.certain) == (True, False)
    assert (
        first.text
        == "lag at most 6 in all partitions, 6 at the end: orders 0: 6; above 0 for 60 min 0 s"
    )
    assert second.text.startswith("lag at most 3 in all partitions, 3 at the end: orders 0: 3")


def test_the_lag_is_that_of_the_groups_command() -> None:
    (event,) = only(corpus_events("demo.pcap", "group"), "lag")
    lags = "demo.orders 0: 50, demo.orders 1: 4, demo.orders 2: 2"
    assert event.text.startswith(f"lag at most 56 in all partitions, 56 at the end: {lags}; above")
