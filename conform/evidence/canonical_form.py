"""
Canonical form of a message: the bytes that Kafka's own writers produce.

`is_canonical` is the fast path: it proves the absence of deviations, the usual case.
`find_form_faults` decodes all other messages field by field, and locates the deviations. Both must
agree.

Source: that of `dissector.protocol.codecs.wire` and `structs`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from construct import Container

from conform.evidence.non_canonical_values import is_non_canonical_text, non_canonical_check
from dissector.protocol.codecs.compiled import UNKNOWN_TAGS
from dissector.protocol.messages import Message
from dissector.protocol.schema import Field, Schema, construct_of, split_tagged

_MAX_VARINT_BYTES = 5
_REQUEST_HEADER_BYTES = 10
"""Bytes of a request header before the text of its client id."""


class FormFault(NamedTuple):
    """
    A deviation from the canonical form.

    Attributes:
        rule: The rule that it breaks.
        path: The field.
        start: Offset of its first byte in the frame.
        end: Offset after its last byte.
        found: The deviation.
    """

    rule: str
    path: str
    start: int
    end: int
    found: str


class FormFaults(NamedTuple):
    """
    All deviations of a message from the canonical form.

    Attributes:
        found: The deviations, in the order of the bytes.
        end: Offset of the end of decoding; None if it had to stop within the message.
    """

    found: list[FormFault]
    end: int | None


def is_canonical(message: Message) -> bool:
    """Return whether a message, header and body, is in canonical form."""
    if message.body is None or message.schema is None or not _is_canonical_header(message):
        return False
    codec = message.schema.codec(message.api_version or 0)
    if codec.build(message.body) != message.frame[message.body_start : message.body_end]:
        return False
    return not non_canonical_check(message.schema, message.api_version or 0)(message.body)


def _is_canonical_header(message: Message) -> bool:
    """Return whether a header has no tagged fields, and a client id in UTF-8."""
    schema, version = message.header
    tags = version in schema.flexible
    if message.kind == "response":
        return message.body_start == 4 + tags
    if version == 0:
        return True
    size = max(int.from_bytes(message.frame[8:10], "big", signed=True), 0)
    if message.body_start != _REQUEST_HEADER_BYTES + size + tags:
        return False
    return message.client_id is None or not is_non_canonical_text(message.client_id)


def find_form_faults(message: Message) -> FormFaults:
    """Find the deviations of a complete message of a known API and version."""
    assert message.schema is not None
    reader = _FieldReader(message.frame)
    try:
        reader.read_message(*message.header, "header.")
        reader.read_message(message.schema, message.api_version or 0, "")
    except _Undecodable:
        return FormFaults(reader.faults, None)
    return FormFaults(reader.faults, reader.offset)


class _Undecodable(Exception):
    """The following bytes can't be decoded."""


