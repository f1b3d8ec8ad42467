"""
Structs of named members, nullable structs and tag sections, made of the types of `wire`.

Source: https://kafka.apache.org/protocol#protocol_messages; KIP-482 (tagged fields), KIP-893
(nullable structs).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from construct import Construct, Container, Subconstruct

from dissector.errors import DecodeError, EncodeError
from dissector.protocol.wire import bytes_left, take, unsigned_varint

UNKNOWN_TAGS = "unknown_tags"
"""Key under which a Container keeps tagged fields that no declaration names: `{tag: bytes}`."""


class Nullable(Subconstruct):  # type: ignore[misc]
    """
    A struct that may be absent: int8 1 and the struct, or int8 -1.

    Source: KIP-893 (nullable structs).
    """

    least = 1
    null = b"\xff"

    def absent(self, stream: Any) -> bool:
        """Read what stands in front of the struct, and tell whether there is none."""
        return take(stream, 1)[0] >= 0x80

    def _parse(self, stream: Any, context: Any, path: Any) -> Any:
        if self.absent(stream):
            return None
        return self.subcon._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        stream.write(self.null if obj is None else b"\x01")
        if obj is not None:
            self.subcon._build(obj, stream, context, path)
        return obj


class NullableTagged(Nullable):
    """
    A tagged struct that may be absent: unsigned varint 1 and the struct, or 0.

    Source: what Kafka's MessageDataGenerator.java makes of ConsumerGroupMemberMetadataValue.
    """

    null = b"\0"

    def absent(self, stream: Any) -> bool:
        """Read what stands in front of the struct, and tell whether there is none."""
        return unsigned_varint._parse(stream, None, "") == 0


class Member:
    """
    A named place in a `Fields`.

    Attributes:
        name: Key in the Container.
        construct: How it is read.
        default: Written where the mapping to build has no such key; ellipsis where it must.
    """

    __slots__ = ("construct", "default", "name")

    def __init__(self, name: str, construct: Construct, default: Any = ...) -> None:
        self.name = name
        self.construct = construct
        self.default = default

    def build(self, obj: Mapping[str, Any], stream: Any, context: Any, path: Any) -> None:
        """Write this member of a mapping."""
        value = obj.get(self.name, self.default)
        try:
            if value is ...:
                raise EncodeError("is missing")
            self.construct._build(value, stream, context, path)
        except EncodeError as error:
            raise error.within(self.name) from None


class Fields(Construct):  # type: ignore[misc]
    """
    Named members in wire order: a Struct without the predicates.

    `construct.Struct` gives each struct a context of its own, which costs more than reading its
    fields. Nothing in a version's declaration looks at other fields, so this one does without; else
    it behaves the same.
    """

    def __init__(self, members: Sequence[Member], tagged: TaggedFields | None = None) -> None:
        super().__init__()
        self.members = tuple(members)
        self.tagged = tagged
        self._readers = tuple((m.name, m.construct._parsereport) for m in members)
        self.least = sum(m.construct.least for m in members) + (tagged is not None)

    def _parse(self, stream: Any, context: Any, path: Any) -> Container:
        out = Container()
        name = ""
        try:
            for name, parse in self._readers:
                dict.__setitem__(out, name, parse(stream, context, path))
        except DecodeError as error:
            raise error.within(name) from None
        if self.tagged is not None:
            self.tagged.parse_into(out, stream, context)
        return out

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        if not isinstance(obj, Mapping):
            raise EncodeError(f"{obj!r} is not a mapping")
        for member in self.members:
            member.build(obj, stream, context, path)
        if self.tagged is not None:
            self.tagged.build_from(obj, stream, context)
        return obj


class TaggedFields:
    """
    The tag section that ends each struct of a flexible version.

    Known tags become keys of the struct's own Container, absent ones at their default; unknown ones
    are kept under `UNKNOWN_TAGS`, which is there only when there are any. Written in ascending
    order, a known field at its default left out.

    Source: KIP-482, "Tagged Fields".
    """

    def __init__(self, known: Mapping[int, Member]) -> None:
        self.known = dict(known)
        self._names = [(m.name, m.default) for m in self.known.values()]

    def parse_into(self, out: Container, stream: Any, context: Any) -> None:
        """Read the section into a Container."""
        for name, default in self._names:
            dict.__setitem__(out, name, default() if callable(default) else default)
        for tag, size, start in self.entries(stream, context):
            member = self.known.get(tag)
            if member is None:
                out.setdefault(UNKNOWN_TAGS, {})[tag] = take(stream, size)
                continue
            try:
                value = member.construct._parsereport(stream, context, "")
            except DecodeError as error:
                raise error.within(member.name) from None
            self.check_end(stream, start + size, member.name)
            dict.__setitem__(out, member.name, value)

    def entries(self, stream: Any, context: Any) -> Any:
        """Yield (tag, size, start of the value); the caller reads the value before it goes on."""
        count_at = stream.tell()
        count = unsigned_varint._parse(stream, context, "")
        if count * 2 > bytes_left(stream):
            raise DecodeError(
                f"{count} tagged fields but {bytes_left(stream)} bytes are left", position=count_at
            )
        seen: set[int] = set()
        for _ in range(count):
            at = stream.tell()
            tag = unsigned_varint._parse(stream, context, "")
            size = unsigned_varint._parse(stream, context, "")
            if tag in seen:
                raise DecodeError(f"tag {tag} is there twice", position=at)
            if size > bytes_left(stream):
                raise DecodeError(
                    f"tag {tag} has size {size} but {bytes_left(stream)} bytes are left",
                    position=at,
                )
            seen.add(tag)
            yield tag, size, stream.tell()

    @staticmethod
    def check_end(stream: Any, end: int, name: str) -> None:
        """Hold the end of a known tagged field against the size it came with."""
        if stream.tell() != end:
            raise DecodeError(
                f"tagged field ends at byte {stream.tell()}, its size says {end}",
                name,
                position=min(stream.tell(), end),
            )

    def build_from(self, obj: Mapping[str, Any], stream: Any, context: Any) -> None:
        """Write the section of a mapping."""
        values: dict[int, bytes] = {}
        for tag, member in self.known.items():
            default = member.default() if callable(member.default) else member.default
            value = obj.get(member.name, default)
            if value != default:
                try:
                    values[tag] = member.construct.build(value)
                except EncodeError as error:
                    raise error.within(member.name) from None
        unknown = obj.get(UNKNOWN_TAGS, {})
        if not isinstance(unknown, Mapping):
            raise EncodeError(f"{unknown!r} is not a mapping", UNKNOWN_TAGS)
        for tag, data in unknown.items():
            if not isinstance(tag, int) or not isinstance(data, bytes | bytearray | memoryview):
                raise EncodeError(f"tag {tag!r} with {data!r} is no tagged field", UNKNOWN_TAGS)
            values[tag] = bytes(data)
        unsigned_varint._build(len(values), stream, context, "")
        for tag, data in sorted(values.items()):
            unsigned_varint._build(tag, stream, context, "")
            unsigned_varint._build(len(data), stream, context, "")
            stream.write(data)
