"""Group events from messages, and the resulting states."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from dissector import open_capture
from dissector.filter import parse
from dissector.protocol.embedded.membership.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from dissector.summary.group_events import Generation, MemberFacts
from dissector.summary.group_states import GroupStates
from dissector.summary.groups_reader import GroupsReader
from tests.dissector.cli.cli_traffic import request_frame, response_frame
from tests.tcp_captures import Wire, WireConnection, pcap_file

CAPTURES = Path(__file__).parents[3] / "captures"

FETCH, COMMIT, OFFSET_FETCH, JOIN, HEARTBEAT, LEAVE, SYNC = 1, 8, 9, 11, 12, 13, 14
END_TXN, TXN_COMMIT, CONSUMER_HEARTBEAT = 26, 28, 68
ORDERS_ID = UUID("5f7d1f1e-9d1c-4f43-8d6b-0c1a2b3c4d5e")
BILLING = "billing"

Rows = list[dict[str, Any]]


class Coordinator:
    """A connection between a group and its coordinator."""

    def __init__(self) -> None:
        self.wire = Wire()
        self._connection: WireConnection = self.wire.connect().syn()
        self._number = 0

    def exchange(
        self, key: int, version: int, request: dict[str, Any], response: dict[str, Any]
    ) -> None:
        self._number += 1
        self._connection.client(request_frame(key, version, self._number, "app", **request))
        self._connection.broker(response_frame(key, version, self._number, **response))

    def join(self, member: str, generation: int, members: tuple[str, ...] = ()) -> None:
        metadata = subscription("orders")
        self.exchange(
            JOIN,
            5,
            {
                "group_id": BILLING,
                "member_id": member,
                "protocol_type": "consumer",
                "protocols": [{"name": "range", "metadata": metadata}],
            },
            {
                "generation_id": generation,
                "protocol_name": "range",
                "leader": "a",
                "member_id": member,
                "members": [{"member_id": each, "metadata": metadata} for each in members],
            },
        )

    def sync(self, member: str, generation: int, parts: dict[str, list[int]]) -> None:
        given = {each: assignment("orders", numbers) for each, numbers in parts.items()}
        all_of = [{"member_id": each, "assignment": data} for each, data in given.items()]
        self.exchange(
            SYNC,
            3,
            {
                "group_id": BILLING,
                "member_id": member,
                "generation_id": generation,
                "assignments": all_of if member == "a" else [],
            },
            {"assignment": given[member]},
        )

    def commit(self, partition: int, offset: int, error: int = 0) -> None:
        asked = {"partition_index": partition, "committed_offset": offset}
        answered = {"partition_index": partition, "error_code": error}
        self.exchange(
            COMMIT,
            7,
            {"group_id": BILLING, "topics": [{"name": "orders", "partitions": [asked]}]},
            {"topics": [{"name": "orders", "partitions": [answered]}]},
        )

    def fetch(self, partition: int, high_watermark: int) -> None:
        got = {"partition_index": partition, "high_watermark": high_watermark}
        self.exchange(FETCH, 11, {}, {"responses": [{"topic": "orders", "partitions": [got]}]})

    def report(self, filter_text: str | None = None) -> dict[str, Rows]:
        capture = open_capture("-", stdin=io.BytesIO(pcap_file(self.wire.packets)))
        reader = GroupsReader(capture, parse(filter_text) if filter_text else None)
        for window in capture.windows(gleaning=True):
            reader.add(window)
        return reader.sections()


def subscription(topic: str) -> bytes:
    codec = ConsumerProtocolSubscription.codec(0)
    return b"\x00\x00" + codec.build({"topics": [topic], "user_data": None})


def assignment(topic: str, partitions: list[int]) -> bytes:
    codec = ConsumerProtocolAssignment.codec(0)
    given = [{"topic": topic, "partitions": partitions}]
    return b"\x00\x00" + codec.build({"assigned_partitions": given, "user_data": None})


def two_members() -> Coordinator:
    play = Coordinator()
    play.join("a", 1, ("a", "b"))
    play.join("b", 1)
    play.sync("a", 1, {"a": [0], "b": [1]})
    play.sync("b", 1, {"b": [1]})
    return play


def shown(rows: Rows, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_a_stable_group() -> None:
    play = two_members()
    play.fetch(0, 50)
    play.commit(0, 42)
    play.commit(1, 7)
    play.commit(1, 8, error=22)
    report = play.report()
    assert report["groups"] == [
        {
            "group": "billing",
            "type": "classic",
            "protocol": "consumer",
            "state": "Stable",
            "generation": 1,
            "rebalances": 0,
            "assignor": "range",
            "coordinator": "10.0.0.2:9092",
            "members": 2,
            "lag": 8,
        }
    ]
    assert shown(report["members"], "member_id", "client_id", "topics", "assignment", "leader") == [
        ("a", "app", ["orders"], ["orders(0)"], True),
        ("b", "app", ["orders"], ["orders(1)"], False),
    ]
    columns = ("partition", "committed", "high_watermark", "lag", "member_id")
    assert shown(report["partitions"], *columns) == [
        (0, 42, 50, 8, "a"),
        (1, 7, None, None, "b"),
    ]


def test_a_group_continues_after_a_leave() -> None:
    play = two_members()
    play.exchange(LEAVE, 2, {"group_id": BILLING, "member_id": "b"}, {})
    assert play.report()["groups"][0]["state"] == "PreparingRebalance"
    play.join("a", 2, ("a",))
    assert play.report()["groups"][0]["state"] == "CompletingRebalance"
    play.sync("a", 2, {"a": [0, 1]})
    report = play.report()
    assert shown(report["groups"], "state", "generation", "rebalances", "members") == [
        ("Stable", 2, 1, 1)
    ]
    assert shown(report["members"], "member_id", "assignment", "left") == [
        ("a", ["orders(0,1)"], False),
        ("b", ["orders(1)"], True),
    ]
    play.exchange(LEAVE, 3, {"group_id": BILLING, "members": [{"member_id": "a"}]}, {})
    assert shown(play.report()["groups"], "state", "members") == [("Empty", 0)]


def test_members_are_known_by_heartbeats_midway() -> None:
    play = Coordinator()
    for _ in range(3):
        beat = {"group_id": BILLING, "member_id": "a", "generation_id": 9}
        play.exchange(HEARTBEAT, 3, beat, {})
    play.exchange(
        OFFSET_FETCH,
        5,
        {"group_id": BILLING},
        {
            "topics": [
                {
                    "name": "orders",
                    "partitions": [
                        {"partition_index": 0, "committed_offset": 5},
                        {"partition_index": 1, "committed_offset": -1},
                    ],
                }
            ]
        },
    )
    report = play.report()
    assert shown(report["groups"], "type", "generation", "members") == [("classic", 9, 1)]
    assert shown(report["partitions"], "partition", "committed") == [(0, 5), (1, None)]


def test_transactional_offsets_count_after_the_commit() -> None:
    def transaction(play: Coordinator, offset: int, committed: bool | None) -> None:
        asked = {"partition_index": 0, "committed_offset": offset}
        topics = [{"name": "orders", "partitions": [asked]}]
        answered = [{"name": "orders", "partitions": [{"partition_index": 0}]}]
        name = {"transactional_id": "t"}
        group = {"group_id": BILLING, "topics": topics}
        play.exchange(TXN_COMMIT, 2, {**name, **group}, {"topics": answered})
        if committed is not None:
            play.exchange(END_TXN, 1, {**name, "committed": committed}, {})

    play = Coordinator()
    play.commit(0, 1)
    transaction(play, 10, committed=True)
    transaction(play, 20, committed=False)
    assert shown(play.report()["partitions"], "committed") == [(10,)]
    transaction(play, 30, committed=None)
    assert shown(play.report()["partitions"], "committed") == [(10,)]


def test_a_group_with_epochs() -> None:
    play = Coordinator()
    topics = [{"topic_id": ORDERS_ID, "partitions": [0, 1]}]
    member = {"group_id": BILLING, "member_id": "m", "member_epoch": 0}
    joined = {**member, "subscribed_topic_names": ["orders"]}
    given = {"member_id": "m", "member_epoch": 3, "assignment": {"topic_partitions": topics}}
    play.exchange(CONSUMER_HEARTBEAT, 0, joined, given)
    quiet = {"member_id": "m", "member_epoch": 3, "assignment": None}
    for _ in range(2):
        play.exchange(CONSUMER_HEARTBEAT, 0, {**member, "member_epoch": 3}, quiet)
    report = play.report()
    assert shown(report["groups"], "type", "state", "generation") == [("consumer", "Stable", 3)]
    assert shown(report["members"], "topics", "assignment", "leader") == [
        (["orders"], [f"{ORDERS_ID}(0,1)"], None)
    ]
    gone = {"member_id": "m", "member_epoch": -1, "assignment": None}
    play.exchange(CONSUMER_HEARTBEAT, 0, {**member, "member_epoch": -1}, gone)
    assert shown(play.report()["groups"], "state", "members") == [("Empty", 0)]


def test_a_static_member_has_one_id_at_a_time() -> None:
    """Source: KIP-345."""
    play = two_members()
    for member, generation in (("s-1", 2), ("s-2", 2)):
        asked = {"group_id": BILLING, "member_id": member, "group_instance_id": "s"}
        play.exchange(SYNC, 3, {**asked, "generation_id": generation}, {"assignment": b""})
    assert shown(play.report()["members"], "member_id", "instance_id", "left") == [
        ("s-2", "s", False),
        ("a", None, True),
        ("b", None, True),
    ]


def test_a_static_member_is_removed_by_its_instance() -> None:
    """As by kafka-consumer-groups and admin clients: KIP-345."""
    play = two_members()
    asked = {"group_id": BILLING, "member_id": "s-1", "group_instance_id": "s"}
    play.exchange(SYNC, 3, {**asked, "generation_id": 1}, {"assignment": b""})
    gone = {"member_id": "", "group_instance_id": "s"}
    play.exchange(LEAVE, 3, {"group_id": BILLING, "members": [gone]}, {})
    assert shown(play.report()["members"], "member_id", "left") == [
        ("a", False),
        ("b", False),
        ("s-1", True),
    ]


def test_number_of_former_members_is_bounded() -> None:
    states = GroupStates()
    for number in range(1_500):
        member = {f"m{number}": MemberFacts(instance_id=f"i{number}")}
        states.apply(Generation("g", "classic", number, member), "broker")
    group = states.groups["g"]
    assert list(group.members) == ["m1499"]
    assert len(group.former) == 1_000
    assert "m1498" in group.former


def test_names_of_groups_may_have_invalid_utf8() -> None:
    play = Coordinator()
    beat = {"group_id": "caf\udce9", "member_id": "a", "generation_id": 1}
    play.exchange(HEARTBEAT, 3, beat, {})
    assert play.report()["groups"][0]["group"] == "caf\\xe9"


@pytest.mark.parametrize(
    ("filter_text", "committed", "end"),
    [
        (None, 42, 90),
        ("request.group_id == billing", 42, 90),
        ("frame.time_relative < 5", 40, 50),
        ("request.group_id == billing and frame.time_relative < 5", 40, 50),
        ("not frame.time_relative >= 5", 40, 50),
        ("api == OffsetCommit or frame.time_relative < 5", 42, 90),
    ],
)
def test_lag_at_the_time_of_a_filter(filter_text: str | None, committed: int, end: int) -> None:
    play = two_members()
    play.fetch(0, 50)
    play.commit(0, 40)
    play.wire.now_ns += 10 * 10**9
    play.commit(0, 42)
    play.fetch(0, 90)
    report = play.report(filter_text)
    columns = ("partition", "committed", "high_watermark", "lag")
    assert shown(report["partitions"], *columns)[0] == (0, committed, end, end - committed)
