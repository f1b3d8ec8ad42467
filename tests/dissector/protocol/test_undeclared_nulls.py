from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from dissector.protocol.messages import decode_request, decode_response
from dissector.protocol.undeclared_nulls import has_undeclared_null, readable_body
from tests.default_frames import request, response

METADATA, JOIN_GROUP, OFFSET_COMMIT, FIND_COORDINATOR = 3, 11, 8, 10

COMMIT = {"partition_index": 0, "committed_offset": 1, "committed_metadata": None}

TOPIC = {"error_code": 0, "name": None, "topic_id": UUID(int=1), "partitions": []}


@pytest.mark.parametrize(
    ("key", "version", "values"),
    [
        (FIND_COORDINATOR, 2, {"key": None}),
        (FIND_COORDINATOR, 4, {"coordinator_keys": None}),
        (FIND_COORDINATOR, 4, {"coordinator_keys": ["a", None]}),
        (JOIN_GROUP, 5, {"protocols": None}),
        (JOIN_GROUP, 5, {"protocols": [{"name": "range", "metadata": None}]}),
        (OFFSET_COMMIT, 2, {"topics": [{"name": "t", "partitions": None}]}),
    ],
)
def test_a_null_in_a_non_nullable_field(key: int, version: int, values: dict[str, Any]) -> None:
    message = decode_request(request(key, version, 1, **values)[4:])
    assert message.body is not None
    assert has_undeclared_null(message)
    assert readable_body(message) is None


@pytest.mark.parametrize(
    ("key", "version", "values"),
    [
        (METADATA, 1, {"topics": None}),
        (JOIN_GROUP, 5, {"group_instance_id": None}),
        (OFFSET_COMMIT, 2, {"topics": [{"name": "t", "partitions": [COMMIT]}]}),
        (FIND_COORDINATOR, 4, {"coordinator_keys": []}),
    ],
)
def test_a_null_in_a_nullable_field(key: int, version: int, values: dict[str, Any]) -> None:
    message = decode_request(request(key, version, 1, **values)[4:])
    assert not has_undeclared_null(message)
    assert readable_body(message) is message.body


def test_nullable_in_some_versions_only() -> None:
    frame = response(METADATA, 9, 1, topics=[TOPIC])[4:]
    assert has_undeclared_null(decode_response(frame, METADATA, 9))
    frame = response(METADATA, 12, 1, topics=[TOPIC])[4:]
    assert not has_undeclared_null(decode_response(frame, METADATA, 12))


def test_without_a_body() -> None:
    assert readable_body(None) is None
    assert readable_body(decode_request(request(METADATA, 9, 1)[4:-1])) is None
