"""Losses make events of the same broker uncertain."""

from __future__ import annotations

from tests.conform.scene import Scene
from tests.timeline.events_of import events_of, only

API_VERSIONS, CREATE_TOPICS = 18, 19


def two_brokers() -> Scene:
    """Return a scene with a topic created at each of two brokers."""
    scene = Scene()
    for broker in ("10.0.0.2", "10.0.0.3"):
        connection = scene.connect(broker=broker)
        for number in range(4):
            connection.request(CREATE_TOPICS, 5, number)
            connection.response(CREATE_TOPICS, 5, number, topics=[{"name": f"{broker}-{number}"}])
        connection.fin()
    return scene


def certainty(scene: Scene) -> dict[str, bool]:
    events = only(events_of(scene, "cluster"), "topic created")
    return {each.subject: each.certain for each in events}


def test_a_whole_capture() -> None:
    assert certainty(two_brokers()) == {"10.0.0.2:9092": True, "10.0.0.3:9092": True}


def test_a_loss_at_one_broker() -> None:
    scene = two_brokers()
    scene.lose(2)
    assert certainty(scene) == {"10.0.0.2:9092": False, "10.0.0.3:9092": True}


def test_a_connection_without_its_beginning() -> None:
    scene = Scene()
    connection = scene.connect(syn=False)
    connection.request(CREATE_TOPICS, 5, 1).response(CREATE_TOPICS, 5, 1, topics=[{"name": "a"}])
    connection.request(CREATE_TOPICS, 5, 2).response(CREATE_TOPICS, 5, 2, topics=[{"name": "b"}])
    events = only(events_of(scene, "cluster"), "topic created")
    assert [each.certain for each in events] == [False, True]


def test_refused_connections_are_no_loss() -> None:
    scene = two_brokers()
    scene.connect().rst(1)
    assert certainty(scene) == {"10.0.0.2:9092": True, "10.0.0.3:9092": True}
