"""Every API, side and version: comparison with Kafka's definitions, round trips, hostile bytes."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector import DecodeError, EncodeError, codec
from dissector.protocol.api import Api
from dissector.protocol.apis import NAMES, api, api_module, api_name
from dissector.protocol.schema import Versions
from dissector.protocol.spans import spans
from tests.dissector.protocol.protocol_facts import facts
from tests.value_sources import (
    DRAWN,
    VERSIONS,
    Source,
    Version,
    every_api,
    go_through,
    sources,
    versions,
)

_KEY = {"map_key": True}
_COUNT = {"default": "-1", "ignorable": True}
_NULL = {"default": "null"}
CORRECTED = {
    "BrokerHeartbeat request": {"CordonedLogDirs": {"nullable": "2", "default": "null"}},
    # Kafka 4.0 renamed the Candidate fields of v0 and v1 as in v2; the bytes are the same.
    "Vote request": {
        "Topics.Partitions.ReplicaEpoch": {"versions": "0-2"},
        "Topics.Partitions.ReplicaId": {"versions": "0-2", "entity": "brokerId"},
        "Topics.Partitions.ReplicaDirectoryId": {"versions": "1-2", "ignorable": True},
        "Topics.Partitions.CandidateEpoch": None,
        "Topics.Partitions.CandidateId": None,
        "Topics.Partitions.CandidateDirectoryId": None,
    },
    "DescribeProducers request": {"Topics.Name": _KEY},
    "ConsumerGroupDescribe response": {"Groups.Members.MemberType": _COUNT},
    "ShareFetch request": {
        "ShareAcquireMode": {"default": "0", "ignorable": True},
        "IsRenewAck": {"default": "false"},
        "Topics.TopicId": _KEY,
        "Topics.Partitions.PartitionIndex": _KEY,
    },
    "ShareFetch response": {"Responses.TopicId": _KEY},
    "ShareAcknowledge request": {
        "IsRenewAck": {"default": "false"},
        "Topics.TopicId": _KEY,
        "Topics.Partitions.PartitionIndex": _KEY,
    },
    "ShareAcknowledge response": {
        "ThrottleTimeMs": {"ignorable": False},
        "ErrorCode": {"ignorable": False},
        "AcquisitionLockTimeoutMs": {"ignorable": True},
        "Responses.TopicId": {"ignorable": False, "map_key": True},
    },
    "AddRaftVoter request": {"AckWhenCommitted": {"default": "true"}},
    "WriteShareGroupState request": {"Topics.Partitions.DeliveryCompleteCount": _COUNT},
    "ReadShareGroupStateSummary response": {"Results.Partitions.DeliveryCompleteCount": _COUNT},
    "DescribeShareGroupOffsets response": {
        "Groups.Topics.Partitions.Lag": _COUNT,
        "Groups.Topics.Partitions.ErrorMessage": _NULL,
        "Groups.ErrorMessage": _NULL,
    },
    "AlterShareGroupOffsets request": {"Topics.TopicName": _KEY},
    "AlterShareGroupOffsets response": {
        "ErrorMessage": _NULL,
        "Responses.TopicName": _KEY,
        "Responses.Partitions.ErrorMessage": _NULL,
    },
    "DeleteShareGroupOffsets response": {"ErrorMessage": _NULL, "Responses.ErrorMessage": _NULL},
}
"""What the definitions of Kafka 4.4.0 say, where the older facts say something else or nothing."""


def corrected_facts(shared: Path) -> list[dict]:
    """Return the facts about messages of Kafka 4.4.0."""
    found = facts(shared, "api_messages")
    for message in found:
        corrected = CORRECTED.get(f"{message['name']} {message['kind']}", {})
        pairs = [(field, corrected.get(field["path"], {})) for field in message["fields"]]
        message["fields"] = [field | right for field, right in pairs if right is not None]
    return found


def _in(text: str | None, version: int) -> bool:
    return bool(text) and version in Versions.of(str(text))


def _expected(message: dict, version: int, prefix: str = "") -> list[tuple]:
    """List (path, type, nullable, tag) of the protocol's facts in wire order."""
    here = [
        f
        for f in message["fields"]
        if f["path"].rpartition(".")[0] == prefix and _in(f["versions"], version)
    ]
    tagged = sorted((f for f in here if _in(f.get("tagged"), version)), key=lambda f: f["tag"])
    out = []
    for field in [f for f in here if f not in tagged] + tagged:
        tag = field["tag"] if field in tagged else None
        null = _in(field.get("nullable"), version)
        out.append((field["path"], field["type"], null, tag))
        out += _expected(message, version, field["path"])
    return out


def test_declarations_agree_with_the_facts(shared: Path) -> None:
    compared = 0
    for message in corrected_facts(shared):
        schema = api(message["api_key"]).schema(message["kind"])
        assert api_name(message["api_key"]) == message["name"]
        assert schema.versions == Versions.of(message["versions"])
        for version in schema.versions:
            got = [(p, f.type, version in f.null, f.tag) for p, f in schema.iter_fields(version)]
            assert got == _expected(message, version), (
                f"{message['name']} {message['kind']} v{version}"
            )
            assert (version in schema.flexible) == _in(message["flexible"], version)
            compared += 1
    assert compared == len(VERSIONS) == 736


