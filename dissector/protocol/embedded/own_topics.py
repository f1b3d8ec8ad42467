"""
Decode the records of Kafka's own topics.

Coordinators: the key begins with an int16 that selects the record type, the value with its int16
version; a null value is a tombstone. KRaft and tiered storage: no key; the value is a frame of
three unsigned varints (frame version, record type, record version) followed by the record.

Source: Kafka, GroupCoordinatorRecordSerde.java, MetadataRecordSerde.java,
RemoteLogMetadataSerde.java; KIP-405, KIP-631, KIP-848.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from types import ModuleType

from construct import Container

from dissector.errors import DecodeError, Problem
from dissector.protocol.codecs import wire
from dissector.protocol.context import current, per_schemas
from dissector.protocol.definitions.embedded import UNDECLARED, record_definitions
from dissector.protocol.embedded import cluster_nodes
from dissector.protocol.embedded.log_records import (
    cluster_metadata,
    group_coordinator,
    remote_log_metadata,
    share_coordinator,
    share_group_coordinator,
    streams_group_coordinator,
    transaction_coordinator,
)
from dissector.protocol.embedded.membership.group_members import read_member
from dissector.protocol.embedded.reading import Embedded, problems_of, read, read_versioned
from dissector.protocol.facts import CLUSTER_METADATA
from dissector.protocol.schema import Schema

FRAME_VERSION = 1
"""The only version of the frame; the preview in Kafka 2.8 had another layout."""


@dataclass(slots=True)
class DecodedRecord:
    """
    A decoded record of one of Kafka's own topics.

    Attributes:
        name: Its type: `OffsetCommit`, `GroupMetadata`, `PartitionRecord`, `COMMIT`; for an unknown
            type `record type 99`.
        key: Its key; None if records of the type have none.
        value: Its value; None for a tombstone, and for an unknown type.
        tombstone: Whether the value is null although records of the type have one.
        problems: Its problems, including those of key and value.
    """

    name: str
    key: Embedded | None = None
    value: Embedded | None = None
    tombstone: bool = False
    problems: list[Problem] = field(default_factory=list)

    def with_embedded_problems(self) -> DecodedRecord:
        """Add the problems of key and value; return the record."""
        for part in (self.key, self.value):
            if part is not None:
                self.problems += problems_of(part)
        return self


@dataclass(frozen=True, slots=True)
class _RecordType:
    """A record type; framed ones have no key."""

    name: str
    value: Schema
    key: Schema | None = None


def is_own_topic(topic: str) -> bool:
    """Return whether a topic is Kafka's own, so that its records can be decoded."""
    return topic in TOPICS


def decode_record(topic: str, key: bytes | None, value: bytes | None) -> DecodedRecord | None:
    """Decode a record by the name of its topic; None if the topic is not Kafka's own."""
    if topic not in TOPICS:
        return None
    if topic in _FRAMED_TOPICS:
        return _read_framed_record(record_types(topic), value)
    return _read_coordinator_record(record_types(topic), key, value)


def _coordinator_types(*modules: ModuleType) -> dict[int, _RecordType]:
    """Return the coordinator records declared by modules, by the versions of their keys."""
    types = {}
    for module in modules:
        for label, schema in vars(module).items():
            if isinstance(schema, Schema) and label.endswith("Key"):
                name = label.removesuffix("Key")
                value = getattr(module, f"{name}Value")
                types.update(dict.fromkeys(schema.versions, _RecordType(name, value, schema)))
    return types


def _read_coordinator_record(
    types: dict[int, _RecordType], key: bytes | None, value: bytes | None
) -> DecodedRecord:
    """Decode a coordinator's record; its key holds the record type."""
    if key is None or len(key) < 2:
        what = "the key is null" if key is None else f"the key has {len(key)} bytes"
        return DecodedRecord("record without a type", problems=[Problem(what, "key", 0)])
    number = int.from_bytes(key[:2], "big", signed=True)
    record_type = types.get(number)
    if record_type is None:
        name = f"record type {number}"
        return DecodedRecord(name, problems=[Problem(f"{name} is not known", "key", 0)])
    record = DecodedRecord(record_type.name, tombstone=value is None)
    if record_type.key is not None:
        record.key = read_versioned("key", f"{record_type.name}Key", record_type.key, key)
    if value is not None:
        record.value = read_versioned("value", f"{record_type.name}Value", record_type.value, value)
        _read_members(record.value)
    return record.with_embedded_problems()


