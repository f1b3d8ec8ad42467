"""
Messages read by their declarations, field by field: errors, topics, and names of topic ids.

Source: https://kafka.apache.org/protocol#protocol_types; KIP-482 (compact lengths, tagged fields);
KIP-893 (nullable structs).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from dissector.protocol.apis import api
from dissector.protocol.schema import Field, Schema

API_VERSIONS, CONTROLLED_SHUTDOWN = 18, 7
NEWER_ERRORS = {136: "CONTROLLER_ID_NOT_REGISTERED"}
"""Errors that kio does not know yet. Source: Kafka 4.4, Errors.java."""

NO_ID = UUID(int=0)
NUMBERS = {
    "bool": ">?",
    "int8": ">b",
    "int16": ">h",
    "int32": ">i",
    "int64": ">q",
    "uint16": ">H",
    "uint32": ">I",
    "float64": ">d",
}
"""Types of fixed size, as formats of `struct`."""


@dataclass
class MessageReader:
    """
    Reads the bytes of one message.

    Attributes:
        data: The frame.
        at: Position of the next byte.
        errors: Names of the errors so far.
        topics: Topics so far; by id if the message has no name for it.
        names: Names of topic ids so far.
    """

    data: bytes
    at: int = 0
    version: int = 0
    flexible: bool = False
    errors: list[str] = field(default_factory=list)
    topics: list[str | UUID] = field(default_factory=list)
    names: dict[UUID, str] = field(default_factory=dict)

    def read(self, schema: Schema, version: int) -> dict[str, Any]:
        """
        Read a message or a header.

        Raises:
            ValueError: The bytes do not match the declaration.
        """
        if version not in schema.versions:
            raise ValueError(f"no version {version}")
        self.version, self.flexible = version, version in schema.flexible
        return self.struct(schema.fields)

    def struct(self, fields: tuple[Field, ...]) -> dict[str, Any]:
        """Read the fields of one struct."""
        here = [each for each in fields if self.version in each.versions]
        values: dict[str, Any] = {}
        for each in here:
            if each.tag is None:
                values[each.name] = self.value(each, each.type)
                self.note(each, here, values)
        tagged = {each.tag: each for each in here if each.tag is not None}
        for _ in range(self.varint() if self.flexible else 0):
            tag, end = self.varint(), self.varint() + self.at
            if tag in tagged:
                each = tagged[tag]
                values[each.name] = self.value(each, each.type)
                self.note(each, here, values)
            self.at = end
        return values

    def value(self, each: Field, type: str) -> Any:
        """Read one value of a field."""
        if type in NUMBERS:
            return struct.unpack(NUMBERS[type], self.take(struct.calcsize(NUMBERS[type])))[0]
        if type == "uuid":
            return UUID(bytes=self.take(16))
        if type == "struct":
            return None if self.is_null(each) else self.struct(each.fields)
        compact = self.flexible and not each.classic
        length_type = "int16" if type == "string" else "int32"
        length = self.varint() - 1 if compact else self.value(each, length_type)
        if length < 0:
            return None
        if type.startswith("[]"):
            return [self.value(each, type[2:]) for _ in range(length)]
        data = self.take(length)
        return data.decode() if type == "string" else data

    def is_null(self, each: Field) -> bool:
        """Read the mark of a struct that may be null: -1 or 1, of a tagged one 0 or 1."""
        if each.type != "struct" or self.version not in each.null:
            return False
        mark = int(self.value(each, "int8"))
        return mark < (0 if each.tag is None else 1)

    def take(self, count: int) -> bytes:
        """Read bytes."""
        data = self.data[self.at : self.at + count]
        if len(data) < count:
            raise ValueError("the message is too short")
        self.at += count
        return data

    def varint(self) -> int:
        """Read an unsigned number of seven bits a byte."""
        number = shift = 0
        while True:
            (byte,) = self.take(1)
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def note(self, each: Field, siblings: list[Field], values: dict[str, Any]) -> None:
        """Note the error or topic in a field; a topic with name and id at the second of both."""
        value = values[each.name]
        if each.type == "int16" and each.name.endswith("error_code") and value:
            self.errors.append(NEWER_ERRORS.get(value) or ErrorCode(value).name.upper())
        naming = [f.name for f in siblings if f.entity == "topicName" or f.name == "topic_id"]
        if each.name in naming:
            both = naming if "topic_id" in naming else [each.name]
            if all(name in values for name in both):
                self.note_topic([values[name] for name in both])

    def note_topic(self, values: list[Any]) -> None:
        """Note a topic by its name or names, or else by its id."""
        flat = [item for v in values for item in (v if isinstance(v, list) else [v]) if item]
        names = [item for item in flat if isinstance(item, str)]
        ids = [item for item in flat if isinstance(item, UUID) and item != NO_ID]
        self.topics += names or ids
        self.names.update(dict.fromkeys(ids, *names[:1]) if names else {})


def header_version(kind: str, key: int, version: int) -> int:
    """
    Return the version of a header.

    Source: Kafka, RequestHeader.json, ResponseHeader.json; KIP-511 (responses to ApiVersions).
    """
    found = api(key)
    flexible = (
        found is not None and min(version, found.request.versions.high) in found.request.flexible
    )
    if kind == "request":
        return 0 if (key, version) == (CONTROLLED_SHUTDOWN, 0) else 1 + flexible
    return int(flexible and key != API_VERSIONS)
