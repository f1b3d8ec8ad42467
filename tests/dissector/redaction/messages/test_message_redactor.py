"""Messages of every API and version keep their structure and lose their contents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from dissector.protocol.api import Api
from dissector.protocol.field_roles import ValueKind
from dissector.protocol.messages import Message, decode_request, decode_response
from dissector.protocol.records import Record, iter_records, new_batch, parse_records
from dissector.protocol.schema import Field
from dissector.protocol.spans import Span, spans
from dissector.redaction.messages.message_redactor import MessageRedactor
from dissector.redaction.messages.sasl import redact_token
from dissector.redaction.messages.values import ValueRedactor
from dissector.redaction.pseudonyms.pseudonyms import Pseudonyms
from tests import default_frames
from tests.dissector.cli import cli_traffic
from tests.value_sources import Source, Version, every_api, go_through, versions


def redactor() -> MessageRedactor:
    return MessageRedactor(ValueRedactor(Pseudonyms(b"a key of the test")), lambda topic_id: None)


def message_of(version: Version, source: Source, *, unknown: bool = True) -> tuple[bytes, Message]:
    values = source.value(version.schema, version.version, unknown)
    make = default_frames.request if version.kind == "request" else default_frames.response
    head = ("client-of-acme",) if version.kind == "request" else ()
    frame = make(version.key, version.version, 7, *head, **values)[4:]
    return frame, decoded(version, frame)


def decoded(version: Version, frame: bytes) -> Message:
    if version.kind == "request":
        return decode_request(frame)
    return decode_response(frame, version.key, version.version)


def shape(span: Span) -> Iterator[tuple[str, int, int]]:
    """Yield the span of each field, without its content."""
    yield span.path, span.start, span.end
    for each in span.children:
        yield from shape(each)


def tree(message: Message) -> Span:
    assert message.schema is not None
    return spans(message.schema, message.api_version or 0, message.frame, message.body_start)


def contents(span: Span, declared: Field | None = None) -> Iterator[tuple[str, Any]]:
    if not span.children and isinstance(span.value, str | bytes | UUID):
        yield span.path, span.value
    for each in span.children:
        yield from contents(each)


@pytest.mark.thinned(3)
@every_api
def test_structure_is_kept_and_contents_are_replaced(found: Api) -> None:
    def check(version: Version, source: Source) -> None:
        frame, message = message_of(version, source)
        new = decoded(version, redactor().redact(message))
        assert len(new.frame) == len(frame)
        assert b"client-of-acme" not in new.frame
        assert [str(each) for each in new.problems] == [str(each) for each in message.problems]
        if message.body is None:
            return
        assert list(shape(tree(new))) == list(shape(tree(message)))
        for (path, old), (_, now) in zip(contents(tree(message)), contents(tree(new)), strict=True):
            size = len(old.bytes if isinstance(old, UUID) else old)
            if size >= 8 and not _is_zero(old):
                assert old != now, path

    go_through(versions(found), check)


def _is_zero(value: Any) -> bool:
    data = value.bytes if isinstance(value, UUID) else value
    return not any(data[:15]) if isinstance(data, bytes) else False


@pytest.mark.thinned(3)
@every_api
def test_damaged_messages_keep_their_size_only(found: Api) -> None:
    def check(version: Version, source: Source) -> None:
        frame, message = message_of(version, source)
        damaged = source.damaged(frame, keep=4 if version.kind == "request" else 0)
        before = decoded(version, damaged)
        new = redactor().redact(before)
        assert len(new) == len(damaged)
        assert (decoded(version, new).body is None) == (before.body is None)
        if message.body is None:
            return
        for path, old in contents(tree(message)):
            is_text = isinstance(old, str)
            data = old.encode(errors="surrogateescape") if is_text else getattr(old, "bytes", old)
            assert _is_zero(old) or len(data) < 8 or data not in new, path

    go_through(versions(found), check)


def test_bytes_after_a_damaged_field_are_constant() -> None:
    """Not zero: then the message would be one that can be decoded."""
    frame = cli_traffic.malformed_heartbeat(6)[4:]
    new = redactor().redact(decode_request(frame))
    at = frame.index(b"\x7fg")
    assert new[at:] == b"\x7f" * (len(frame) - at)
    assert decode_request(new).body is None


@pytest.mark.parametrize(("key", "version", "filler"), [(999, 0, b"\0"), (12, 99, b"\x7f")])
def test_bodies_of_unknown_apis_and_versions_are_constant(
    key: int, version: int, filler: bytes
) -> None:
    """Zeros, unless the newest known version could read them."""
    head = key.to_bytes(2, "big") + version.to_bytes(2, "big") + (5).to_bytes(4, "big")
    frame = head + b"\x00\x04acme" + b"secret of acme" * 3
    new = redactor().redact(decode_request(frame))
    assert new[:8] == head
    assert b"acme" not in new
    assert new[30:] == filler * (len(frame) - 30)


def test_a_header_with_damaged_tags_keeps_its_fields() -> None:
    """The size of its client id shows that the connection is Kafka's."""
    frame = default_frames.request(18, 4, 7, "client-of-acme")[4:]
    tags = 8 + 2 + len("client-of-acme")
    assert frame[tags] == 0
    new = redactor().redact(decode_request(frame[:tags] + b"\x12ac" + frame[tags + 3 :]))
    found = decode_request(new)
    assert (found.api_key, found.api_version, found.correlation_id) == (18, 4, 7)
    assert new[8:10] == frame[8:10]
    assert b"acme" not in new
    assert new[tags:] == new[tags : tags + 1] * (len(frame) - tags)


