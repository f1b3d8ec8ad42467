"""Every embedded schema at every version: Kafka's definitions, kio, and round trips."""

from __future__ import annotations

import importlib
import io
import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dissector.errors import DecodeError
from dissector.protocol import headers
from dissector.protocol.embedded import cluster_nodes, control_records, principal
from dissector.protocol.embedded.log_records import (
    cluster_metadata,
    group_coordinator,
    remote_log_metadata,
    share_coordinator,
    share_group_coordinator,
    streams_group_coordinator,
    transaction_coordinator,
)
from dissector.protocol.embedded.membership import assignors, connect_protocol, consumer_protocol
from dissector.protocol.schema import Field, Schema, Versions
from dissector.protocol.spans import spans
from tests.dissector.protocol.protocol_facts import facts
from tests.message_strategies import values
from tests.value_sources import Source, go_through, sources

MODULES = [
    assignors,
    cluster_metadata,
    cluster_nodes,
    connect_protocol,
    consumer_protocol,
    control_records,
    group_coordinator,
    principal,
    remote_log_metadata,
    share_coordinator,
    share_group_coordinator,
    streams_group_coordinator,
    transaction_coordinator,
]
SCHEMAS = {
    name: schema
    for module in MODULES
    for name, schema in vars(module).items()
    if isinstance(schema, Schema)
}
VERSIONS = [(name, version) for name, schema in SCHEMAS.items() for version in schema.versions]
NOT_AMONG_THE_FACTS = {
    "ConnectWorkerMetadata",
    "ConnectAssignment",
    "StickyUserData",
    "CooperativeStickyUserData",
    "ControlRecordKey",
    "EndTxnMarker",
    # Added to Kafka after the snapshot of the facts.
    "ConsumerGroupRegularExpressionKey",
    "ConsumerGroupRegularExpressionValue",
    "ClearElrRecord",
    *(name for name in vars(streams_group_coordinator) if name.startswith("Streams")),
} - {"StreamsGroupMetadataValue"}
# The facts are of October 2024, before share groups were finished (Kafka 4.1). The entries below
# are compared with the classes of a later Kafka in tests/oracle.
NEWER_VERSIONS = {"RegisterBrokerRecord": "4", "BrokerRegistrationChangeRecord": "3"}
NEWER_FIELDS = {
    "ConsumerGroupCurrentMemberAssignmentValue": {
        "AssignedPartitions.AssignmentEpochs",
        "PartitionsPendingRevocation.AssignmentEpochs",
    },
    "ConsumerGroupMetadataValue": {"MetadataHash"},
    "ConsumerGroupTargetAssignmentMetadataValue": {"AssignmentTimestamp"},
    "OffsetCommitValue": {"topicId"},
    "ShareGroupMetadataValue": {"MetadataHash"},
    "ShareGroupStatePartitionMetadataValue": {
        "InitializingTopics",
        "InitializingTopics.TopicId",
        "InitializingTopics.TopicName",
        "InitializingTopics.Partitions",
    },
    "ShareGroupTargetAssignmentMetadataValue": {"AssignmentTimestamp"},
    "ShareSnapshotValue": {"DeliveryCompleteCount", "CreateTimestamp", "WriteTimestamp"},
    "ShareUpdateValue": {"DeliveryCompleteCount"},
    "TransactionLogValue": {"NextProducerEpoch"},
}
OTHER_TYPES = {
    ("ShareSnapshotValue", "SnapshotEpoch"): "int32",
    ("ShareUpdateValue", "SnapshotEpoch"): "int32",
}
# The definition has null without quotes, which Kafka's generator ignores as a default.
NO_DEFAULT = {("ConsumerGroupMemberMetadataValue", "ClassicMemberMetadata")}
every_version = pytest.mark.parametrize(("name", "version"), VERSIONS)


def _in(text: str | None, version: int) -> bool:
    return bool(text) and version in Versions.of(str(text))


def _exists(field: dict[str, Any], version: int) -> bool:
    """
    Return whether a field of the facts exists in a version.

    The tagged fields of TransactionLogValue name no versions of their own in Kafka, which then
    takes those where they are tagged; the facts have them at v0 too, where no broker writes them.
    """
    if field["path"] in ("PreviousProducerId", "NextProducerId", "ClientTransactionVersion"):
        return _in(field.get("tagged", field["versions"]), version)
    return _in(field["versions"], version)


def _expected(message: dict[str, Any], version: int, prefix: str = "") -> list[tuple[Any, ...]]:
    """List (path, type, nullable, tag) of the facts in wire order."""
    here = [
        f
        for f in message["fields"]
        if f["path"].rpartition(".")[0] == prefix and _exists(f, version)
    ]
    tagged = sorted((f for f in here if _in(f.get("tagged"), version)), key=lambda f: f["tag"])
    out = []
    for field in [f for f in here if f not in tagged] + tagged:
        tag = field["tag"] if field in tagged else None
        null = _in(field.get("nullable"), version)
        word = OTHER_TYPES.get((message["name"], field["path"]), field["type"])
        out.append((field["path"], word, null, tag))
        out += _expected(message, version, field["path"])
    return out


