"""Groups with member epochs: consumer, share and streams groups."""

from __future__ import annotations

import pytest

from tests.conform.scene import Scene
from tests.timeline.events_of import brief, corpus_events, events_of, only

CONSUMER = 68


def test_a_second_member_joins_and_leaves() -> None:
    events = corpus_events("kafka4-librdkafka-group-848.pcap", "group")
    first, second = only(events, "rebalance")
    assert (first.cause, first.certain) == ("joined", False)  # earlier members are unknown
    assert (second.cause, second.certain) == ("joined", True)
    assert second.text.startswith("epoch 2 to 3: rdkafka-848-second-73if1D joined; 2 members")
    assert [each.event for each in events].count("left") == 2


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("kafka4-java-share-group.pcap", "kafka4-java-share-group.orders.group"),
        ("kafka4-streams-group.pcap", "kafka4-streams-group.orders.words"),
    ],
)
def test_share_and_streams_groups(name: str, subject: str) -> None:
    events = [each for each in corpus_events(name, "group") if each.subject == subject]
    names = [each.event for each in events]
    assert names.count("joined") == names.count("left") == 2
    assert {"assigned", "rebalance"} <= set(names)
    assert only(events, "rebalance")[-1].cause == "joined"


class Beats:
    """Heartbeats of members of the group `g`, one connection each."""

    def __init__(self) -> None:
        self.scene = Scene()
        self._connections = {name: self.scene.connect() for name in ("a", "b")}
        self._id = 0

    def beat(
        self, name: str, epoch: int, result: int, topics: list[str] | None = None, error: int = 0
    ) -> None:
        self._id += 1
        connection = self._connections[name]
        connection.request(
            CONSUMER,
            0,
            self._id,
            group_id="g",
            member_id=name,
            member_epoch=epoch,
            subscribed_topic_names=topics,
            topic_partitions=None,
        )
        connection.response(
            CONSUMER,
            0,
            self._id,
            error_code=error,
            member_id=name,
            member_epoch=result,
            heartbeat_interval_ms=100,
        )


def joined_pair() -> Beats:
    beats = Beats()
    beats.beat("a", 0, 1, ["orders"])
    beats.beat("b", 0, 2, ["orders"])
    beats.beat("a", 1, 2)
    return beats


def test_a_changed_subscription() -> None:
    beats = joined_pair()
    beats.beat("a", 2, 3, ["orders", "payments"])
    beats.beat("b", 2, 3)
    event = only(events_of(beats.scene, "group"), "rebalance")[-1]
    assert (event.cause, event.certain) == ("subscription changed", True)
    assert "subscribed to orders, payments, before to orders" in event.text


def test_a_silent_member_is_an_uncertain_cause() -> None:
    beats = joined_pair()
    beats.scene.wait_ms(5000)
    beats.beat("a", 2, 3)
    assert brief(only(events_of(beats.scene, "group"), "rebalance"))[-1] == (
        "rebalance",
        "session timeout",
        False,
    )


def test_a_coordinator_that_was_away_begins_session_timeouts_anew() -> None:
    beats = joined_pair()
    beats.scene.wait_ms(5000)
    beats.beat("a", 2, 0, error=14)
    beats.beat("a", 2, 3)
    assert only(events_of(beats.scene, "group"), "rebalance")[-1].cause == "unknown"


def test_the_cause_is_unknown_without_an_explaining_request() -> None:
    beats = joined_pair()
    beats.beat("b", 2, 3)
    beats.beat("a", 2, 3)
    assert brief(only(events_of(beats.scene, "group"), "rebalance"))[-1] == (
        "rebalance",
        "unknown",
        False,
    )


def test_a_fenced_member() -> None:
    beats = joined_pair()
    beats.scene.wait_ms(3000)
    beats.beat("a", 1, 0, error=110)
    (event,) = only(events_of(beats.scene, "group"), "fenced")
    assert event.cause == "FENCED_MEMBER_EPOCH"
    assert "3.0" in event.text


def test_a_later_join_answered_first() -> None:
    scene = Scene()
    first, second = scene.connect(), scene.connect()
    head = {"group_id": "g", "topic_partitions": None}
    joins = head | {"member_epoch": 0, "subscribed_topic_names": ["orders"]}
    first.request(CONSUMER, 0, 1, member_id="first", **joins)
    second.request(CONSUMER, 0, 1, member_id="second", **joins)
    second.response(CONSUMER, 0, 1, member_id="second", member_epoch=1, assignment=None)
    first.response(CONSUMER, 0, 1, member_id="first", member_epoch=1, assignment=None)
    for name, connection in (("first", first), ("second", second)):
        beat = head | {"member_epoch": 1, "subscribed_topic_names": None}
        connection.request(CONSUMER, 0, 2, member_id=name, **beat)
        connection.response(CONSUMER, 0, 2, member_id=name, member_epoch=2, assignment=None)
    _, later = only(events_of(scene, "group"), "rebalance")
    assert later.text.startswith("epoch 1 to 2: shop-second joined;")
    assert (later.cause, later.certain) == ("joined", False)
