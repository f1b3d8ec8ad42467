"""Resources missing on the target are awaited once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from dissector.protocol.apis import KEYS
from dissector.protocol.error_codes import error_code
from dissector.protocol.messages import Message
from replay.options.play_options import PlayOptions
from tests.default_frames import request, response
from tests.replay.run.test_runner import Played, at_script
from tests.replay.sessions.test_transaction_compat import answered_in, batch, produce
from tests.replay.support.replay_captures import exchange, saved
from tests.tcp_captures import Wire

PRODUCE = KEYS["Produce"]
UNKNOWN = error_code("UNKNOWN_TOPIC_OR_PARTITION")
SOON = PlayOptions(timeout_s=1)


def writing(folder: Path, times: int, connections: int = 1) -> str:
    wire = Wire()
    for port in range(connections):
        connection = wire.connect(50000 + port).syn()
        for number in range(times):
            answer = answered_in(9, number, {"index": 0, "base_offset": number})
            exchange(
                connection, request(PRODUCE, 9, number, **produce(None, records()), acks=1), answer
            )
    return saved(folder, wire)


def records() -> bytes:
    return batch(-1).replace((9).to_bytes(8, "big"), b"\xff" * 8)


def refusing(*errors: int) -> Any:
    """Answer Produce requests with these errors, and with the last one from then on."""
    left = list(errors)

    def answer(_: Message) -> dict[str, Any]:
        error = left.pop(0) if len(left) > 1 else left[0]
        partition = {"index": 0, "error_code": error, "base_offset": -1 if error else 3}
        return {"responses": [{"name": "t", "partition_responses": [partition]}]}

    return answer


def notices(played: Played) -> list[str]:
    assert played.run is not None
    return played.run.progress.notices


def test_a_missing_topic_is_awaited_once_on_all_connections(tmp_path: Path) -> None:
    path = writing(tmp_path, 4, connections=3)
    played = at_script(path, {"Produce": refusing(UNKNOWN)}, SOON)
    sent = Counter(each.api for each in played.requests)
    # Requests waiting at the timeout may be retried once more; all others are sent once.
    waited = sent["Produce"] - 12
    assert waited > 0
    assert notices(played) == [
        "the target lacks topic 't' (--create-topics creates it); "
        "requests for it are not retried any more"
    ]
    errors = [
        each.response.responses[0].partition_responses[0].error_code
        for each in played.outcomes
        if each.response
    ]
    assert errors == [UNKNOWN] * 12


def test_only_one_of_several_missing_topics_is_awaited(tmp_path: Path) -> None:
    wire = Wire()
    connection = wire.connect().syn()
    names = [f"t{number}" for number in range(7)]
    for number, name in enumerate(names):
        body = produce(None, records())
        body["topic_data"][0]["name"] = name
        answer = answered_in(9, number, {"index": 0, "base_offset": number}, name)
        exchange(connection, request(PRODUCE, 9, number, **body, acks=1), answer)
    path = saved(tmp_path, wire)

    def refuse(message: Message) -> dict[str, Any]:
        assert message.body is not None
        partition = {"index": 0, "error_code": UNKNOWN, "base_offset": -1}
        name = message.body.topic_data[0].name
        return {"responses": [{"name": name, "partition_responses": [partition]}]}

    played = at_script(path, {"Produce": refuse}, SOON)
    sent = Counter(each.body.topic_data[0].name for each in played.requests if each.body)
    assert sent["t0"] > 1
    assert {sent[name] for name in names[1:]} == {1}
    assert notices(played) == [
        "the target lacks topic 't0' (--create-topics creates it); "
        "requests for it are not retried any more",
        "the target lacks 't1', 't2', 't3', 't4' and 2 more too; requests for them are not retried",
    ]


def test_authorization_errors_are_not_retried(tmp_path: Path) -> None:
    denied = error_code("TOPIC_AUTHORIZATION_FAILED")
    played = at_script(writing(tmp_path, 3), {"Produce": refusing(denied)}, SOON)
    assert [each.api for each in played.requests] == ["Produce"] * 3
    assert notices(played) == [
        "the target refuses 't': TOPIC_AUTHORIZATION_FAILED; "
        "requests for it are not retried any more"
    ]


def test_resources_that_appear_in_time_are_not_reported(tmp_path: Path) -> None:
    played = at_script(writing(tmp_path, 3), {"Produce": refusing(UNKNOWN, UNKNOWN, 0)})
    assert not notices(played)
    assert len(played.requests) == 5


def test_nothing_waits_for_a_topic_that_the_target_refuses_to_create(tmp_path: Path) -> None:
    wire = Wire()
    connection, create = wire.connect().syn(), KEYS["CreateTopics"]
    topic = {"name": "t", "num_partitions": 1, "replication_factor": 3}
    asked = topic | {"assignments": [], "configs": []}
    made = {"name": "t", "error_code": 0, "error_message": None}
    pair = request(create, 4, 1, topics=[asked]), response(create, 4, 1, topics=[made])
    exchange(connection, *pair)
    for number in range(3):
        body = request(PRODUCE, 9, number, **produce(None, records()), acks=1)
        exchange(connection, body, answered_in(9, number, {"index": 0, "base_offset": number}))
    refused = made | {"error_code": 38, "error_message": "3 replicas\x1b, 1 broker."}
    answers = {"CreateTopics": lambda _: {"topics": [refused]}, "Produce": refusing(UNKNOWN)}
    played = at_script(saved(tmp_path, wire), answers, PlayOptions(timeout_s=60))
    assert [each.api for each in played.requests] == ["CreateTopics", *["Produce"] * 3]
    assert notices(played) == [
        "the target does not create topic 't' (INVALID_REPLICATION_FACTOR: 3 replicas\\x1b, "
        "1 broker); requests for it are not retried"
    ]
