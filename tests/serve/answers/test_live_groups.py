"""Workers of Kafka Connect get the assignments of their live leader, not captured ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dissector.protocol.error_codes import error_code
from serve.public import Cassette
from tests.replay.support.replay_captures import SHIPPED
from tests.serve.support.raw_client import RawClient
from tests.waiting import wait_until

NAME = "kafka4-connect"
GROUP = f"{NAME}.workers"
REBALANCES = error_code("REBALANCE_IN_PROGRESS")
UNKNOWN_MEMBER = error_code("UNKNOWN_MEMBER_ID")
OLD_GENERATION = error_code("ILLEGAL_GENERATION")
MEMBER_ID_REQUIRED = error_code("MEMBER_ID_REQUIRED")


@pytest.fixture
def served() -> Iterator[Cassette]:
    (capture,) = SHIPPED.glob(f"{NAME}.pcap*")
    with Cassette(capture, strict=True) as cassette:
        yield cassette
    assert not cassette.misses


class Worker(RawClient):
    """A member of the group."""

    def __init__(self, served: Cassette, name: str) -> None:
        super().__init__(served.bootstrap, name)
        self.name = name
        self.member_id = ""
        self.generation = -1

    def start_joining(
        self, metadata: bytes, session_ms: int = 10_000, protocols: tuple[str, ...] = ("sessioned",)
    ) -> None:
        values = {"session_timeout_ms": session_ms, "rebalance_timeout_ms": 60_000}
        values |= {"group_id": GROUP, "protocol_type": "connect"}
        offers = [{"name": each, "metadata": metadata} for each in protocols]
        while not self.member_id:
            answer = self.ask("JoinGroup", 9, member_id="", protocols=offers, **values)
            assert answer.error_code == MEMBER_ID_REQUIRED
            self.member_id = answer.member_id
        self.send_request("JoinGroup", 9, member_id=self.member_id, protocols=offers, **values)

    def end_joining(self) -> Any:
        answer = self.receive_response("JoinGroup", 9)
        self.generation = answer.generation_id
        return answer

    def start_syncing(self, **assignments: bytes) -> None:
        given = [{"member_id": name, "assignment": data} for name, data in assignments.items()]
        self.send_request("SyncGroup", 5, **self._identity(), assignments=given)

    def beat(self) -> int:
        error: int = self.ask("Heartbeat", 4, **self._identity()).error_code
        return error

    def _identity(self) -> dict[str, Any]:
        return {
            "group_id": GROUP,
            "member_id": self.member_id,
            "generation_id": self.generation,
            "group_instance_id": None,
        }


def _join_both(first: Worker, second: Worker) -> None:
    first.start_joining(b"a")
    assert first.end_joining().leader == first.member_id
    second.start_joining(b"b")
    # The request of the other member takes a while.
    wait_until(lambda: first.beat() == REBALANCES)
    first.start_joining(b"a")
    first.end_joining()
    second.end_joining()


def test_the_leader_assigns(served: Cassette) -> None:
    with Worker(served, "first") as first, Worker(served, "second") as second:
        first.start_joining(b"a", protocols=("newest", "sessioned"))
        assert first.end_joining().protocol_name == "newest"
        second.start_joining(b"b")
        wait_until(lambda: first.beat() == REBALANCES)
        first.start_joining(b"a", protocols=("newest", "sessioned"))
        led, followed = first.end_joining(), second.end_joining()
        assert {each.member_id: each.metadata for each in led.members} == {
            first.member_id: b"a",
            second.member_id: b"b",
        }
        assert followed.members == []
        for each in (led, followed):
            found = (each.leader, each.generation_id, each.protocol_name)
            assert found == (first.member_id, 2, "sessioned")
        second.start_syncing()
        first.start_syncing(**{first.member_id: b"one", second.member_id: b"two"})
        assert first.receive_response("SyncGroup", 5).assignment == b"one"
        assert second.receive_response("SyncGroup", 5).assignment == b"two"
        assert first.beat() == second.beat() == 0


def test_other_members_rejoin_after_a_leave(served: Cassette) -> None:
    with Worker(served, "first") as first, Worker(served, "second") as second:
        _join_both(first, second)
        second.start_syncing()
        members = [{"member_id": first.member_id, "group_instance_id": None}]
        assert first.ask("LeaveGroup", 5, group_id=GROUP, members=members).error_code == 0
        assert second.receive_response("SyncGroup", 5).error_code == REBALANCES
        assert second.beat() == REBALANCES
        assert first.beat() == UNKNOWN_MEMBER
        second.start_joining(b"b")
        assert second.end_joining().leader == second.member_id
        second.generation -= 1
        assert second.beat() == OLD_GENERATION


def test_a_silent_member_is_not_awaited(served: Cassette) -> None:
    with Worker(served, "first") as first, Worker(served, "second") as second:
        first.start_joining(b"a", session_ms=1)
        first.end_joining()
        second.start_joining(b"b")
        assert second.end_joining().leader == second.member_id


def test_a_follower_may_repeat_its_sync(served: Cassette) -> None:
    with Worker(served, "first") as first, Worker(served, "second") as second:
        _join_both(first, second)
        second.start_joining(b"b")
        assert second.end_joining().generation_id == first.generation
        assert first.beat() == 0