def test_declarations_agree_with_the_facts(shared: Path) -> None:
    in_headers = {"RequestHeader": headers.RequestHeader, "ResponseHeader": headers.ResponseHeader}
    found = facts(shared, "embedded_messages")
    for message in found:
        schema = {**SCHEMAS, **in_headers}[message["name"]]
        of_facts = set(Versions.of(message["versions"]))
        newer = Versions.of(NEWER_VERSIONS.get(message["name"], "none"))
        assert set(schema.versions) == of_facts | set(newer)
        for version in of_facts:
            got = [
                (path, field.type, version in field.null, field.tag)
                for path, field in schema.iter_fields(version)
                if path not in NEWER_FIELDS.get(message["name"], ())
            ]
            assert got == _expected(message, version), f"{message['name']} v{version}"
            assert (version in schema.flexible) == _in(message["flexible"], version)
    assert {m["name"] for m in found} - in_headers.keys() == SCHEMAS.keys() - NOT_AMONG_THE_FACTS
    assert len(found) == 77


def test_defaults_agree_with_the_facts(shared: Path) -> None:
    for message in facts(shared, "embedded_messages"):
        schema = SCHEMAS.get(message["name"])
        if schema is None:
            continue
        declared = {path: f for v in schema.versions for path, f in schema.iter_fields(v)}
        for fact in message["fields"]:
            field = declared[fact["path"]]
            assert field.entity == fact.get("entity", "")
            text = str(fact.get("default")).lower()
            if "default" not in fact or (message["name"], fact["path"]) in NO_DEFAULT:
                assert field.default is ...
            elif text in ("none", "null"):
                assert field.default is None
            elif field.type == "bool":
                assert field.default is (text == "true")
            else:
                assert field.default == int(text)


def test_keys_agree_with_the_facts(shared: Path) -> None:
    for message in facts(shared, "embedded_messages"):
        schema = SCHEMAS.get(message["name"])
        if message.get("record_key") is not None:
            assert schema is not None
            assert schema.key == message["record_key"]
        elif schema is not None and message["area"] == "group-coordinator":
            key = SCHEMAS[re.sub("(Key|Value)$", "Key", message["name"])]
            assert schema.key == key.key == key.versions.high


def test_fields_of_scram_credentials_are_secret() -> None:
    secret = {f.name for f in cluster_metadata.UserScramCredentialRecord.fields if f.secret}
    assert secret == {"salt", "stored_key", "server_key"}


def _round_trip(declared: tuple[str, int], source: Source) -> None:
    name, version = declared
    schema = SCHEMAS[name]
    value = source.value(schema, version)
    written = schema.codec(version).build(value)
    parsed = schema.codec(version).parse(written)
    assert parsed == value
    assert schema.codec(version).build(parsed) == written
    root = spans(schema, version, written)
    assert (root.value, root.end, root.problem) == (parsed, len(written), "")


@pytest.mark.thinned(3)
@every_version
def test_round_trip_of_each_version(name: str, version: int) -> None:
    go_through([(name, version)], _round_trip, times=10)


@pytest.mark.long
@every_version
@given(source=sources())
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
def test_round_trip(name: str, version: int, source: Source) -> None:
    _round_trip((name, version), source)


@pytest.mark.thinned(3)
@every_version
@given(data=st.binary(max_size=60))
@settings(max_examples=10, deadline=None)
def test_hostile_bytes_give_a_value_or_a_decode_error(name: str, version: int, data: bytes) -> None:
    root = spans(SCHEMAS[name], version, data)
    try:
        value = SCHEMAS[name].codec(version).parse(data)
    except DecodeError:
        assert root.problem
        assert root.end <= len(data)
    else:
        assert root.value == value


KIO = [
    (name, version)
    for name, version in VERSIONS
    if name
    in {
        "ConsumerProtocolSubscription",
        "ConsumerProtocolAssignment",
        "DefaultPrincipalData",
        "EndTxnMarker",
        "KRaftVersionRecord",
        "LeaderChangeMessage",
        "SnapshotHeaderRecord",
        "SnapshotFooterRecord",
        "VotersRecord",
    }
]


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("name", "version"), KIO)
@given(data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_kio_decodes_and_encodes_the_same(name: str, version: int, data: st.DataObject) -> None:
    serial = pytest.importorskip("kio.serial")
    folder = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    entity = getattr(importlib.import_module(f"kio.schema.{folder}.v{version}.data"), name)
    schema = SCHEMAS[name]
    value = data.draw(values(schema, version, unknown=False).filter(_is_utf8))
    written = schema.codec(version).build(value)
    read, size = serial.entity_reader(entity)(written, 0)
    assert size == len(written)
    assert _plain(read, schema.fields, version) == value
    back = io.BytesIO()
    serial.entity_writer(entity)(back, read)
    assert back.getvalue() == written


def _is_utf8(value: Any) -> bool:
    """Return whether all strings of a value are UTF-8, as kio requires."""
    return not re.search(r"\\udc", ascii(value))


def _plain(entity: Any, fields: tuple[Field, ...], version: int) -> dict[str, Any]:
    """Return a value decoded by kio in the form of our codecs."""
    out = {}
    for field in fields:
        if version in field.versions:
            value = getattr(entity, f"{field.name}_" if field.name == "type" else field.name)
            if field.type == "struct":
                value = _plain(value, field.fields, version)
            elif field.type == "[]struct":
                value = [_plain(item, field.fields, version) for item in value]
            elif field.type.startswith("[]"):
                value = list(value)
            elif field.type == "uuid":
                value = value or UUID(int=0)
            out[field.name] = value
    return out