def _read_members(value: Embedded) -> None:
    """Decode the metadata and assignments of group members in a value, if it has any."""
    body = value.value
    if body is None:
        return
    found: list[Embedded | None] = []
    if value.name == "GroupMetadataValue":
        for index, member in enumerate(body.members or []):
            at, type_ = f"members[{index}]", body.protocol_type
            found += [
                read_member(f"{at}.subscription", member.subscription or b"", "metadata", type_),
                read_member(f"{at}.assignment", member.assignment or b"", "assignment", type_),
            ]
    elif value.name == "ConsumerGroupMemberMetadataValue":
        classic = body.classic_member_metadata or Container()
        for index, protocol in enumerate(classic.get("supported_protocols") or []):
            path = f"classic_member_metadata.supported_protocols[{index}].metadata"
            found.append(read_member(path, protocol.metadata or b"", "metadata", "consumer"))
    value.inner += [each for each in found if each is not None]


def _framed_types(*modules: ModuleType) -> dict[int, _RecordType]:
    """Return the framed records declared by modules, by their record types."""
    return {
        schema.key: _RecordType(name, schema)
        for module in modules
        for name, schema in vars(module).items()
        if isinstance(schema, Schema) and schema.key is not None
    }


def _read_framed_record(types: dict[int, _RecordType], value: bytes | None) -> DecodedRecord:
    """Decode a framed record; such records have no key, and a given key is ignored."""
    if value is None:
        return DecodedRecord(
            "record without a type", problems=[Problem("the value is null", "value")]
        )
    stream = io.BytesIO(value)
    try:
        frame, number, version = (wire.unsigned_varint.parse_stream(stream) for _ in range(3))
    except DecodeError as error:
        problem = Problem(f"frame of the record: {error.what}", "value", error.position)
        return DecodedRecord("record without a type", problems=[problem])
    if frame != FRAME_VERSION:
        problem = Problem(f"version {frame} of the record's frame is not known", "value", 0)
        return DecodedRecord("record without a type", problems=[problem])
    if number not in types:
        name = f"record type {number}"
        return DecodedRecord(name, problems=[Problem(f"{name} is not known", "value", 0)])
    name = types[number].name
    found = read("value", name, types[number].value, version, value, start=stream.tell())
    record = DecodedRecord(name, value=found)
    return record.with_embedded_problems()


TOPICS: dict[str, dict[int, _RecordType]] = {
    "__consumer_offsets": _coordinator_types(
        group_coordinator, share_group_coordinator, streams_group_coordinator
    ),
    "__transaction_state": _coordinator_types(transaction_coordinator),
    "__share_group_state": _coordinator_types(share_coordinator),
    CLUSTER_METADATA: _framed_types(cluster_metadata, cluster_nodes),
    "__remote_log_metadata": _framed_types(remote_log_metadata),
}

_FRAMED_TOPICS = frozenset((CLUSTER_METADATA, "__remote_log_metadata"))


@per_schemas
def record_types(topic: str) -> dict[int, _RecordType]:
    """Return the record types of a topic, including those of definitions only."""
    schemas, types = current(), TOPICS[topic]
    if schemas is None:
        return types
    added = {
        each.number: _RecordType(
            each.name, UNDECLARED, None if topic in _FRAMED_TOPICS else UNDECLARED
        )
        for each in record_definitions(schemas, _topics_of_definitions())
        if each.topic == topic and each.number not in types
    }
    return {**types, **added}


def _topics_of_definitions() -> dict[str, str]:
    """Return the topics of records, by the names of their definitions."""
    return {
        record_type.name + ("" if topic in _FRAMED_TOPICS else "Key"): topic
        for topic, types in TOPICS.items()
        for record_type in types.values()
    }
