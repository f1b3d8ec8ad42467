"""Protobuf schemas: a file with those that it imports, and the choice of one of its messages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from dissector.values.located_value import LocatedValue
from dissector.values.protobuf.descriptor_sets import parse_file_descriptor
from dissector.values.protobuf.message_readers import MessageReader
from dissector.values.protobuf.proto_declarations import ProtoFile, ProtoMessage
from dissector.values.protobuf.proto_leaves import LeafWalk
from dissector.values.protobuf.proto_places import PlaceWalk
from dissector.values.protobuf.proto_text import parse_proto
from dissector.values.protobuf.type_pool import TypePool
from dissector.values.protobuf.wire_format import read_span, read_varint
from dissector.values.protobuf.wire_pieces import pieces
from dissector.values.value_leaves import Leaves
from dissector.values.value_limits import (
    MAX_SCHEMA_BYTES,
    MAX_SCHEMA_DEPTH,
    SchemaProblem,
    ValueProblem,
)


class ProtoSchema:
    """
    A file with messages, and the files that it imports.

    Attributes:
        file: The file of the schema itself.
    """

    def __init__(self, text: str, imported: Iterable[str] = ()) -> None:
        """
        Read the declarations.

        Args:
            text: A `.proto` text, or a file's descriptor in base64.
            imported: The same of files that it imports.

        Raises:
            SchemaProblem: It is neither.
        """
        self.file = parse_file(text)
        self._files = [self.file, *map(parse_file, imported)]
        self._pool = TypePool(self._files)

    def value(self, message: ProtoMessage, data: bytes, at: int, *, is_exact: bool) -> Any:
        """
        Return a value in the types of JSON.

        Args:
            message: Its type.
            data: The value, to its end.
            at: Where it begins.
            is_exact: Whether fields that the message lacks are an error.

        Raises:
            ValueProblem: It does not fit.
        """
        value, unknown = self._pool.read(message, data, at)
        if unknown and is_exact:
            raise ValueProblem(f"{unknown:,} fields that {message.full_name} does not declare")
        return value

    def reader_of(self, message: ProtoMessage) -> MessageReader:
        """
        Return the reader of a message.

        Raises:
            SchemaProblem: A field's type is unknown.
        """
        return self._pool.reader_of(message)

    def located(self, message: ProtoMessage, data: bytes, at: int) -> LocatedValue | None:
        """Return a value with the places of its parts; None if these are unknown."""
        try:
            value, _ = self._pool.read(message, data, at)
        except ValueProblem:
            return None
        return PlaceWalk(self._pool, data).located(message, value, at)

    def leaves(self, message: ProtoMessage, data: bytes, at: int) -> Leaves | None:
        """Return the leaves of a value that decodes; None if they are too many."""
        walk = LeafWalk(self._pool, data)
        try:
            walk.message(message, pieces(data, at, len(data)))
        except (ValueProblem, IndexError, RecursionError):
            return None
        return walk.leaves

    def check(self, message: ProtoMessage) -> None:
        """
        Check the types of a message's fields.

        Raises:
            SchemaProblem: One is unknown.
        """
        self._pool.check(message)

    @cached_property
    def first(self) -> ProtoMessage:
        """
        The first message.

        Raises:
            SchemaProblem: There is none.
        """
        for message in self.file.messages:
            return message
        raise SchemaProblem("the schema has no message")

    def at_indexes(self, data: bytes, at: int) -> tuple[ProtoMessage, int]:
        """
        Return the message that Confluent's indexes name, and the position behind them.

        Raises:
            ValueProblem: There is none.
        """
        if data[at : at + 1] == _NO_INDEXES:
            return self.first, at + 1
        indexes, at = read_indexes(data, at)
        if not indexes:
            return self.first, at
        messages, message = self.file.messages, None
        for index in indexes:
            if not 0 <= index < len(messages):
                raise ValueProblem(f"message index {index:,} of {len(messages):,}")
            message = messages[index]
            messages = message.messages
        assert message is not None
        return message, at

    def at_sorted_index(self, data: bytes, at: int) -> tuple[ProtoMessage, int]:
        """Return the message that a number names among all by name, as AWS Glue does."""
        index, at = read_index(data, at)
        if index >= len(self._sorted):
            raise ValueProblem(f"message index {index:,} of {len(self._sorted):,}")
        return self._sorted[index], at

    def at_ref(self, data: bytes, at: int) -> tuple[ProtoMessage, int]:
        """Return the message that Apicurio's `Ref` before the value names; else the first."""
        name, end = read_ref(data, at)
        try:
            if name:
                return self.named(name), end
        except SchemaProblem:
            pass
        return self.first, at

    def named(self, name: str) -> ProtoMessage:
        """
        Return a message by its full name, or by the end of it.

        Raises:
            SchemaProblem: There is none, or several.
        """
        found = [
            each
            for file in self._files
            for each in file.all_messages()
            if each.full_name == name or each.full_name.endswith(f".{name}")
        ]
        for each in found:
            if each.full_name == name:
                return each
        if len(found) == 1:
            return found[0]
        listed = ", ".join(each.full_name for file in self._files for each in file.messages)
        reason = "several messages" if found else "no message"
        raise SchemaProblem(f"{reason} {name[:60]!r} in the schema, which has {listed[:200]}")

    @cached_property
    def _sorted(self) -> list[ProtoMessage]:
        return sorted(self.file.all_messages(), key=lambda each: each.full_name)


_BASE_64 = re.compile(
    "(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?|[A-Za-z0-9+/]{2}=="
)

_NO_INDEXES = b"\0"
"""The usual indexes, of the first message."""

_REF_NAME = 0x0A
"""The key of the only field of Apicurio's `Ref`."""


def read_indexes(data: bytes, at: int) -> tuple[list[int], int]:
    """
    Return Confluent's indexes of a message, none for the first, and the position behind them.

    Raises:
        ValueProblem: They end too early, or are too many.
    """
    count, at = _zigzag(data, at)
    if not 0 <= count <= MAX_SCHEMA_DEPTH:
        raise ValueProblem(f"{count:,} message indexes")
    indexes = []
    for _ in range(count):
        index, at = _zigzag(data, at)
        indexes.append(index)
    return indexes, at


def read_index(data: bytes, at: int) -> tuple[int, int]:
    """
    Return AWS Glue's number of a message, and the position behind it.

    Raises:
        ValueProblem: There is none.
    """
    try:
        return read_varint(data, at)
    except IndexError:
        raise ValueProblem("no message index") from None


def read_ref(data: bytes, at: int) -> tuple[str, int]:
    """Return the name in Apicurio's `Ref`, and the position behind it; no name without one."""
    try:
        begin, end = read_span(data, at, len(data))
        if data[begin] == _REF_NAME:
            begin, stop = read_span(data, begin + 1, end)
            if stop == end:
                return data[begin:stop].decode(), end
    except (IndexError, UnicodeDecodeError, ValueProblem):
        pass
    return "", at


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    try:
        number, at = read_varint(data, at)
    except IndexError:
        raise ValueProblem("it ends in the message indexes") from None
    return (number >> 1) ^ -(number & 1), at


def parse_file(text: str) -> ProtoFile:
    """
    Return a file, as a `.proto` text or as a descriptor in base64.

    Raises:
        SchemaProblem: It is neither.
    """
    if len(text) > MAX_SCHEMA_BYTES:
        raise SchemaProblem(f"the schema has more than {MAX_SCHEMA_BYTES:,} bytes")
    return parse_file_descriptor(text) if _BASE_64.fullmatch(text) else parse_proto(text)
