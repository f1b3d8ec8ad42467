"""Secrets are masked in bodies, in records and in the ranges of a hex dump."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dissector.protocol.apis import all_apis, api
from dissector.protocol.embedded.fields import read_embedded
from dissector.protocol.embedded.log_records.cluster_metadata import (
    ConfigRecord,
    UserScramCredentialRecord,
)
from dissector.protocol.embedded.masking import (
    carries_secrets,
    is_secret_record,
    is_sensitive,
    mask,
    mask_embedded,
    mask_record,
    secret_ranges,
    secret_spans,
)
from dissector.protocol.embedded.own_topics import decode_record
from dissector.protocol.embedded.sasl_tokens import MASK
from dissector.protocol.facts import CLUSTER_METADATA
from dissector.protocol.messages import Message, decode_request, decode_response
from tests.dissector.protocol.embedded.test_fields import (
    envelope,
    request,
    request_frame,
    response,
    response_frame,
)
from tests.example_counts import examples
from tests.value_sources import Source, seeded, sources

SECRET = b"open-sesame"
TEXT = SECRET.decode()


def masked(message: Message, request: Message | None = None) -> Any:
    assert message.body is not None
    assert message.schema is not None
    assert message.api_version is not None
    return mask(message.body, message.schema, message.api_version, request)


def blanked(message: Message, request: Message | None = None) -> bytes:
    """Return the frame as a hex dump may show it."""
    frame = bytearray(message.frame)
    for start, end in secret_ranges(message, request):
        assert 0 <= start < end <= len(frame)
        frame[start:end] = bytes(end - start)
    return bytes(frame)


def scram(salt: bytes = SECRET) -> dict[str, Any]:
    upsertion = {"name": "alice", "mechanism": 1, "iterations": 4096}
    return {
        "deletions": [],
        "upsertions": [{**upsertion, "salt": salt, "salted_password": SECRET}],
    }


def config(name: str, value: str | None = TEXT, **more: object) -> dict[str, Any]:
    return {"name": name, "value": value, **more}


def alter_configs(*configs: dict[str, Any]) -> dict[str, Any]:
    resource = {"resource_type": 2, "resource_name": "t", "configs": list(configs)}
    return {"resources": [resource], "validate_only": False}


def token_body(hmac: bytes = SECRET) -> dict[str, Any]:
    times = {"issue_timestamp_ms": 0, "expiry_timestamp_ms": 0, "max_timestamp_ms": 0}
    who = {"principal_type": "User", "principal_name": "a", "token_id": "id"}
    return {"error_code": 0, **who, **times, "hmac": hmac, "throttle_time_ms": 0}


WITH_SECRETS = [
    ("request", 36, 2, {"auth_bytes": SECRET}),
    ("response", 36, 2, {"error_code": 0, "error_message": None, "auth_bytes": SECRET}),
    ("request", 51, 0, scram()),
    ("response", 38, 1, token_body()),
    ("request", 39, 1, {"hmac": SECRET, "renew_period_ms": 1}),
    ("request", 40, 1, {"hmac": SECRET, "expiry_time_period_ms": 1}),
    ("request", 33, 1, alter_configs(config("ssl.key.password"), config("sasl.jaas.config"))),
    (
        "request",
        44,
        1,
        alter_configs(config("delegation.token.secret", config_operation=0)),
    ),
    ("request", 58, 0, {"request_data": request_frame(36, 2, {"auth_bytes": SECRET})}),
    ("request", 58, 0, {"request_data": SECRET}),
    ("request", 36, 2, {"auth_bytes": b"", "unknown_tags": {9: SECRET}}),
    ("request", 51, 0, {"deletions": [], "upsertions": [], "unknown_tags": {9: SECRET}}),
]
ENVELOPE = {"request_principal": None, "client_host_address": b""}


@pytest.mark.parametrize(("kind", "key", "version", "body"), WITH_SECRETS)
def test_bodies_and_dumps_have_no_secrets(
    kind: str, key: int, version: int, body: dict[str, Any]
) -> None:
    make = request if kind == "request" else response
    message = make(key, version, body | ENVELOPE if key == 58 else body)
    assert not message.problems
    assert TEXT in repr(message.body)
    assert TEXT not in repr(masked(message))
    assert MASK in repr(masked(message))
    assert TEXT in repr(message.body), "the body itself is unchanged"
    assert SECRET in message.frame
    assert SECRET not in blanked(message)


def test_other_values_are_not_masked() -> None:
    message = request(33, 1, alter_configs(config("ssl.key.password"), config("retention.ms", "1")))
    (resource,) = masked(message).resources
    assert resource.configs == [config("ssl.key.password", MASK), config("retention.ms", "1")]
    shown = blanked(message)
    assert b"ssl.key.password" in shown
    assert b"retention.ms" in shown
    answered = response(36, 0, {"error_code": 58, "error_message": "no", "auth_bytes": None})
    assert masked(answered) == {"error_code": 58, "error_message": "no", "auth_bytes": None}


def test_a_described_entry_is_masked_with_its_synonyms() -> None:
    synonym = {"name": "listener.x", "value": TEXT, "source": 1}
    entry = config(
        "plain", read_only=False, is_sensitive=True, synonyms=[synonym], documentation=None
    )
    result = {"error_code": 0, "error_message": None, "resource_type": 4, "resource_name": "1"}
    message = response(32, 3, {"throttle_time_ms": 0, "results": [{**result, "configs": [entry]}]})
    (shown,) = masked(message).results[0].configs
    assert (shown.name, shown.value, shown.synonyms[0].value) == ("plain", MASK, MASK)
    assert shown.synonyms[0].name == "listener.x"
    assert SECRET not in blanked(message)
    for size in range(len(message.frame)):
        # The field that marks it as secret may be missing.
        cut = decode_response(message.frame[:size], 32, 3, size=len(message.frame))
        assert SECRET not in blanked(cut)


@pytest.mark.parametrize(
    ("name", "unmarked", "marked"),
    [
        ("ssl.keystore.password", True, True),
        ("listener.name.sasl_ssl.plain.sasl.jaas.config", True, True),
        ("listener.name.sasl_ssl.ssl.keystore.type", False, False),
        ("listener.name.sasl_ssl.plain.connections.max.reauth.ms", False, False),
        ("password.encoder.secret", True, True),
        ("password.encoder.iterations", False, False),
        ("ssl.keystore.key", True, True),
        ("ssl.keystore.certificate.chain", True, True),
        ("SSL.KEY.PASSWORD", True, True),
        ("my.password ", True, True),
        ("aws.access.token", True, True),
        ("confluent.basic.auth.user.info", True, True),
        ("azure.connection.string", True, True),
        ("compression.type", False, False),
        (" Compression.Type", False, False),
        ("somebody.elses.setting", True, False),
        (None, True, True),
    ],
)
def test_sensitive_names(name: str | None, unmarked: bool, marked: bool) -> None:
    assert is_sensitive(name) is unmarked
    assert is_sensitive(name, marked=True) is marked


def test_apis_with_secrets() -> None:
    carry = {
        (each.name, kind)
        for each in all_apis()
        for kind in ("request", "response")
        if carries_secrets(each.schema(kind).fields)  # type: ignore[arg-type]
    }
    assert carry == {
        ("AlterConfigs", "request"),
        ("AlterUserScramCredentials", "request"),
        ("CreateDelegationToken", "response"),
        ("CreateTopics", "request"),
        ("CreateTopics", "response"),
        ("DescribeConfigs", "response"),
        ("DescribeDelegationToken", "response"),
        ("Envelope", "request"),
        ("Envelope", "response"),
        ("ExpireDelegationToken", "request"),
        ("IncrementalAlterConfigs", "request"),
        ("PushTelemetry", "request"),
        ("RenewDelegationToken", "request"),
        ("SaslAuthenticate", "request"),
        ("SaslAuthenticate", "response"),
        ("StreamsGroupDescribe", "response"),
        ("StreamsGroupHeartbeat", "request"),
    }


def test_an_envelope_without_secrets_is_shown() -> None:
    inner = request_frame(20, 1, {"topic_names": ["t"], "timeout_ms": 5})
    outer = envelope(inner)
    assert masked(outer).request_data == inner
    answer = response_frame(20, 1, {"responses": [{"name": "t", "error_code": 3}]})
    answered = response(58, 0, {"response_data": answer, "error_code": 0})
    assert masked(answered, outer).response_data == answer
    assert secret_ranges(answered, outer) == []
    # Its request is unknown, so it may have a secret.
    assert masked(answered).response_data == MASK
    assert answer not in blanked(answered)


def test_an_envelopes_response_with_a_secret() -> None:
    outer = envelope(request_frame(38, 1, {"renewers": [], "max_lifetime_ms": 1}))
    inner = response_frame(38, 1, token_body())
    answered = response(58, 0, {"response_data": inner, "error_code": 0})
    assert masked(answered, outer).response_data == MASK
    assert SECRET not in blanked(answered, outer)


def test_embedded_values_are_masked() -> None:
    (data, _) = read_embedded(envelope(request_frame(51, 0, scram())))
    hidden = mask_embedded(data)
    assert data.value is not None
    assert data.value.upsertions[0].salt == SECRET
    assert hidden.value is not None
    assert hidden.value.upsertions[0].salt == MASK
    assert (hidden.data, hidden.message) == (b"", None)
    assert TEXT not in repr(hidden)
    (token,) = read_embedded(request(36, 1, {"auth_bytes": b"\0alice\0" + SECRET}))
    assert mask_embedded(token).data == b""
    assert mask_embedded(token).value == token.value
    (harmless, _) = read_embedded(
        envelope(request_frame(20, 1, {"topic_names": [], "timeout_ms": 5}))
    )
    assert mask_embedded(harmless).data == harmless.data
    (unknown, _) = read_embedded(envelope(b"\x7f\0" + bytes(8) + SECRET))
    assert mask_embedded(unknown).data == b""
    assert mask_embedded(unknown).message is None


def metadata_record(number: int, data: bytes) -> bytes:
    return bytes((1, number, 0)) + data


SCRAM_RECORD = metadata_record(
    11,
    UserScramCredentialRecord.codec(0).build(
        {
            "name": "alice",
            "mechanism": 1,
            "salt": SECRET,
            "stored_key": SECRET,
            "server_key": SECRET,
            "iterations": 4096,
        }
    ),
)


def test_records_of_kraft() -> None:
    record = decode_record(CLUSTER_METADATA, None, SCRAM_RECORD)
    assert record is not None
    hidden = mask_record(CLUSTER_METADATA, record)
    assert hidden.value is not None
    assert hidden.value.value == {
        "name": "alice",
        "mechanism": 1,
        "salt": MASK,
        "stored_key": MASK,
        "server_key": MASK,
        "iterations": 4096,
    }
    assert hidden.value.data == b""
    assert is_secret_record(CLUSTER_METADATA, record)
    tree = record.value.spans()  # type: ignore[union-attr]
    assert [SCRAM_RECORD[a:b] for a, b in secret_spans(tree)] == [b"\x0c" + SECRET] * 3  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "secret"), [("ssl.keystore.password", True), ("retention.ms", False)]
)
def test_configuration_records(name: str, secret: bool) -> None:
    body = {"resource_type": 2, "resource_name": "t", "name": name, "value": TEXT}
    data = metadata_record(4, ConfigRecord.codec(0).build(body))
    record = decode_record(CLUSTER_METADATA, None, data)
    assert record is not None
    assert is_secret_record(CLUSTER_METADATA, record) is secret
    assert mask_record(CLUSTER_METADATA, record).value.value == {  # type: ignore[union-attr]
        **body,
        "value": MASK if secret else TEXT,
    }


def test_undecodable_records_are_masked() -> None:
    for data in (SCRAM_RECORD[:-3], b"\1\x0b\7" + SECRET, b"\1\x7f\0" + SECRET, b"\7" + SECRET):
        record = decode_record(CLUSTER_METADATA, None, data)
        assert record is not None
        assert is_secret_record(CLUSTER_METADATA, record)
    harmless = decode_record(CLUSTER_METADATA, None, b"\1\x14\0\0")
    assert harmless is not None
    assert not is_secret_record(CLUSTER_METADATA, harmless)
    tombstone = decode_record("__consumer_offsets", b"\0\2\0\1g", None)
    assert tombstone is not None
    assert mask_record("__consumer_offsets", tombstone) == tombstone


def fetch(version: int, records: bytes, **topic: object) -> Message:
    partition = {
        "partition_index": 0,
        "error_code": 0,
        "high_watermark": 1,
        "last_stable_offset": 1,
        "log_start_offset": 0,
        "aborted_transactions": None,
        "preferred_read_replica": -1,
        "records": records,
    }
    body = {"throttle_time_ms": 0, "error_code": 0, "session_id": 0}
    return response(1, version, {**body, "responses": [{**topic, "partitions": [partition]}]})


def test_the_kraft_log_is_blanked_in_dumps_of_fetch() -> None:
    by_name = fetch(12, SECRET, topic=CLUSTER_METADATA)
    by_id = fetch(13, SECRET, topic_id=UUID(int=1))
    for message in (by_name, by_id):
        assert not message.problems
        assert SECRET not in blanked(message)
        whole = message.frame
        for size in range(len(whole) - len(SECRET), len(whole)):
            cut = decode_response(whole[:size], 1, message.api_version, size=len(whole))
            assert b"open" not in blanked(cut)
    assert SECRET in blanked(fetch(12, SECRET, topic="orders"))


@pytest.mark.parametrize(("kind", "key", "version", "body"), WITH_SECRETS[:8])
@given(data=st.data())
@settings(max_examples=examples(30), deadline=None)
def test_shortened_or_extended_messages_do_not_leak(
    kind: str, key: int, version: int, body: dict[str, Any], data: st.DataObject
) -> None:
    """Everything is blanked from the first undecodable byte on."""
    make = request if kind == "request" else response
    message = make(key, version, body)
    size = data.draw(st.integers(message.body_start, len(message.frame)))
    frame = message.frame[:size] if size < len(message.frame) else message.frame + SECRET
    cut = (
        decode_request(frame, len(frame) + 1)
        if kind == "request"
        else decode_response(frame, key, version, len(frame) + 1)
    )
    assert SECRET not in blanked(cut)


def test_unknown_versions_of_apis_with_secrets_are_blanked_completely() -> None:
    frame = b"\0\x24\0\x63" + bytes(4) + b"\xff\xff\0" + SECRET
    assert SECRET not in blanked(decode_request(frame))
    assert secret_ranges(decode_request(b"\0\x12\0\x63" + bytes(4) + b"\xff\xff\0more")) == []
    assert secret_ranges(Message("response", b"\0\0\0\1", 4)) == []


def test_messages_of_unknown_apis_are_blanked_behind_their_header() -> None:
    assert secret_ranges(decode_request(b"\x7f\0\0\0" + bytes(4) + b"\xff\xffmore")) == [(10, 14)]
    assert secret_ranges(decode_request(b"\x7f\0\0\0" + bytes(4) + b"\x7f\xffmore")) == [(8, 14)]
    assert secret_ranges(Message("response", b"\0\0\0\1" + SECRET, 20)) == [(4, 4 + len(SECRET))]


SECRET_APIS = [
    (found.key, kind, version)
    for found in all_apis()
    for kind in ("request", "response")
    if carries_secrets(found.schema(kind).fields)  # type: ignore[arg-type]
    for version in found.schema(kind).versions  # type: ignore[arg-type]
]


def _masks_equally(key: int, kind: str, version: int, source: Source) -> None:
    """Check that the dump has secret ranges if and only if the body is masked."""
    schema = api(key).schema(kind)  # type: ignore[union-attr,arg-type]
    drawn = source.value(schema, version)
    if MASK in repr(drawn):  # Hypothesis also draws constants of the code
        return
    message = (request if kind == "request" else response)(key, version, drawn)
    assert (MASK in repr(masked(message))) == bool(secret_ranges(message))


every_secret = pytest.mark.parametrize(("key", "kind", "version"), SECRET_APIS)


@every_secret
def test_dump_and_body_of_each_version_mask_equally(key: int, kind: str, version: int) -> None:
    for number in range(10):
        _masks_equally(key, kind, version, seeded(key, kind, version, number))


@pytest.mark.long
@every_secret
@given(source=sources())
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
def test_dump_and_body_mask_equally(key: int, kind: str, version: int, source: Source) -> None:
    _masks_equally(key, kind, version, source)


def test_a_login_behind_a_whole_body_is_blanked() -> None:
    """A size with a flipped bit takes the next messages into the frame of a harmless one."""
    head = b"\0\x12\0\0\0\0\0\1\xff\xff"  # ApiVersions v0, which has an empty body
    login = b"\0\0\0\x09\0a\0secret"
    assert secret_ranges(decode_request(head + login)) == [(len(head), len(head + login))]
    assert secret_ranges(decode_request(head + b"\0\0")) == []
