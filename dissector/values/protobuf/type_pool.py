"""The types of several files: their names, and a reader for each message."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from dissector.values.protobuf.message_readers import (
    CONTENTS,
    Finish,
    MessageReader,
    content_puts,
    default_of,
    enum_puts,
    map_puts,
    message_puts,
    read_value,
    scalar_puts,
)
from dissector.values.protobuf.proto_declarations import (
    ProtoEnum,
    ProtoField,
    ProtoFile,
    ProtoMessage,
)
from dissector.values.protobuf.well_known_types import ANY, FINISHES, KNOWN_FILES
from dissector.values.protobuf.wire_format import SCALARS, ProtoRoom, base64_of
from dissector.values.value_limits import SchemaProblem, ValueProblem


class TypePool:
    """
    Types of files that know each other.

    Attributes:
        messages: By full name.
        enums: By full name.
    """

    def __init__(self, files: Iterable[ProtoFile]) -> None:
        """
        Take the types of files; of two with one name the first counts.

        Raises:
            SchemaProblem: An extension has no field.
        """
        self.messages: dict[str, ProtoMessage] = {}
        self.enums: dict[str, ProtoEnum] = {}
        self._extensions: dict[str, list[tuple[str, ProtoField]]] = {}
        self._readers: dict[str, MessageReader] = {}
        files = [*KNOWN_FILES, *files]
        for file in files:
            for message in file.all_messages():
                _check_name(message.full_name)
                self.messages.setdefault(message.full_name, message)
            for enum in file.all_enums():
                self.enums.setdefault(enum.full_name, enum)
        for file in files:
            for each in file.extensions:
                extended = self._resolved(each.extendee, each.scope)
                if isinstance(extended, ProtoMessage):
                    added = self._extensions.setdefault(extended.full_name, [])
                    added.append((each.scope, each.field))

    def read(self, message: ProtoMessage, data: bytes, at: int) -> tuple[Any, int]:
        """
        Return a value in the types of JSON, and the number of its undeclared fields.

        Raises:
            ValueProblem: It does not fit.
        """
        room = ProtoRoom(len(data) - at)
        value = read_value(self.reader_of(message), data, at, room)
        return value, room.unknown

    def check(self, message: ProtoMessage) -> None:
        """
        Check the types of a message's fields, and of all that it contains.

        Raises:
            SchemaProblem: One is unknown.
        """
        waiting, seen = [message], set[str]()
        while waiting:
            message = waiting.pop()
            if message.full_name not in seen:
                seen.add(message.full_name)
                self.reader_of(message)
                for scope, field in self.fields_of(message):
                    if isinstance(found := self.type_of(field, scope), ProtoMessage):
                        waiting.append(found)

    def type_of(self, field: ProtoField, scope: str) -> ProtoMessage | ProtoEnum | None:
        """Return the message or enum of a field; None for other types."""
        is_plain = field.type_name in SCALARS or field.type_name in CONTENTS
        return None if is_plain else self._resolved(field.type_name, scope)

    def _resolved(self, name: str, scope: str) -> ProtoMessage | ProtoEnum | None:
        """Return the type that a name means in a scope; None if there is none."""
        _check_name(name)
        _check_name(scope)
        if name.startswith("."):
            return self._named(name[1:])
        while scope:
            if (found := self._named(f"{scope}.{name}")) is not None:
                return found
            scope = scope.rpartition(".")[0]
        return self._named(name)

    def _named(self, full_name: str) -> ProtoMessage | ProtoEnum | None:
        return self.messages.get(full_name) or self.enums.get(full_name)

    def reader_of(self, message: ProtoMessage) -> MessageReader:
        """
        Return the reader of a message.

        Raises:
            SchemaProblem: A field's type is unknown.
        """
        name = message.full_name
        reader = self._readers.get(name)
        if reader is None:
            finish: Finish | None = self._any if name == ANY else FINISHES.get(name)
            reader = MessageReader(name, finish)
            for scope, field in self.fields_of(message):
                if field.name in reader.start or not (
                    field.name.isidentifier() or field.name[:1] == "["
                ):
                    raise SchemaProblem(f"{name[:60]} has two fields {field.name[:60]!r}")
                self._add(reader, _normal(field, message), scope, in_map=message.is_map_entry)
            self._readers[name] = reader
        return reader

    def fields_of(self, message: ProtoMessage) -> Iterator[tuple[str, ProtoField]]:
        """Yield the fields of a message, each with the scope in which its type is named."""
        yield from ((message.full_name, each) for each in message.fields)
        yield from self._extensions.get(message.full_name, ())

    def _add(self, reader: MessageReader, field: ProtoField, scope: str, *, in_map: bool) -> None:
        kind = field.type_name
        if kind in SCALARS:
            reader.add(field, default_of(field, None), scalar_puts(field, SCALARS[kind]))
            return
        if kind in CONTENTS:
            reader.add(field, default_of(field, None), content_puts(field, CONTENTS[kind][0]))
            return
        found = self._resolved(kind, scope)
        if isinstance(found, ProtoEnum):
            reader.enums[field.name] = found
            reader.add(field, default_of(field, found), enum_puts(field, found))
        elif found is None:
            raise SchemaProblem(f"unknown type {kind[:60]!r} of the field {field.name[:60]!r}")
        elif found.is_map_entry:
            if [(each.name, each.is_repeated) for each in found.fields] != _ENTRY:
                raise SchemaProblem(f"{found.full_name[:60]} is no entry of a map")
            field = replace(field, is_repeated=True, has_presence=False, oneof="")
            inner = partial(self.reader_of, found)
            reader.add_map(field, map_puts(field, inner), inner)
        else:
            inner = partial(self.reader_of, found)
            reader.add_messages(field, message_puts(field, inner), inner, in_map=in_map)

    def _any(self, values: dict[str, Any], room: ProtoRoom) -> Any:
        """Return the message that is in an `Any`, if its type is known."""
        url, content = values.get("type_url", ""), values.get("value", b"")
        name = url.rpartition("/")[2]
        message = self.messages.get(name)
        raw = {"@type": url, "value": base64_of(content)}
        if message is None:
            return raw if url or content else {}
        depth = room.depth
        try:
            inner = self.reader_of(message).read(content, 0, len(content), room)
        except (ValueProblem, IndexError, struct.error):
            room.take(0)
            room.depth = depth
            return raw
        if name in FINISHES or name == ANY or not isinstance(inner, dict):
            return {"@type": url, "value": inner}
        return {"@type": url, **inner}


_ENTRY = [("key", False), ("value", False)]
_MAX_NAME = 1000


def _check_name(name: str) -> None:
    if len(name) > _MAX_NAME:
        raise SchemaProblem(f"a name of more than {_MAX_NAME:,} characters")


def _normal(field: ProtoField, message: ProtoMessage) -> ProtoField:
    """Return a field whose properties fit each other, which a descriptor may not."""
    oneof = "" if field.is_repeated or message.is_map_entry else field.oneof
    has_presence = (field.has_presence or bool(oneof)) and not message.is_map_entry
    return replace(field, oneof=oneof, has_presence=has_presence)
