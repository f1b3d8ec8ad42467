"""Bodies of all versions in one version of each API."""

from __future__ import annotations

from uuid import UUID

import pytest

from dissector.protocol.apis import KEYS, all_apis
from dissector.protocol.messages import decode_request, decode_response
from serve.forms.canonical_body import (
    TopicNames,
    canonical_body,
    canonical_schema,
    canonical_version,
    is_unknown_id,
    response_frame,
    zero_body,
)
from tests import default_frames as frames

ORDERS = UUID(int=7)


def _topics() -> TopicNames:
    topics = TopicNames()
    topics.known.learn({ORDERS: "orders"})
    return topics


@pytest.mark.parametrize("version", [4, 12, 13, 17])
def test_a_fetch_of_any_version_has_its_topic_name(version: int) -> None:
    key = KEYS["Fetch"]
    partition = {"partition": 1, "fetch_offset": 5, "partition_max_bytes": 9}
    partition |= {"current_leader_epoch": -1, "last_fetched_epoch": -1, "log_start_offset": -1}
    topic = {"topic": "orders", "topic_id": ORDERS, "partitions": [partition]}
    data = frames.request(key, version, 1, topics=[topic])
    body = canonical_body(decode_request(data[4:]), _topics())
    assert canonical_version(key) == 12
    assert [each.topic for each in body.topics] == ["orders"]
    assert body.topics[0].partitions[0].fetch_offset == 5


def test_an_unknown_topic_id_has_a_unique_name() -> None:
    topics = TopicNames()
    name = topics.topic_name(ORDERS)
    assert is_unknown_id(name)
    assert topics.topic_id(name) == ORDERS
    assert topics.topic_id("other") == UUID(int=0)


def test_old_lists_of_offsets_become_one_offset() -> None:
    key = KEYS["ListOffsets"]
    part = {"partition_index": 0, "error_code": 0, "old_style_offsets": [12, 0]}
    topic = {"name": "orders", "partitions": [part]}
    old = decode_response(frames.response(key, 0, 1, topics=[topic])[4:], key, 0)
    body = canonical_body(old, _topics())
    assert body.topics[0].partitions[0].offset == 12
    request = decode_request(frames.request(key, 0, 3)[4:])
    written = decode_response(response_frame(request, body, _topics()), key, 0)
    assert written.correlation_id == 3
    assert written.body is not None
    assert written.body.topics[0].partitions[0].old_style_offsets == [12]


@pytest.mark.parametrize("version", range(7))
def test_a_coordinator_is_found_in_every_version(version: int) -> None:
    key = KEYS["FindCoordinator"]
    request = decode_request(frames.request(key, version, 3)[4:])
    found = {"key": "g", "node_id": 1, "host": "h", "port": 2, "error_code": 0}
    body = zero_body(canonical_schema(key, "response"), canonical_version(key))
    body.coordinators = [found]
    message = decode_response(response_frame(request, body, _topics()), key, version)
    assert message.body is not None
    answer = message.body.coordinators[0] if version >= 4 else message.body
    assert (answer.node_id, answer.host, answer.port) == (1, "h", 2)


def test_every_api_has_a_canonical_version() -> None:
    for api in all_apis():
        version = canonical_version(api.key)
        assert version in api.request.versions
        assert version in api.response.versions
