"""Details of groups' events that few captures have: seen midway, static, away, flapping."""

from __future__ import annotations

from tests.conform.scene import Scene
from tests.timeline.events_of import events_of, only
from tests.timeline.groups.test_classic_group_tracker import (
    NOT_COORDINATOR,
    REBALANCE_IN_PROGRESS,
    Member,
    pair,
    subscription,
)
from tests.timeline.groups.test_epoch_group_tracker import joined_pair

LOADING = 14


def test_a_flapping_client_is_named_with_its_joins() -> None:
    scene = Scene()
    for number in range(3):
        member = Member(scene, f"flappy-{number}")
        member.ask_to_join()
        member.joined(number + 1, member.name, member.name)
        member.sync(number + 1, 0)
        member.leave()
        scene.wait_ms(1000)
    (event,) = only(events_of(scene, "group"), "flapping")
    assert (event.cause, event.certain) == ("joined", False)
    assert " at 10.0.0.1 joined 3 times in 2.0" in event.text


def test_a_coordinator_is_lost_once_and_only_if_it_says_so() -> None:
    scene, first, _ = pair()
    first.beat(1, LOADING)
    assert only(events_of(scene, "group"), "coordinator lost") == []
    first.beat(1, NOT_COORDINATOR)
    assert only(events_of(scene, "group"), "coordinator lost") == []
    scene, first, _ = pair()
    first.beat(1, NOT_COORDINATOR)
    first.beat(1, NOT_COORDINATOR)
    (lost,) = only(events_of(scene, "group"), "coordinator lost")
    assert lost.text == "10.0.0.2:9092 is no longer its coordinator"


def test_a_member_that_leaves_a_group_without_a_generation() -> None:
    scene = Scene()
    Member(scene, "first", syn=False).leave()
    (left,) = only(events_of(scene, "group"), "left")
    assert left.text == "first left"


def test_a_member_first_seen_midway_that_rejoins() -> None:
    scene = Scene()
    first = Member(scene, "first", syn=False)
    first.beat(7)
    first.ask_to_join()
    first.joined(8, "first", "first")
    first.sync(8, 0)
    (event,) = only(events_of(scene, "group"), "rebalance")
    assert (event.cause, event.certain) == ("rejoined", False)
    assert event.text.startswith("generation 7 to 8: first rejoined; 1 member after ")


def test_the_generation_of_a_group_first_seen_midway_is_that_of_its_heartbeats() -> None:
    scene = Scene()
    first = Member(scene, "first", syn=False)
    first.beat(7)
    first.commit(6, error=22)
    (event,) = only(events_of(scene, "group"), "commit refused")
    assert "in generation 6, while the group is in 7: ILLEGAL_GENERATION" in event.text


def _static(scene: Scene, *names: str) -> list[Member]:
    """Return static members of generation 1, in a group of those alone."""
    found = [Member(scene, name) for name in names]
    for member in found:
        member.ask_to_join(group_instance_id=f"static-{member.name}")
    for member in found:
        member.joined(1, names[0], *names)
    for number, member in enumerate(found):
        member.sync(1, number)
    return found


def test_the_static_member_that_came_back_is_named() -> None:
    scene = Scene()
    _static(scene, "first", "second")
    again = Member(scene, "second-again")
    again.ask_to_join(group_instance_id="static-second")
    again.joined(1, "first")
    (event,) = only(events_of(scene, "group"), "static member returned")
    assert event.text == (
        "static member static-second came back as second-again, in generation 1, "
        "without a rebalance"
    )


def test_the_coordinator_waits_for_members_that_it_removes() -> None:
    scene, first, _ = pair()
    third = Member(scene, "third")
    third.ask_to_join()
    first.beat(1, REBALANCE_IN_PROGRESS)
    first.ask_to_join()
    scene.wait_ms(10_000)
    first.joined(2, "first", "first", "third")
    third.joined(2, "first")
    first.sync(2, 0, 1)
    third.sync(2, 2)
    text = only(events_of(scene, "group"), "rebalance")[1].text
    assert "the coordinator waited 10.0" in text
    assert " s for second, then removed them" in text


def test_a_static_member_that_came_back_is_not_removed() -> None:
    scene = Scene()
    first, _ = _static(scene, "first", "second")
    again = Member(scene, "second-again")
    again.ask_to_join("payments", group_instance_id="static-second")
    first.beat(1, REBALANCE_IN_PROGRESS)
    first.ask_to_join(group_instance_id="static-first")
    scene.wait_ms(1000)
    first.joined(2, "first", "first", "second-again")
    again.joined(2, "first")
    first.sync(2, 0)
    again.sync(2, 1)
    event = only(events_of(scene, "group"), "rebalance")[1]
    assert event.cause == "static member returned"
    assert "removed" not in event.text


def test_assignments_of_another_protocol_type_are_not_read() -> None:
    scene = Scene()
    member = Member(scene, "worker")
    protocols = [{"name": "sessioned", "metadata": subscription("orders")}]
    member.ask_to_join(protocol_type="connect", protocols=protocols)
    member.joined(1, "worker", "worker")
    member.sync(1, 0)
    (event,) = only(events_of(scene, "group"), "rebalance")
    assert "assigned" not in event.text


def test_a_static_member_of_a_consumer_group_keeps_its_partitions() -> None:
    beats = joined_pair()
    beats.beat("b", -2, -2)
    beats.beat("a", 2, 3)
    events = events_of(beats.scene, "group")
    (left,) = only(events, "left")
    assert left.cause == "static member"
    assert left.text == "static member b left; its partitions stay with it until it comes back"
    assert only(events, "rebalance")[-1].cause != "left"


def test_a_member_of_a_consumer_group_that_leaves_is_the_cause() -> None:
    beats = joined_pair()
    beats.beat("b", -1, -1)
    beats.beat("a", 2, 3)
    events = events_of(beats.scene, "group")
    assert only(events, "left")[0].text == "shop-b left; it had nothing"
    assert only(events, "rebalance")[-1].text.startswith(
        "epoch 2 to 3: shop-b left; 1 member after "
    )


def test_heartbeats_without_news_do_not_extend_a_rebalance() -> None:
    beats = joined_pair()
    beats.beat("a", 2, 3, ["payments"])
    beats.scene.wait_ms(50)
    beats.beat("a", 3, 3)
    beats.beat("a", 3, 3)
    beats.scene.wait_ms(50)
    event = only(events_of(beats.scene, "group"), "rebalance")[-1]
    assert event.end_ns - event.time_ns < 10_000_000
    assert len(event.evidence) == 1
