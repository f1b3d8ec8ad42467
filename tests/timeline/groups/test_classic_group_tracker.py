"""Classic groups: each rebalance, its cause, waits and assignments, in every version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dissector.cli import main
from dissector.protocol.apis import api
from dissector.protocol.embedded.membership.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from tests import tcp_captures
from tests.conform.scene import Scene, SceneConnection
from tests.timeline.events_of import brief, corpus_events, events_of, only
from timeline.cli import timeline

COMMIT, JOIN, HEARTBEAT, LEAVE, SYNC = 8, 11, 12, 13, 14
REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID, NOT_COORDINATOR = 27, 25, 16


def subscription(*topics: str) -> bytes:
    codec = ConsumerProtocolSubscription.codec(0)
    return b"\0\0" + codec.build({"topics": list(topics), "user_data": None})


def assignment(topic: str, *partitions: int) -> bytes:
    each = {"topic": topic, "partitions": list(partitions)}
    codec = ConsumerProtocolAssignment.codec(0)
    return b"\0\0" + codec.build({"assigned_partitions": [each], "user_data": None})


class Member:
    """A member of the group `g` on its own connection."""

    def __init__(self, scene: Scene, name: str, version: int = 5, syn: bool = True) -> None:
        self.scene, self.name, self.version = scene, name, version
        self.connection: SceneConnection = scene.connect(syn=syn)
        self._id = 0

    def ask_to_join(self, *topics: str, **fields: Any) -> None:
        """Send a JoinGroup."""
        self._id += 1
        values: dict[str, Any] = {
            "group_id": "g",
            "session_timeout_ms": 6000,
            "member_id": self.name,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": subscription(*topics or ("orders",))}],
            **({"rebalance_timeout_ms": 10000} if self.version >= 1 else {}),
            **fields,
        }
        self.connection.request(JOIN, self.version, self._id, **values)

    def joined(self, generation: int, leader: str, *members: str) -> None:
        """Answer the JoinGroup; the leader gets the list of members."""
        found = [{"member_id": each, "metadata": subscription("orders")} for each in members]
        self.connection.response(
            JOIN,
            self.version,
            self._id,
            generation_id=generation,
            protocol_name="range",
            leader=leader,
            member_id=self.name,
            members=found if leader == self.name else [],
        )

    def sync(self, generation: int, *partitions: int, error: int = 0) -> None:
        """Request and receive the assignment."""
        self._id += 1
        head = {"group_id": "g", "generation_id": generation, "member_id": self.name}
        self.connection.request(SYNC, 3, self._id, **head)
        got = assignment("orders", *partitions) if partitions else b""
        self.connection.response(SYNC, 3, self._id, error_code=error, assignment=got)

    def beat(self, generation: int, error: int = 0) -> None:
        """Send and answer a heartbeat."""
        self._id += 1
        head = {"group_id": "g", "generation_id": generation, "member_id": self.name}
        self.connection.request(HEARTBEAT, 3, self._id, **head)
        self.connection.response(HEARTBEAT, 3, self._id, error_code=error)

    def leave(self, reason: str | None = None) -> None:
        """Send and answer a LeaveGroup."""
        self._id += 1
        member = {"member_id": self.name, "reason": reason}
        self.connection.request(LEAVE, 5, self._id, group_id="g", members=[member])
        self.connection.response(LEAVE, 5, self._id, members=[{"member_id": self.name}])

    def commit(self, generation: int, error: int = 0) -> None:
        """Commit an offset."""
        self._id += 1
        self.connection.request(
            COMMIT,
            7,
            self._id,
            group_id="g",
            generation_id_or_member_epoch=generation,
            member_id=self.name,
            topics=[{"name": "orders", "partitions": [{"committed_offset": 5}]}],
        )
        self.connection.response(
            COMMIT,
            7,
            self._id,
            topics=[{"name": "orders", "partitions": [{"error_code": error}]}],
        )


def pair(version: int = 5, syn: bool = True) -> tuple[Scene, Member, Member]:
    """Return a group of two members in generation 1, with the first as leader."""
    scene = Scene()
    first, second = (Member(scene, name, version, syn) for name in ("first", "second"))
    first.ask_to_join()
    second.ask_to_join()
    first.joined(1, "first", "first", "second")
    second.joined(1, "first")
    first.sync(1, 0, 1)
    second.sync(1, 2)
    return scene, first, second


def rebalances(scene: Scene) -> list[tuple[str, str, bool]]:
    return brief(only(events_of(scene, "group"), "rebalance"))


@pytest.mark.parametrize("version", list(api(JOIN).request.versions))  # type: ignore[union-attr]
def test_the_first_member_begins_the_group_in_every_version(version: int) -> None:
    scene, _, _ = pair(version)
    (event,) = only(events_of(scene, "group"), "rebalance")
    assert (event.subject, event.cause, event.certain) == ("g", "joined", True)
    assert event.text.startswith("generation 1: first joined the empty group; 2 members")
    assert event.text.endswith("assigned: first orders 0-1, second orders 2")
    assert {each.api for each in event.evidence} == {"JoinGroup", "SyncGroup"}


def test_a_member_that_leaves() -> None:
    scene, first, second = pair()
    scene.wait_ms(500)
    second.leave("the consumer is being closed")
    first.beat(1, REBALANCE_IN_PROGRESS)
    first.ask_to_join()
    first.joined(2, "first", "first")
    first.sync(2, 0, 1, 2)
    events = events_of(scene, "group")
    assert brief(only(events, "rebalance"))[1:] == [("rebalance", "left", True)]
    (left,) = only(events, "left")
    assert left.text == "second left (the consumer is being closed); 1 member left over"
    text = only(events, "rebalance")[1].text
    assert "first orders 0-1 -> orders 0-2, second orders 2 -> gone" in text


def test_a_client_leaves_after_max_poll_interval() -> None:
    scene, first, second = pair()
    second.leave("consumer poll timeout has expired.")
    first.beat(1, REBALANCE_IN_PROGRESS)
    first.ask_to_join()
    first.joined(2, "first", "first")
    first.sync(2, 0)
    assert rebalances(scene)[1:] == [("rebalance", "poll timeout", True)]


def _silent(wait_ms: int, syn: bool = True) -> Scene:
    scene, first, _ = pair(syn=syn)
    for _ in range(3):
        scene.wait_ms(wait_ms // 3)
        first.beat(1)
    first.beat(1, REBALANCE_IN_PROGRESS)
    first.ask_to_join()
    first.joined(2, "first", "first")
    first.sync(2, 0, 1, 2)
    return scene


def test_a_member_silent_for_its_session_timeout() -> None:
    assert rebalances(_silent(6000))[1:] == [("rebalance", "session timeout", True)]


def test_a_shorter_silence_is_no_cause() -> None:
    assert rebalances(_silent(3000))[1:] == [("rebalance", "unknown", False)]


def test_the_first_cause_is_uncertain_on_older_connections() -> None:
    first, second = rebalances(_silent(6000, syn=False))
    assert first == ("rebalance", "joined", False)
    assert second == ("rebalance", "session timeout", True)  # the generation before is known


def test_a_generation_begun_before_the_capture_has_no_cause() -> None:
    scene = Scene()
    first = Member(scene, "first", syn=False)
    first.beat(7)
    first.beat(7, REBALANCE_IN_PROGRESS)
    first.ask_to_join()
    first.joined(8, "first", "first")
    first.sync(8, 0)
    assert rebalances(scene) == [("rebalance", "unknown", False)]


def test_a_lost_packet_makes_the_cause_uncertain() -> None:
    scene = _silent(6000)
    scene.lose(4)
    assert all(not certain for _, _, certain in rebalances(scene))


def _rejoins(member: int, *topics: str, **fields: Any) -> Scene:
    scene, first, second = pair()
    scene.wait_ms(100)
    rejoining, other = (first, second) if member == 0 else (second, first)
    rejoining.ask_to_join(*topics, **fields)
    scene.wait_ms(700)
    other.beat(1, REBALANCE_IN_PROGRESS)
    other.ask_to_join()
    first.joined(2, "first", "first", "second")
    second.joined(2, "first")
    first.sync(2, 0, 1)
    second.sync(2, 2)
    return scene


def test_a_member_with_another_subscription() -> None:
    scene = _rejoins(1, "orders", "payments")
    event = only(events_of(scene, "group"), "rebalance")[1]
    assert (event.cause, event.certain) == ("subscription changed", True)
    assert "second waited" in event.text
    assert "for first to join" in event.text
    assert "consumption paused up to" in event.text


def test_a_member_that_rejoins_without_a_reason() -> None:
    scene, first, second = pair()
    second.ask_to_join()
    first.beat(1, REBALANCE_IN_PROGRESS)
    first.ask_to_join()
    first.joined(2, "first", "first", "second")
    second.joined(2, "first")
    first.sync(2, 0, 1)
    second.sync(2, 2)
    assert rebalances(scene)[1:] == [("rebalance", "rejoined", True)]


def test_a_member_with_other_metadata() -> None:
    events = only(corpus_events("kafka4-connect.pcap", "group"), "rebalance")
    changed = [each for each in events if each.cause == "metadata changed"]
    assert changed
    assert all("rejoined, metadata changed" in each.text for each in changed)


def test_a_leader_that_rejoins() -> None:
    assert rebalances(_rejoins(0))[1:] == [("rebalance", "leader rejoined", True)]


def test_the_reason_of_a_client_is_in_the_text() -> None:
    scene, first, second = pair(version=9)
    second.ask_to_join("payments", reason="cached\x1b[31m metadata has changed")
    first.beat(1, REBALANCE_IN_PROGRESS)
    first.ask_to_join()
    first.joined(2, "first", "first", "second")
    second.joined(2, "first")
    first.sync(2, 0)
    second.sync(2, 1)
    event = only(events_of(scene, "group"), "rebalance")[1]
    assert event.cause == "subscription changed"
    assert "metadata has changed" in event.text


def test_a_reason_with_a_credential_is_masked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scene, _, second = pair()
    second.leave("no answer from https://user:hunter2@registry/")
    (left,) = only(events_of(scene, "group"), "left")
    assert left.text == "***"
    path = tcp_captures.write(tmp_path / "scene.pcap", scene.wire.packets)
    for words, shown in ((), False), (("--show-secrets",), True):
        assert main(["timeline", str(path), *words], [("timeline", timeline)]) == 0
        assert ("hunter2" in capsys.readouterr().out) == shown


def test_a_member_that_never_syncs() -> None:
    scene, first, second = pair()
    second.leave()
    first.beat(1, REBALANCE_IN_PROGRESS)
    third = Member(scene, "third")
    first.ask_to_join()
    third.ask_to_join()
    first.joined(2, "first", "first", "third")
    third.joined(2, "first")
    first.sync(2, 0, 1)
    scene.wait_ms(3000)
    third.beat(2)
    first.beat(2)
    scene.wait_ms(3500)
    third.beat(2)
    first.beat(2)
    scene.wait_ms(3500)
    first.beat(2, REBALANCE_IN_PROGRESS)
    first.ask_to_join()
    first.joined(3, "first", "first")
    first.sync(3, 0)
    last = rebalances(scene)[-1]
    assert last == ("rebalance", "rebalance timeout", True)


def test_refused_commits_report_their_cost() -> None:
    scene, _, second = pair()
    second.commit(1)
    second.commit(0, error=22)
    (event,) = only(events_of(scene, "group"), "commit refused")
    assert event.cause == "ILLEGAL_GENERATION"
    assert "in generation 0, while the group is in 1" in event.text


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (14, "COORDINATOR_LOAD_IN_PROGRESS"),
        (15, "COORDINATOR_NOT_AVAILABLE"),
        (16, "NOT_COORDINATOR"),
        (27, "REBALANCE_IN_PROGRESS"),
        (30, "GROUP_AUTHORIZATION_FAILED"),
    ],
)
def test_commits_refused_with_any_error(error: int, name: str) -> None:
    scene, _, second = pair()
    for _ in range(3):
        second.commit(1, error=error)
    (event,) = only(events_of(scene, "group"), "commit refused")
    assert (event.cause, event.count, event.certain) == (name, 3, True)


def test_an_unknown_member_is_fenced() -> None:
    scene, _, second = pair()
    second.beat(1, UNKNOWN_MEMBER_ID)
    (event,) = only(events_of(scene, "group"), "fenced")
    assert event.text == "Heartbeat of second in generation 1: UNKNOWN_MEMBER_ID"


def test_the_coordinator_moves() -> None:
    scene, first, _ = pair()
    scene.wait_ms(50)
    first.beat(1, NOT_COORDINATOR)
    scene.wait_ms(400)
    first.connection = scene.connect(broker="10.0.0.3")
    first.beat(1)
    events = events_of(scene, "group")
    assert [each.event for each in events][-2:] == ["coordinator lost", "coordinator moved"]
    assert events[-1].text.startswith("from 10.0.0.2:9092 to 10.0.0.3:9092, 4")


def test_clients_that_join_and_leave() -> None:
    scene = Scene()
    for number in range(3):
        member = Member(scene, f"flappy-{number}")
        member.ask_to_join()
        member.joined(number + 1, member.name, member.name)
        member.sync(number + 1, 0)
        member.leave()
    assert [each.event for each in events_of(scene, "group")].count("flapping") == 1


def test_a_decreasing_generation_starts_a_new_group() -> None:
    scene, first, _ = pair()
    first.ask_to_join()
    first.joined(1, "first", "first")
    assert rebalances(scene)[0][1] == "joined"
    scene, first, second = pair()
    second.leave()
    first.leave()
    first.ask_to_join()
    first.joined(0, "first", "first")
    first.sync(0, 0)
    assert rebalances(scene)[1:] == [("rebalance", "unknown", False)]


def test_static_members_of_the_corpus() -> None:
    events = corpus_events("kafka4-static-members.pcap", "group")
    assert [each.cause for each in only(events, "rebalance")] == ["joined", "session timeout"]
    assert len(only(events, "static member returned")) == 2
    (fenced,) = only(events, "fenced")
    assert fenced.cause == "FENCED_INSTANCE_ID"
    assert "6000 ms" in only(events, "rebalance")[1].text


@pytest.mark.parametrize(
    ("name", "causes"),
    [
        ("kafka4-librdkafka-group.pcap", ["joined", "joined", "left"]),
        ("kafka39-librdkafka-group.pcap", ["joined", "joined", "left"]),
        ("kafka4-librdkafka-group-cooperative.pcap", ["joined", "joined", "leader rejoined"]),
    ],
)
def test_groups_of_the_corpus(name: str, causes: list[str]) -> None:
    events = only(corpus_events(name, "group"), "rebalance")
    assert [each.cause for each in events] == causes
    assert all(each.certain for each in events)


def begun_rebalance() -> tuple[Scene, Member]:
    """Return a scene with a member that rejoins after another one has left."""
    scene = Scene()
    first, second = Member(scene, "first"), Member(scene, "second")
    first.ask_to_join()
    second.ask_to_join()
    first.joined(1, "first", "first", "second")
    second.joined(1, "first")
    first.sync(1, 0)
    second.sync(1, 1)
    second.leave()
    first.beat(1, REBALANCE_IN_PROGRESS)
    first.ask_to_join()
    first.joined(2, "first", "first")
    return scene, first


def test_a_rebalance_incomplete_at_the_end_is_uncertain() -> None:
    scene, _ = begun_rebalance()
    assert brief(only(events_of(scene, "group"), "rebalance"))[-1] == ("rebalance", "left", False)


def test_a_rebalance_ends_when_its_last_member_leaves() -> None:
    scene, first = begun_rebalance()
    first.connection.fin()
    assert brief(only(events_of(scene, "group"), "rebalance"))[-1] == ("rebalance", "left", True)
    scene, first = begun_rebalance()
    first.leave()
    assert brief(only(events_of(scene, "group"), "rebalance"))[-1] == ("rebalance", "left", True)