def test_an_orphan_keeps_its_correlation_id_only() -> None:
    frame = (5).to_bytes(4, "big") + b"secret of acme"
    assert redactor().redact(decode_response(frame, None, None)) == frame[:4] + bytes(14)


def test_settings_and_their_values() -> None:
    configs = [
        {"name": "retention.ms", "value": "604800000"},
        {"name": "retention.ms", "value": "acme-value"},
        {"name": "acme.setting", "value": "12345678"},
        {"name": "ssl.keystore.password", "value": "12345678"},
    ]
    resources = [{"resource_type": 4, "resource_name": "17", "configs": configs}]
    frame = cli_traffic.request_frame(33, 2, 1, resources=[_resource(resources[0])])[4:]
    new = decode_request(redactor().redact(decode_request(frame)))
    assert new.body is not None
    [resource] = new.body.resources
    assert resource.resource_name == "17"
    values = [each.value for each in resource.configs]
    assert values[0] == "604800000"
    assert not {"acme-value", "12345678"} & set(values)
    assert [each.name for each in resource.configs][:1] == ["retention.ms"]


def test_secrets_are_not_kept() -> None:
    values = ValueRedactor(
        Pseudonyms(b"a key of the test"), [ValueKind.CONFIG, ValueKind.ERROR_TEXT]
    )
    assert values.text(ValueKind.CONFIG, "acme", {"name": "acme.setting"}) == "acme"
    assert values.text(ValueKind.SETTING, "acme.setting", {}) == "acme.setting"
    assert values.text(ValueKind.CONFIG, "acme", {"name": "ssl.keystore.password"}) != "acme"
    url = "https://acme:wonderland@host/"
    assert values.text(ValueKind.ERROR_TEXT, url, {}) != url


def test_bytes_of_tokens_become_noise() -> None:
    frame = cli_traffic.request_frame(39, 1, 2, hmac=b"secret of acme", renew_period_ms=5)[4:]
    new = decode_request(redactor().redact(decode_request(frame)))
    assert new.body is not None
    assert new.body.hmac == Pseudonyms(b"a key of the test").noise(b"secret of acme")
    assert new.body.renew_period_ms == 5


def test_records_of_own_topics_keep_their_structure() -> None:
    """The commit of an offset: only the names of group and topic, and its metadata, are others."""
    key = b"\0\x01" + b"\0\x0aacme-group" + b"\0\x0bacme-orders" + b"\0\0\0\x05"
    value = b"\0\x03" + (42).to_bytes(8, "big") + b"\0\0\0\x07" + b"\0\x04acme" + bytes(8)
    records = new_batch([Record(key=key, value=value)]).to_bytes()
    topic = {"name": "__consumer_offsets", "partition_data": [{"index": 0, "records": records}]}
    frame = cli_traffic.request_frame(0, 9, 2, topic_data=[topic])[4:]
    new = decode_request(redactor().redact(decode_request(frame)))
    assert new.body is not None
    [topic] = new.body.topic_data
    assert topic["name"] == "__consumer_offsets"
    [row] = iter_records(parse_records(topic["partition_data"][0].records))
    names = ValueRedactor(Pseudonyms(b"a key of the test"))
    group = names.text(ValueKind.GROUP, "acme-group", {}).encode()
    orders = names.text(ValueKind.TOPIC, "acme-orders", {}).encode()
    assert row.key == key.replace(b"acme-group", group).replace(b"acme-orders", orders)
    assert row.value is not None
    assert (row.value[:16], row.value[-8:]) == (value[:16], value[-8:])
    assert b"acme" not in row.value


def _resource(values: dict[str, Any]) -> dict[str, Any]:
    return values


@pytest.mark.parametrize(
    ("token", "from_client"),
    [
        (b"\0alice\0wonderland", True),
        (b"n,,n=alice,r=rOprNGfwEbeRWgbNEkqO", True),
        (b"r=rOprNGfwEbeRWgbNEkqO123,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", False),
        (b"c=biws,r=rOprNGfwEbeRWgbNEkqO123,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=", True),
        (b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=", False),
        (b"n,a=alice,\x01auth=Bearer eyJhbGciOi\x01\x01", True),
        (b'{"status":"invalid_token"}', False),
    ],
)
def test_tokens_keep_their_structure(token: bytes, from_client: bool) -> None:
    from dissector.protocol.embedded.sasl_tokens import decode_token

    new = redactor().token(token, None, from_client=from_client)
    assert len(new) == len(token)
    assert decode_token(new, None, from_client).step == decode_token(token, None, from_client).step
    assert decode_token(new, None, from_client).step
    for secret in (b"alice", b"wonderland", b"rOprNG", b"W22ZaJ", b"v0X8", b"rmF9", b"eyJh"):
        assert secret not in new


def test_server_nonces_begin_with_the_client_nonce() -> None:
    one = redactor().token(b"n,,n=bob,r=abcdefgh", None, from_client=True)
    two = redactor().token(b"r=abcdefgh1234,s=QUJD,i=1", None, from_client=False)
    assert two.startswith(b"r=" + one.partition(b"r=")[2])


def test_unknown_tokens_are_zero() -> None:
    assert redactor().token(b"\x60secret", "GSSAPI", from_client=True) == bytes(7)


def test_a_token_with_invalid_base64_becomes_letters() -> None:
    values = ValueRedactor(Pseudonyms(b"a key of the test"))
    for proof in ("YWJj", "YWJj*", "YW*Jj", "*"):
        token = f"c=biws,r=abc,p={proof}".encode()
        new = redact_token(values, token, "SCRAM-SHA-256", from_client=True)
        assert (len(new), new[:9]) == (len(token), b"c=biws,r=")
        assert new[-len(proof) :] != proof.encode()
