"""Losses make uncertain what they touch: events of the same connection, in their time range."""

from __future__ import annotations

import pytest

from tests.conform.scene import Scene
from tests.timeline.events_of import events_of, only
from tests.timeline.groups.test_classic_group_tracker import REBALANCE_IN_PROGRESS, Member

CREATE_TOPICS, PRODUCE, HEARTBEAT = 19, 0, 12


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
    return {each.text.partition(",")[0]: each.certain for each in events}


def test_a_whole_capture() -> None:
    assert all(certainty(two_brokers()).values())


def test_a_loss_touches_its_connection_and_time_only() -> None:
    scene = two_brokers()
    scene.lose(2)  # the request for the second topic
    found = certainty(scene)
    assert found.pop("10.0.0.2-0") is False  # the lost bytes may follow its request
    assert len(found) == 6  # without the second one
    assert all(found.values())


def test_a_loss_in_another_connection_of_the_broker() -> None:
    scene = Scene()
    lossy, whole = scene.connect(), scene.connect()
    for number in range(4):
        for name, connection in (("lossy", lossy), ("whole", whole)):
            connection.request(CREATE_TOPICS, 5, number)
            connection.response(CREATE_TOPICS, 5, number, topics=[{"name": f"{name}-{number}"}])
    scene.lose(4, 8)
    found = certainty(scene)
    assert all(found[f"whole-{number}"] for number in range(4))


@pytest.mark.parametrize(("api", "certain"), [(PRODUCE, True), (HEARTBEAT, False)])
def test_a_rebalance_rests_on_traffic_of_groups(api: int, certain: bool) -> None:
    """A lost request to the coordinator could be its cause, unless its connection has records."""
    scene = Scene()
    first, second, other = Member(scene, "a"), Member(scene, "b"), scene.connect()
    first.ask_to_join()
    first.joined(1, "a", "a")
    first.sync(1, 0)
    second.ask_to_join()
    other.request(api, 3, 0).response(api, 3, 0)
    lost = sum(1 for each in scene.wire.packets if each.payload)
    for number in (1, 2, 3):
        other.request(api, 3, number).response(api, 3, number)
    first.beat(1, error=REBALANCE_IN_PROGRESS)
    first.ask_to_join()
    for member in (first, second):
        member.joined(2, "a", "a", "b")
    for member in (first, second):
        member.sync(2, 0)
    scene.lose(lost)
    rebalances = only(events_of(scene, "group"), "rebalance")
    assert [each.certain for each in rebalances] == [True, certain]


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
    assert all(certainty(scene).values())
