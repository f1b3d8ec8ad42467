"""Responses to the parts of a request are merged; `test_router` draws random parts."""

from __future__ import annotations

from construct import Container

from cluster.client.fan_in import merge
from dissector.protocol.apis import KEYS, api
from tests.replay.support.scripted_broker import filled

FETCH = api(KEYS["Fetch"])
assert FETCH is not None


def test_a_merged_response_has_each_topic_once() -> None:
    first = answer(topics={"a": [0], "b": [1]}, throttle=5, session=70)
    second = answer(topics={"a": [2], "c": [0]}, throttle=9, session=80, error=71)
    merged = merge(FETCH.response, 12, [first, second])
    assert [
        (each.topic, [each.partition_index for each in each.partitions])
        for each in merged.responses
    ] == [("a", [0, 2]), ("b", [1]), ("c", [0])]
    assert merged.throttle_time_ms == 9
    assert merged.session_id == 70
    assert merged.error_code == 71
    assert len(first.responses) == 2


def answer(
    topics: dict[str, list[int]], throttle: int = 0, session: int = 0, error: int = 0
) -> Container:
    body = {
        "throttle_time_ms": throttle,
        "session_id": session,
        "error_code": error,
        "responses": [
            {"topic": name, "partitions": [Container(partition_index=each) for each in partitions]}
            for name, partitions in topics.items()
        ],
    }
    return filled(FETCH.response.fields, 12, body)


def test_duplicates_within_one_response_are_kept() -> None:
    one = answer(topics={"a": [0, 0]})
    merged = merge(FETCH.response, 12, [one, answer(topics={"b": [0]})])
    assert [len(each.partitions) for each in merged.responses] == [2, 1]
    assert merge(FETCH.response, 12, [one]) is one


def test_parts_of_a_request_can_be_merged() -> None:
    produce = api(KEYS["Produce"])
    assert produce is not None
    parts = [
        filled(produce.request.fields, 9, {"topic_data": [{"name": "a", "partition_data": [each]}]})
        for each in (Container(index=1, records=b"x"), Container(index=0, records=b"y"))
    ]
    whole = merge(produce.request, 9, parts)
    assert [each.records for each in whole.topic_data[0].partition_data] == [b"x", b"y"]
