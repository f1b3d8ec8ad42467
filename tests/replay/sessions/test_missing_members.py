"""Group members without a captured join."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

from dissector.protocol.apis import KEYS, api
from dissector.protocol.messages import Message
from replay.sessions.missing_members import JOINED
from tests.default_frames import request, response
from tests.replay.run.test_runner import at_script
from tests.replay.support.outcomes import filled
from tests.replay.support.replay_captures import exchange, saved
from tests.replay.support.scripted_broker import Answers
from tests.tcp_captures import Wire

HEARTBEAT = KEYS["Heartbeat"]


def beating(folder: Path, *members: str) -> str:
    wire = Wire()
    connection = wire.connect()
    for number, name in enumerate(members):
        heartbeat = request(HEARTBEAT, 3, number, group_id="g", generation_id=7, member_id=name)
        exchange(connection, heartbeat, response(HEARTBEAT, 3, number))
    return saved(folder, wire)


def coordinator() -> Answers:
    """A group with all members in one generation."""
    joined: list[str] = []

    def join(message: Message) -> dict[str, Any]:
        assert message.body is not None
        name = message.body.member_id or f"live-{len(joined)}"
        if name not in joined:
            joined.append(name)
        members = [{"member_id": each, "metadata": b""} for each in joined]
        return {
            "generation_id": len(joined),
            "protocol_type": "consumer",
            "protocol_name": "range",
            "leader": joined[0],
            "member_id": name,
            "members": members if name == joined[0] else [],
        }

    def beat(message: Message) -> dict[str, Any]:
        assert message.body is not None
        is_one = message.body.member_id in joined and message.body.generation_id == len(joined)
        return {"error_code": 0 if is_one else 25}

    return {
        "JoinGroup": join,
        "SyncGroup": lambda _: {"assignment": b""},
        "Heartbeat": beat,
    }


def test_members_without_a_captured_join_join_together(tmp_path: Path) -> None:
    found = at_script(beating(tmp_path, "one", "two"), coordinator())
    assert not found.failures
    assert [each.response.error_code for each in found.outcomes if each.response] == [0, 0]
    rules = {change.why for each in found.outcomes for change in each.changes}
    assert JOINED in rules
    first = next(each.api for each in found.requests)
    assert first == "JoinGroup"


def test_requests_of_a_member_unable_to_join_are_omitted(tmp_path: Path) -> None:
    denied = {"JoinGroup": lambda _: {"error_code": 30, "protocol_name": "", "members": []}}
    found = at_script(beating(tmp_path, "one"), coordinator() | denied)
    assert [each.is_refused for each in found.outcomes] == [True]
    assert "GROUP_AUTHORIZATION_FAILED" in found.outcomes[0].failure


def sharing(folder: Path) -> str:
    """A member of a share group that names its topic only by its id, and beats once."""
    connection, topic_id = (wire := Wire()).connect(), UUID(int=7)
    metadata = {"topics": [{"name": "orders", "topic_id": topic_id, "partitions": []}]}
    fetch = {"group_id": "g", "member_id": "m", "share_session_epoch": 0}
    fetch["topics"] = [{"topic_id": topic_id, "partitions": [{"partition_index": 0}]}]
    beat = {"group_id": "g", "member_id": "m", "member_epoch": 3}
    for number, (name, version, asked, given) in enumerate(
        (
            ("Metadata", 12, {"topics": None}, metadata),
            ("ShareFetch", 1, fetch, {}),
            ("ShareGroupHeartbeat", 1, beat, {"member_id": "m", "member_epoch": 3}),
        )
    ):
        found = api(KEYS[name])
        assert found is not None
        asked = filled(found.request.fields, version, asked)
        given = filled(found.response.fields, version, given)
        sent = request(found.key, version, number, "test", **asked)
        exchange(connection, sent, response(found.key, version, number, **given))
    return saved(folder, wire)


def test_a_member_of_a_share_group_joins_with_the_topics_that_it_fetches(tmp_path: Path) -> None:
    """A broker refuses a join without topics (ShareGroupHeartbeat, KIP-932)."""

    def beat(message: Message) -> dict[str, Any]:
        assert message.body is not None
        epoch = message.body.member_epoch
        is_right = epoch or message.body.subscribed_topic_names == ["orders"]
        return {"error_code": 0 if is_right else 42, "member_id": "m", "member_epoch": epoch or 1}

    script = {"ShareGroupHeartbeat": beat, "ShareFetch": lambda _: {"responses": []}}
    found = at_script(sharing(tmp_path), script)
    assert not [each.failure for each in found.outcomes if each.failure]
    first = next(each for each in found.requests if each.api == "ShareGroupHeartbeat")
    assert first.body is not None
    assert first.body.subscribed_topic_names == ["orders"]