class _FieldReader:
    """Decodes a message by its schema, and records deviations."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.offset = 0
        self.faults: list[FormFault] = []
        self.version = 0
        self.flexible = False

    def read_message(self, schema: Schema, version: int, prefix: str) -> None:
        self.version, self.flexible = version, version in schema.flexible
        self._read_struct(schema.fields, prefix)

    def _record(self, rule: str, path: str, start: int, found: str) -> None:
        self.faults.append(FormFault(rule, path, start, max(self.offset, start), found))

    def _read_bytes(self, size: int) -> bytes:
        data = self.data[self.offset : self.offset + size]
        if len(data) != size:
            raise _Undecodable
        self.offset += size
        return data

    def _read_varint(self, path: str) -> int:
        start, value = self.offset, 0
        for index in range(_MAX_VARINT_BYTES):
            byte = self._read_bytes(1)[0]
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                if value > 0xFFFFFFFF:
                    break
                if index and not byte:
                    self._record("E02", path, start, f"{value} takes {index + 1} bytes")
                return value
        self._record("E01", path, start, "a varint has more than 32 bits")
        raise _Undecodable

    def _read_length(
        self, path: str, size: int, *, nullable: bool, compact: bool
    ) -> tuple[int, int]:
        """Read a length or count; return it, and its offset."""
        start = self.offset
        if compact:
            length = self._read_varint(path) - 1
        else:
            length = int.from_bytes(self._read_bytes(size), "big", signed=True)
        if length < -1:
            self._record("E10", path, start, f"length {length}")
            raise _Undecodable
        if length == -1 and not nullable:
            self._record("E09", path, start, "null in a field that is not nullable")
        return length, start

    def _read_data(self, path: str, size: int, *, nullable: bool, compact: bool) -> bytes | None:
        length, start = self._read_length(path, size, nullable=nullable, compact=compact)
        if length < 0:
            return None
        left_bytes = len(self.data) - self.offset
        if length > left_bytes:
            self._record("E10", path, start, f"length {length}, {left_bytes} bytes are left")
            raise _Undecodable
        return self._read_bytes(length)

    def _read_struct(self, fields: tuple[Field, ...], path: str) -> Container:
        untagged, tagged = split_tagged(fields, self.version)
        out = Container()
        for each in untagged:
            out[each.name] = self._read_value(each, f"{path}{each.name}")
        if self.flexible:
            self._read_tags(tagged, path, out)
        return out

    def _read_tags(self, tagged: list[Field], path: str, out: Container) -> None:
        by_tag = {each.tag: each for each in tagged}
        for each in tagged:
            out[each.name] = each.zero(self.version)
        seen: set[int] = set()
        highest = -1
        tags_path = f"{path}tags"
        for _ in range(self._read_varint(tags_path)):
            start = self.offset
            tag, size = self._read_varint(tags_path), self._read_varint(tags_path)
            if tag < highest:
                self._record("E03", tags_path, start, f"tag {tag} comes after tag {highest}")
            if tag in seen:
                self._record("E05", tags_path, start, f"tag {tag} occurs twice")
            seen.add(tag)
            highest = max(highest, tag)
            end = self.offset + size
            if end > len(self.data):
                left_bytes = len(self.data) - self.offset
                self._record(
                    "E04",
                    tags_path,
                    start,
                    f"tag {tag} has {size} bytes, {left_bytes} are left",
                )
                raise _Undecodable
            declared = by_tag.get(tag)
            if declared is None:
                out.setdefault(UNKNOWN_TAGS, {})[tag] = self._read_bytes(size)
                continue
            name = f"{path}{declared.name}"
            value = out[declared.name] = self._read_value(declared, name)
            if self.offset != end:
                read = size + self.offset - end
                found = f"tag {tag} has {size} bytes, but its field {read}"
                self._record("E04", name, start, found)
                raise _Undecodable
            if value == declared.zero(self.version):
                self._record("E07", name, start, f"tag {tag} is written with its default value")

    def _read_value(self, each: Field, path: str) -> Any:
        if each.type == "struct":
            return self._read_nullable_struct(each, path)
        return self._read_typed(each, each.type, path, nullable=self.version in each.null)

    def _read_nullable_struct(self, each: Field, path: str) -> Container | None:
        if self.version in each.null:
            start = self.offset
            if each.tag is None:
                presence = int.from_bytes(self._read_bytes(1), "big", signed=True)
                is_valid, is_null = presence in (-1, 1), presence < 0
            else:
                presence = self._read_varint(path)
                is_valid, is_null = presence in (0, 1), presence == 0
            if not is_valid:
                self._record("E14", path, start, f"the presence byte of a struct is {presence}")
            if is_null:
                return None
        return self._read_struct(each.fields, f"{path}.")

    def _read_typed(self, each: Field, type_name: str, path: str, *, nullable: bool) -> Any:
        start, compact = self.offset, self.flexible and not each.classic
        if type_name.startswith("[]"):
            return self._read_array(each, type_name[2:], path, nullable=nullable)
        if type_name == "string":
            data = self._read_data(path, 2, nullable=nullable, compact=compact)
            text = None if data is None else data.decode("utf-8", "surrogateescape")
            if text is not None and is_non_canonical_text(text):
                self._record("E11", path, start, "the string is not valid UTF-8")
            return text
        if type_name in ("bytes", "records"):
            return self._read_data(path, 4, nullable=nullable, compact=compact)
        construct = construct_of(each, self.version, self.flexible)
        if type_name != each.type:  # an element of an array
            construct = construct.item
        value = construct.parse(self._read_bytes(construct.min_bytes))
        if type_name == "bool" and value.__class__ is not bool:
            self._record("E12", path, start, f"a boolean is {value}")
        return value

    def _read_array(
        self, each: Field, type_name: str, path: str, *, nullable: bool
    ) -> list[Any] | None:
        count, start = self._read_length(path, 4, nullable=nullable, compact=self.flexible)
        if count < 0:
            return None
        item_bytes = construct_of(each, self.version, self.flexible).item.min_bytes
        left_bytes = len(self.data) - self.offset
        if count * item_bytes > left_bytes:
            self._record("E13", path, start, f"count {count}, {left_bytes} bytes are left")
            raise _Undecodable
        if type_name == "struct":
            return [self._read_struct(each.fields, f"{path}[{i}].") for i in range(count)]
        return [
            self._read_typed(each, type_name, f"{path}[{i}]", nullable=False) for i in range(count)
        ]
