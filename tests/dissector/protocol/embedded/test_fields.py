"""Contents of bytes fields of messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dissector.protocol.api import Kind
from dissector.protocol.apis import api
from dissector.protocol.embedded.fields import READERS, decode_field, read_embedded
from dissector.protocol.embedded.principal import DefaultPrincipalData
from dissector.protocol.embedded.reading import Embedded
from dissector.protocol.headers import request_header_version
from dissector.protocol.messages import Message, decode_request, decode_response
from tests.example_counts import examples
from tests.message_strategies import values

SUBSCRIPTION = bytes.fromhex("0000 00000001 0001 74 ffffffff")
ASSIGNMENT = bytes.fromhex("0000 00000001 0001 74 00000001 00000000 ffffffff")
TOPICS = {"topics": ["t"], "user_data": None}
ASSIGNED = {"assigned_partitions": [{"topic": "t", "partitions": [0]}], "user_data": None}


def request(key: int, version: int, body: dict[str, Any]) -> Message:
    """Build a request and read it back."""
    return decode_request(request_frame(key, version, body))


def request_frame(key: int, version: int, body: dict[str, Any]) -> bytes:
    header = key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\7\xff\xff"
    if request_header_version(key, version) == 2:
        header += b"\0"
    return header + api(key).request.codec(version).build(body)  # type: ignore[union-attr]


def response(key: int, version: int, body: dict[str, Any]) -> Message:
    """Build a response and read it back."""
    return decode_response(response_frame(key, version, body), key, version)


def response_frame(key: int, version: int, body: dict[str, Any]) -> bytes:
    schema = api(key).response  # type: ignore[union-attr]
    header = b"\0\0\0\7" + (b"\0" if version in schema.flexible and key != 18 else b"")
    return header + schema.codec(version).build({"throttle_time_ms": 0, **body})


def join_request(version: int, protocol_type: str = "consumer") -> Message:
    return request(
        11,
        version,
        {
            "group_id": "g",
            "session_timeout_ms": 1,
            "member_id": "",
            "protocol_type": protocol_type,
            "protocols": [
                {"name": "range", "metadata": SUBSCRIPTION},
                {"name": "sticky", "metadata": SUBSCRIPTION},
            ],
        },
    )


def join_response(version: int, metadata: bytes = SUBSCRIPTION) -> Message:
    members = [{"member_id": "m", "metadata": metadata}]
    body = {"error_code": 0, "protocol_name": "range", "leader": "m", "member_id": "m"}
    if version >= 7:
        body["protocol_type"] = "consumer"
    return response(11, version, {**body, "members": members})


def seen(found: list[Embedded]) -> list[tuple[str, str, Any]]:
    return [(each.path, each.name, each.value) for each in found]


@pytest.mark.parametrize("version", range(10))
def test_join_group(version: int) -> None:
    join = join_request(version)
    assert not join.problems
    assert seen(read_embedded(join)) == [
        ("protocols[0].metadata", "ConsumerProtocolSubscription", TOPICS),
        ("protocols[1].metadata", "ConsumerProtocolSubscription", TOPICS),
    ]
    answered = join_response(version)
    assert seen(read_embedded(answered)) == [
        ("members[0].metadata", "ConsumerProtocolSubscription", TOPICS)
    ]


def test_the_protocol_type_of_a_response_comes_from_its_request() -> None:
    answered = join_response(2, SUBSCRIPTION + b"x")
    assert read_embedded(answered) == []
    (found,) = read_embedded(answered, request=join_request(2))
    assert found.value == TOPICS
    assert len(found.problems) == 1
    assert read_embedded(answered, request=join_request(2, "sr")) == []


@pytest.mark.parametrize("version", range(6))
def test_sync_group(version: int) -> None:
    sync = request(
        14,
        version,
        {
            "group_id": "g",
            "generation_id": 1,
            "member_id": "m",
            "protocol_type": "consumer",
            "assignments": [{"member_id": "m", "assignment": ASSIGNMENT}],
        },
    )
    assert seen(read_embedded(sync)) == [
        ("assignments[0].assignment", "ConsumerProtocolAssignment", ASSIGNED)
    ]
    answered = response(14, version, {"error_code": 0, "assignment": ASSIGNMENT})
    assert seen(read_embedded(answered)) == [("assignment", "ConsumerProtocolAssignment", ASSIGNED)]
    refused = response(14, version, {"error_code": 27, "assignment": b""})
    assert read_embedded(refused) == []


@pytest.mark.parametrize("version", range(7))
def test_describe_groups(version: int) -> None:
    member = {
        "member_id": "m",
        "client_id": "c",
        "client_host": "/h",
        "member_metadata": SUBSCRIPTION,
        "member_assignment": ASSIGNMENT,
    }
    group = {"error_code": 0, "group_id": "g", "group_state": "Stable", "protocol_data": "range"}
    answered = response(
        15,
        version,
        {
            "groups": [
                {**group, "protocol_type": "sr", "members": [member]},
                {**group, "protocol_type": "consumer", "members": [member]},
            ]
        },
    )
    assert seen(read_embedded(answered)) == [
        ("groups[1].members[0].member_metadata", "ConsumerProtocolSubscription", TOPICS),
        ("groups[1].members[0].member_assignment", "ConsumerProtocolAssignment", ASSIGNED),
    ]


def envelope(inner: bytes, principal: bytes | None = None, host: bytes = b"\x0a\0\0\1") -> Message:
    body = {"request_data": inner, "request_principal": principal, "client_host_address": host}
    return request(58, 0, body)


def test_an_envelope_has_request_principal_and_address() -> None:
    who = {"type": "User", "name": "alice", "token_authenticated": False}
    principal = b"\0\0" + DefaultPrincipalData.codec(0).build(who)
    inner = request_frame(20, 1, {"topic_names": ["t"], "timeout_ms": 5})
    outer = envelope(inner, principal)
    assert seen(read_embedded(outer)) == [
        ("request_data", "DeleteTopics request", {"topic_names": ["t"], "timeout_ms": 5}),
        ("request_principal", "DefaultPrincipalData", who),
        ("client_host_address", "IP address", {"address": "10.0.0.1"}),
    ]
    wrapped = read_embedded(outer)[0]
    assert wrapped.message is not None
    assert wrapped.message.correlation_id == 7
    assert wrapped.spans().value == wrapped.value  # type: ignore[union-attr]


def test_an_envelopes_response_needs_its_request() -> None:
    outer = envelope(request_frame(20, 1, {"topic_names": ["t"], "timeout_ms": 5}))
    inner = response_frame(20, 1, {"responses": [{"name": "t", "error_code": 3}]})
    answered = response(58, 0, {"response_data": inner, "error_code": 0})
    (found,) = read_embedded(answered, request=outer)
    assert found.name == "DeleteTopics response"
    assert found.value == {
        "throttle_time_ms": 0,
        "responses": [{"name": "t", "error_code": 3}],
    }
    (nameless,) = read_embedded(answered)
    assert (nameless.name, nameless.value) == ("unknown response", None)
    assert read_embedded(response(58, 0, {"response_data": None, "error_code": 1})) == []


def test_envelopes_do_not_nest() -> None:
    frame = request_frame(20, 1, {"topic_names": ["t"], "timeout_ms": 5})
    for _ in range(2000):
        body = {"request_data": frame, "request_principal": None, "client_host_address": b""}
        frame = request_frame(58, 0, body)
    (found,) = read_embedded(decode_request(frame))
    assert found.name == "Envelope request"
    assert found.inner == []
    assert found.problems[-1].what == "an Envelope inside an Envelope is not decoded"


@pytest.mark.parametrize("version", range(3))
def test_decoded_sasl_tokens_hide_the_password(version: int) -> None:
    authenticate = request(36, version, {"auth_bytes": b"\0alice\0open-sesame"})
    (found,) = read_embedded(authenticate, mechanism="PLAIN")
    assert found.value is not None
    assert (found.name, found.value.user) == ("SASL token", "alice")
    assert "open-sesame" not in repr(found)
    answered = response(36, version, {"error_code": 0, "error_message": None, "auth_bytes": b""})
    (found,) = read_embedded(answered, mechanism="PLAIN")
    assert found.value == {
        "mechanism": "PLAIN",
        "user": None,
        "step": "accepted",
        "text": "PLAIN accepted",
    }


def test_a_single_field_is_read_like_all_fields() -> None:
    join = join_request(9)
    for each in read_embedded(join):
        assert decode_field(join, each.path, each.data) == each
    assert decode_field(join, "group_id", b"x") is None
    assert decode_field(Message("response", b"", 0), "assignment", b"x") is None


@pytest.mark.parametrize(("key", "kind", "path"), list(READERS))
def test_the_table_has_bytes_fields_only(key: int, kind: Kind, path: str) -> None:
    fields = api(key).schema(kind).fields  # type: ignore[union-attr]
    for name in path.split("."):
        field = next(f for f in fields if f.name == name)
        fields = field.fields
    assert field.type == "bytes"


@pytest.mark.parametrize(("key", "kind"), sorted({(key, kind) for key, kind, _ in READERS}))
@given(data=st.data())
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
def test_any_body_is_read_without_errors(key: int, kind: Kind, data: st.DataObject) -> None:
    """Reading any field contents raises no error, and gives spans."""
    schema = api(key).schema(kind)  # type: ignore[union-attr]
    version = data.draw(st.sampled_from(list(schema.versions)))
    body = data.draw(values(schema, version))
    make = request if kind == "request" else response
    for found in read_embedded(make(key, version, body)):
        tree = found.spans()
        if tree is not None and found.message is None:
            assert bool(tree.problem) == (found.value is None)
