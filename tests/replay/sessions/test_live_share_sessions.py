"""Epochs of share sessions count requests to the target."""

from __future__ import annotations

from construct import Container

from replay.sessions.live_share_sessions import ShareSessions, make_repeatable
from tests.replay.support.builders import request, uuid, whole


def share_fetch(epoch: int, node: int = 1, *, sessions: ShareSessions, error: int = 0) -> Container:
    batches = [{"first_offset": 0, "last_offset": 4, "acknowledge_types": [1]}]
    partition = {"partition_index": 0, "acknowledgement_batches": batches}
    body = {
        "group_id": "g",
        "member_id": "m",
        "share_session_epoch": epoch,
        "topics": [{"topic_id": uuid(1), "partitions": [partition]}],
    }
    message = request("ShareFetch", 1, body)
    assert message.body is not None
    sessions.assign_epochs(message, [(node, message.body)])
    answer = whole("ShareFetch", 1, {"error_code": error}, "response")
    sessions.record_response(node, message.body, answer)
    return message.body


def test_epochs_count_requests() -> None:
    sessions = ShareSessions()
    sent = [share_fetch(epoch, sessions=sessions) for epoch in (0, 1, 2, 7, -1)]
    assert [body.share_session_epoch for body in sent] == [0, 1, 2, 3, -1]
    assert sent[1].topics[0].partitions[0].acknowledgement_batches


def test_share_session_not_found_starts_a_new_session() -> None:
    sessions = ShareSessions()
    share_fetch(0, sessions=sessions)
    other = share_fetch(1, 2, sessions=sessions)
    assert other.share_session_epoch == 0
    assert not other.topics[0].partitions[0].acknowledgement_batches
    share_fetch(1, sessions=sessions, error=123)
    assert share_fetch(2, sessions=sessions).share_session_epoch == 0


def test_records_are_acknowledged_once() -> None:
    partition = {"acknowledgement_batches": [{"first_offset": 0, "last_offset": 4}]}
    body = {"topics": [{"topic_id": uuid(1), "partitions": [partition]}]}
    message = request("ShareFetch", 1, body)
    make_repeatable(message)
    assert message.body is not None
    assert not message.body.topics[0].partitions[0].acknowledgement_batches