def test_defaults_and_marks_agree_with_the_facts(shared: Path) -> None:
    """Further attributes: defaults, map keys, ignorable fields."""
    for message in corrected_facts(shared):
        schema = api(message["api_key"]).schema(message["kind"])
        declared = {path: f for v in schema.versions for path, f in schema.iter_fields(v)}
        for fact in message["fields"]:
            field = declared[fact["path"]]
            assert field.key == fact.get("map_key", False)
            assert field.ignorable == fact.get("ignorable", False)
            assert fact.get("entity", "") in ("", field.entity)
            text = str(fact.get("default", "")).lower()
            if "default" not in fact:
                assert field.default is ...
            elif text == "null":
                assert field.default is None
            elif field.type == "bool":
                assert field.default is (text == "true")
            elif field.type == "string":
                assert field.default == fact["default"]
            else:
                assert field.default == int(text, 0)


def _round_trip(message: Version, source: Source) -> None:
    key, kind, version, schema = message
    value = source.value(schema, version)
    written = codec(key, version, kind).build(value)
    parsed = codec(key, version, kind).parse(written)
    assert parsed == value
    assert codec(key, version, kind).build(parsed) == written
    # The second interpreter of the declaration, with spans, agrees.
    root = spans(schema, version, written)
    assert root.value == parsed
    assert root.end == len(written)
    assert not root.problem


def _hostile_bytes(message: Version, source: Source) -> None:
    """Check that damaged bytes give a value or a DecodeError with a position."""
    key, kind, version, schema = message
    chance = source.chance
    good = codec(key, version, kind).build(source.value(schema, version))
    bad = source.changed(good or b"\0", chance.randint(0, 3))
    bad = bad[: chance.randint(0, len(bad))] + chance.randbytes(chance.randint(0, 4))
    root = spans(schema, version, bad)
    raised: DecodeError | None = None
    try:
        value = codec(key, version, kind).parse(bad)
    except DecodeError as error:
        raised = error
    if raised is None:
        assert root.value == value
        return
    assert 0 <= raised.position <= len(bad)
    assert root.problem
    deepest = root
    while deepest.children and deepest.children[-1].problem:
        deepest = deepest.children[-1]
    assert raised.path.startswith(deepest.path)


@every_api
def test_round_trip_of_each_version(found: Api) -> None:
    go_through(versions(found), _round_trip, times=8)


@pytest.mark.thinned(3)
@every_api
def test_hostile_bytes_of_each_version(found: Api) -> None:
    go_through(versions(found), _hostile_bytes, times=10)


@pytest.mark.long
@every_api
@given(data=st.data(), source=sources())
@DRAWN
def test_round_trip(found: Api, data: st.DataObject, source: Source) -> None:
    _round_trip(data.draw(st.sampled_from(versions(found))), source)


@pytest.mark.long
@every_api
@given(data=st.data(), source=sources())
@DRAWN
def test_hostile_bytes(found: Api, data: st.DataObject, source: Source) -> None:
    _hostile_bytes(data.draw(st.sampled_from(versions(found))), source)


@pytest.mark.parametrize("key", NAMES)
def test_each_api_has_its_own_file(key: int) -> None:
    found = api(key)
    assert found is not None
    assert found.request.key == found.response.key == key
    assert found.request.versions == found.response.versions
    source = (
        Path(__file__).parents[3]
        / f"dissector/protocol/apis/{api_module(found.name).replace('.', '/')}.py"
    )
    assert source.read_text().startswith(f'"""\n{found.name} (key {key}): ')


def test_unknown_apis_and_versions() -> None:
    assert api(999) is None
    assert api_name(999) == "api 999"
    with pytest.raises(DecodeError, match="no API has the key 999"):
        codec(999, 0, "request")
    with pytest.raises(DecodeError, match=r"Produce has no version 99; known are 0-13"):
        codec(0, 99, "request")
    with pytest.raises(DecodeError, match="'both' is neither"):
        codec(0, 9, "both")  # type: ignore[arg-type]


def test_encode_errors_have_path_and_reason() -> None:
    body = {"topics": [{"name": "a"}, {"name": 5}], "allow_auto_topic_creation": True}
    with pytest.raises(EncodeError, match=r"topics\[1\].name: 5 is not text"):
        codec(3, 4, "request").build(body)
    with pytest.raises(EncodeError, match="acks: is missing"):
        codec(0, 9, "request").build({"timeout_ms": 1, "topic_data": []})


def test_parse_ignores_trailing_bytes() -> None:
    stream = io.BytesIO(b"\0\0\0\0\0\0rest")
    parsed = codec(18, 0, "response").parse_stream(stream)
    assert parsed == {"error_code": 0, "api_keys": []}
    assert stream.read() == b"rest"
