"""Frames are decoded as messages, whatever their bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.errors import Problem
from dissector.protocol.apis import api, api_name
from dissector.protocol.expected_response import expects_response
from dissector.protocol.messages import Message, decode_request, decode_response
from tests.example_counts import examples


def frame_of(key: int, version: int, body: bytes, client_id: str | None = "c") -> bytes:
    """Put a request header with correlation id 7 before a body."""
    found = api(key)
    flexible = found is not None and version in found.request.flexible
    name = b"\xff\xff" if client_id is None else len(client_id).to_bytes(2, "big")
    name += (client_id or "").encode()
    shared = key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True) + b"\0\0\0\7"
    return shared + name + (b"\0" if flexible else b"") + body


def body_of(key: int, version: int, kind: Any, value: dict[str, Any]) -> bytes:
    found = api(key)
    assert found is not None
    return found.schema(kind).codec(version).build(value)


METADATA = body_of(3, 4, "request", {"topics": [{"name": "a"}], "allow_auto_topic_creation": True})


def test_request() -> None:
    frame = frame_of(3, 4, METADATA, "rdkafka")
    message = decode_request(frame)
    assert (message.kind, message.api_key, message.api_version) == ("request", 3, 4)
    assert (message.api, message.correlation_id, message.client_id) == ("Metadata", 7, "rdkafka")
    assert message.frame == frame
    assert message.size == len(frame)
    assert message.body == {"topics": [{"name": "a"}], "allow_auto_topic_creation": True}
    assert (message.body_start, message.body_end) == (17, len(frame))
    assert message.problems == []
    assert message.schema is api(3).request  # type: ignore[union-attr]


def test_response() -> None:
    frame = bytes.fromhex("00000009 00") + body_of(
        12, 4, "response", {"throttle_time_ms": 1, "error_code": 27}
    )
    message = decode_response(frame, 12, 4)
    assert (message.kind, message.api_key, message.api_version) == ("response", 12, 4)
    assert (message.api, message.correlation_id, message.client_id) == ("Heartbeat", 9, None)
    assert message.body == {"throttle_time_ms": 1, "error_code": 27}
    assert (message.body_start, message.body_end) == (5, len(frame))
    assert message.problems == []
    assert message.schema is api(12).response  # type: ignore[union-attr]


def test_no_client_id() -> None:
    assert decode_request(frame_of(3, 4, METADATA, None)).client_id is None
    assert decode_request(frame_of(3, 4, METADATA, "")).client_id == ""


def test_the_header_of_controlled_shutdown_v0_has_no_client_id() -> None:
    message = decode_request(bytes.fromhex("0007 0000 00000003 00000005"))
    assert (message.client_id, message.body_start) == (None, 8)
    assert message.body == {"broker_id": 5}


def test_unknown_tags_of_a_header_are_skipped() -> None:
    frame = bytes.fromhex("000c 0004 00000001 ffff 01 050161") + body_of(
        12, 4, "request", {"group_id": "g", "generation_id": 1, "member_id": "m"}
    )
    message = decode_request(frame)
    assert message.body is not None
    assert message.body.group_id == "g"
    assert message.body_start == 14
    assert message.problems == []


@pytest.mark.parametrize(
    ("key", "version", "api", "what"),
    [
        (999, 0, "api 999", "api 999 is not known"),
        (-1, 0, "api -1", "api -1 is not known"),
        (95, 3, "api 95", "api 95 is not known"),
        (0, 14, "Produce", "version 14 of Produce is not known (known: 0-13)"),
        (0, -1, "Produce", "version -1 of Produce is not known (known: 0-13)"),
        (75, 1, "DescribeTopicPartitions", "version 1 of DescribeTopicPartitions is not known"),
    ],
)
def test_unknown_apis_and_versions(key: int, version: int, api: str, what: str) -> None:
    shared = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    message = decode_request(shared + bytes.fromhex("00000007 000163 00 0102"))
    assert (message.api_key, message.api_version, message.correlation_id) == (key, version, 7)
    assert (message.api, message.client_id) == (api, "c")
    assert message.body is None
    assert message.schema is None
    (problem,) = message.problems
    assert problem.what.startswith(what)
    assert (problem.path, problem.position) == ("request", message.body_start)

    answer = decode_response(bytes.fromhex("00000007 00 0102"), key, version)
    assert answer.correlation_id == 7
    assert answer.body is None
    assert answer.problems[0].what.startswith(what)
    assert answer.problems[0].path == "response"


def test_bytes_left_over() -> None:
    frame = frame_of(3, 4, METADATA)
    message = decode_request(frame + b"\1\2\3")
    assert message.body == decode_request(frame).body
    assert message.body_end == len(frame)
    what = "3 bytes are left over after the body"
    assert message.problems == [Problem(what, "request", len(frame))]

    answer = decode_response(bytes.fromhex("00000001 0000 ff"), 12, 0)
    assert answer.body == {"error_code": 0}
    what = "1 bytes are left over after the body"
    assert answer.problems == [Problem(what, "response", 6)]


REQUEST = frame_of(3, 9, body_of(3, 9, "request", {
    "topics": [{"name": "orders"}],
    "allow_auto_topic_creation": True,
    "include_cluster_authorized_operations": False,
    "include_topic_authorized_operations": False,
}), "rdk")  # fmt: skip


@pytest.mark.parametrize("end", range(len(REQUEST)))
def test_a_truncated_request(end: int) -> None:
    message = decode_request(REQUEST[:end])
    (problem,) = message.problems
    assert message.body is None
    assert 0 <= (problem.position or 0) <= end
    assert problem.path.startswith("request")
    if end < 8:
        assert problem.what == f"a request header has at least 8 bytes, but only {end} are there"
        assert problem.path == "request.header"
        assert message.api_key is message.correlation_id is message.api is None
        return
    assert (message.api, message.api_version, message.correlation_id) == ("Metadata", 9, 7)
    if end < 14:
        assert problem.path.startswith("request.header")
        assert message.client_id is None
    else:
        assert problem.what.startswith("Metadata v9: ")
        assert (message.client_id, message.body_start) == ("rdk", 14)


RESPONSE = bytes.fromhex("00000009 00 00000000 001b 00")


@pytest.mark.parametrize("end", range(len(RESPONSE)))
def test_a_truncated_response(end: int) -> None:
    message = decode_response(RESPONSE[:end], 12, 4)
    (problem,) = message.problems
    assert message.body is None
    assert 0 <= (problem.position or 0) <= end
    if end < 4:
        assert message.correlation_id is None
        what = f"a response header has at least 4 bytes, but only {end} are there"
        assert problem == Problem(what, "response.header", 0)
    else:
        assert message.correlation_id == 9
        assert problem.path.startswith("response")


def test_a_truncated_tag_section_of_a_header() -> None:
    (problem,) = decode_response(RESPONSE[:4], 12, 4).problems
    assert problem == Problem("1 bytes expected, 0 left", "response.header", 4)
    (problem,) = decode_request(REQUEST[:13]).problems
    assert problem == Problem("1 bytes expected, 0 left", "request.header", 13)


@pytest.mark.parametrize("end", range(8, len(REQUEST)))
def test_uncaptured_bytes_of_a_request(end: int) -> None:
    """The body is not decoded if the capture lacks bytes, as the message may be valid."""
    message = decode_request(REQUEST[:end], len(REQUEST))
    assert message.size == len(REQUEST)
    assert message.correlation_id == 7
    assert message.body is None
    (problem,) = message.problems
    if end >= 14:
        missing = len(REQUEST) - end
        assert problem == Problem(
            f"{missing} bytes of the request were not captured", "request", end
        )


def test_uncaptured_bytes_of_a_response() -> None:
    message = decode_response(bytes.fromhex("00000009 00 0000"), 12, 4, 12)
    assert message.correlation_id == 9
    what = "5 bytes of the response were not captured"
    assert message.problems == [Problem(what, "response", 7)]


def test_an_orphan_has_a_header_only() -> None:
    message = decode_response(bytes.fromhex("0000002a 0001 0203"), None, None)
    assert message.correlation_id == 42
    assert message.api_key is message.api is message.body is message.schema is None
    assert (message.body_start, message.body_end) == (4, 4)
    assert message.problems == []


def test_an_undecodable_body_keeps_its_header() -> None:
    frame = frame_of(3, 4, bytes.fromhex("00000001 0009 61"))
    message = decode_request(frame)
    assert (message.api, message.client_id, message.correlation_id) == ("Metadata", "c", 7)
    assert message.body is None
    assert message.body_end == message.body_start == 11
    what = "Metadata v4: length 9 but 1 bytes are left in the message"
    assert message.problems == [Problem(what, "request.topics[0].name", 15)]


@pytest.mark.parametrize(
    ("client_id", "what"),
    [
        ("0009 61", "length 9 but 1 bytes are left in the message"),
        ("fff0", "length -16 is negative"),
        ("00", "2 bytes expected, 1 left"),
    ],
)
def test_a_bad_client_id(client_id: str, what: str) -> None:
    message = decode_request(bytes.fromhex("0003 0004 00000007" + client_id))
    assert (message.api, message.api_version, message.correlation_id) == ("Metadata", 4, 7)
    assert message.client_id is message.body is None
    assert message.problems == [Problem(what, "request.header.client_id", 8)]


def test_a_client_id_with_invalid_utf8_is_preserved() -> None:
    message = decode_request(bytes.fromhex("0012 0000 00000007 0002 61ff"))
    assert message.client_id == "a\udcff"
    assert message.problems == []


REFUSED_V0 = "00000001 0023 00000001 0012 0000 0003"


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 99])
def test_a_refused_api_versions_is_answered_in_v0(version: int) -> None:
    message = decode_response(bytes.fromhex(REFUSED_V0), 18, version)
    assert message.api_version == 0
    assert message.body == {
        "error_code": 35,
        "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 3}],
    }
    assert message.problems == []


def test_a_refusal_in_the_requested_version() -> None:
    value = {"error_code": 35, "api_keys": [], "throttle_time_ms": 9}
    message = decode_response(b"\0\0\0\1" + body_of(18, 3, "response", value), 18, 3)
    assert message.api_version == 3
    assert message.body is not None
    assert message.body.throttle_time_ms == 9
    assert message.problems == []


def test_a_refusal_undecodable_in_any_version() -> None:
    message = decode_response(bytes.fromhex("00000001 0023 7fffffff"), 18, 3)
    assert message.api_version == 0
    assert message.body is None
    (problem,) = message.problems
    assert problem.what.startswith("ApiVersions v0: count 2147483647")
    assert (problem.path, problem.position) == ("response.api_keys", 6)


def test_other_errors_of_api_versions_keep_their_version() -> None:
    value = {"error_code": 42, "api_keys": [], "throttle_time_ms": 9}
    message = decode_response(b"\0\0\0\1" + body_of(18, 3, "response", value), 18, 3)
    assert message.api_version == 3
    assert message.body is not None
    assert message.problems == []


def test_error_35_of_another_api_is_only_an_error() -> None:
    message = decode_response(bytes.fromhex("00000001 0023"), 12, 0)
    assert (message.api_version, message.body) == (0, {"error_code": 35})


PRODUCES = [
    (version, acks, transactional_id)
    for version in range(14)
    for acks in (0, 1, -1)
    for transactional_id in ((None, "tx") if version >= 3 else (None,))
]


def _produce(version: int, acks: int, transactional_id: str | None, timeout_ms: int) -> bytes:
    value: dict[str, Any] = {"acks": acks, "timeout_ms": timeout_ms, "topic_data": []}
    if version >= 3:
        value["transactional_id"] = transactional_id
    return frame_of(0, version, body_of(0, version, "request", value))


@pytest.mark.parametrize(("version", "acks", "transactional_id"), PRODUCES)
def test_expects_response(version: int, acks: int, transactional_id: str | None) -> None:
    frame = _produce(version, acks, transactional_id, 30_000)
    assert expects_response(frame) == (acks != 0)
    # Only the bytes up to acks are read; if truncated, a response is expected.
    after_acks = len(frame) - len(_tail(version))
    assert expects_response(frame[:after_acks] + b"\0" * 8) == (acks != 0)
    for end in range(after_acks):
        assert expects_response(frame[:end])


def _tail(version: int) -> bytes:
    """Return what follows acks in an empty Produce: timeout, no topics, no tags."""
    return b"\0\0\x75\x30" + (b"\1\0" if version >= 9 else b"\0\0\0\0")


@pytest.mark.parametrize("version", [0, 8, 9, 12, 13])
def test_bytes_after_acks_do_not_matter(version: int) -> None:
    frame = _produce(version, 0, None, 2**31 - 1)
    assert not expects_response(frame)
    assert not expects_response(frame[: len(frame) - len(_tail(version))])


@pytest.mark.parametrize("frame", ["", "00", "0000", "0000 000e 00000001 ffff 00 00 0000"])
def test_unknown_produce_versions_expect_a_response(frame: str) -> None:
    assert expects_response(bytes.fromhex(frame))


@pytest.mark.parametrize("key", [1, 3, 7, 18, 999])
def test_every_other_request_expects_a_response(key: int) -> None:
    assert expects_response(frame_of(key, 0, b"\0" * 12))


@given(st.binary(max_size=80), st.integers(-2, 100), st.integers(-2, 15), st.integers(0, 100))
@settings(max_examples=examples(300), deadline=None)
def test_any_bytes(data: bytes, key: int, version: int, more: int) -> None:
    """Frames of random bytes give a message, with a problem if there is no body."""
    shared = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    for message in (
        decode_request(data, len(data) + more),
        decode_request(shared + data),
        decode_response(data, key, version),
        decode_response(data, key, version, len(data) + more),
    ):
        _is_consistent(message)
    assert isinstance(expects_response(data), bool)
    assert isinstance(expects_response(b"\0\0" + shared[2:] + data), bool)


def _is_consistent(message: Message) -> None:
    assert message.body is not None or message.problems
    assert 0 <= message.body_start <= message.body_end <= len(message.frame)
    for problem in message.problems:
        assert problem.path.startswith(message.kind)
        assert problem.position is not None
        assert 0 <= problem.position <= len(message.frame)
        assert "\n" not in str(problem)


# ---- bytes that real clients and brokers sent ----------------------------------------------------

EDITED = {
    # The body begins with the empty tag section of the header.
    "TestExtractMetadataReqV11": 1,
}


def test_real_bytes(shared: Path) -> None:
    vectors = json.loads((shared / "captures/pixie__kafka_test_vectors.json").read_text())
    full = bodies = 0
    for vector in vectors:
        data = bytes.fromhex(vector["hex"])
        key, version, kind = vector["api_key"], vector["api_version"], vector["kind"]
        found = api(key)
        assert found is not None
        codec = found.schema(kind).codec(version)
        if vector["full_frame"]:
            size = int.from_bytes(data[:4], "big")
            frame = data[4:]
            if kind == "request":
                message = decode_request(frame, size)
            else:
                message = decode_response(frame, key, version, size)
            assert (message.api, message.api_version) == (api_name(key), version)
            assert message.problems == [], vector["name"]
            assert codec.build(message.body) == frame[message.body_start :], vector["name"]
            full += 1
        else:
            data = data[EDITED.get(vector["name"], 0) :]
            assert codec.build(codec.parse(data)) == data, vector["name"]
            bodies += 1
    assert (full, bodies) == (6, 20)
