"""
Structs of named members, nullable structs and tag sections, built from the types of `wire`.

Source: https://kafka.apache.org/protocol#protocol_messages; KIP-482 (tagged fields), KIP-893
(nullable structs).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from construct import Construct, Container, Subconstruct

from dissector.errors import DecodeError, EncodeError
from dissector.protocol.codecs import emit
from dissector.protocol.codecs.compiled import UNKNOWN_TAGS
from dissector.protocol.codecs.emit import BuildFunction, Emitted, ReadFunction
from dissector.protocol.codecs.wire import bytes_left, read_exactly, unsigned_varint

MIN_TEMPLATE_FIELDS = 8
"""From this number of fields on, copying and overwriting a Container is faster than filling it."""


class Nullable(Emitted, Subconstruct):  # type: ignore[misc]
    """
    A struct that may be absent: int8 1 and the struct, or int8 -1.

    Source: KIP-893 (nullable structs).
    """

    min_bytes = 1
    null_marker = b"\xff"

    def read_is_null(self, stream: Any) -> bool:
        """Read the marker before the struct; return whether the struct is null."""
        return read_exactly(stream, 1)[0] >= 0x80

    def _parse(self, stream: Any, context: Any, path: Any) -> Any:
        if self.read_is_null(stream):
            return None
        return self.subcon._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        stream.write(self.null_marker if obj is None else b"\x01")
        if obj is not None:
            self.subcon._build(obj, stream, context, path)
        return obj

    def _emit_read(self, out: ReadFunction, target: str) -> None:
        mark = out.name("mark")
        with out.block(f"if {self._emit_is_null(out, mark)}:"):
            out.line(f"{target} = None")
        with out.block("else:"):
            emit.read(self.subcon, out, target)

    def _emit_is_null(self, out: ReadFunction, mark: str) -> str:
        out.number("b", mark)
        return f"{mark} < 0"

    def _emit_build(self, out: BuildFunction, value: str) -> None:
        struct = out.name("struct")
        out.prepare(f"{struct} = {value}")
        out.part(f"{self.null_marker!r} if {struct} is None else b'\\x01'")
        with out.block(f"if {struct} is not None:"):
            emit.build(self.subcon, out, struct)


class NullableTagged(Nullable):
    """
    A tagged struct that may be absent: unsigned varint 1 and the struct, or 0.

    Source: the code that Kafka's MessageDataGenerator.java generates for
    ConsumerGroupMemberMetadataValue.
    """

    null_marker = b"\0"

    def read_is_null(self, stream: Any) -> bool:
        """Read the marker before the struct; return whether the struct is null."""
        return unsigned_varint._parse(stream, None, "") == 0

    def _emit_is_null(self, out: ReadFunction, mark: str) -> str:
        unsigned_varint._emit_read(out, mark)
        return f"{mark} == 0"


class Member:
    """
    A named member of a `Fields`.

    Attributes:
        name: Key in the Container.
        construct: Parses and builds the value.
        default: Written if the mapping to build lacks the key; ellipsis if the key is required; a
            function that creates it if the value is mutable.
    """

    __slots__ = ("construct", "default", "name")

    def __init__(self, name: str, construct: Construct, default: Any = ...) -> None:
        self.name = name
        self.construct = construct
        self.default = default

    def new_default(self) -> Any:
        """Return the default, as a new object if it is mutable."""
        return self.default() if callable(self.default) else self.default

    def build(self, obj: Mapping[str, Any], stream: Any, context: Any, path: Any) -> None:
        """Build this member of a mapping."""
        value = obj.get(self.name, self.default)
        try:
            if value is ...:
                raise EncodeError("is missing")
            self.construct._build(value, stream, context, path)
        except EncodeError as error:
            raise error.within(self.name) from None


class Fields(Emitted):
    """
    Named members in wire order: a `construct.Struct` without contexts.

    `construct.Struct` creates a context for each struct, which costs more than parsing its fields.
    No field of a declared version depends on another one, so this class needs none; otherwise it
    behaves the same.
    """

    def __init__(self, members: Sequence[Member], tagged: TaggedFields | None = None) -> None:
        super().__init__()
        self.members = tuple(members)
        self.tagged = tagged
        self._readers = tuple((m.name, m.construct._parsereport) for m in members)
        self.min_bytes = sum(m.construct.min_bytes for m in members) + (tagged is not None)

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

    def _emit_read(self, out: ReadFunction, target: str) -> None:
        fields = out.name("fields")
        out.line(f"{target} = {fields} = Container({self._template(out)})")
        for member in self.members:
            emit.read(member.construct, out, f"{fields}[{member.name!r}]")
        if self.tagged is not None:
            self.tagged._emit_read(out, fields)

    def _template(self, out: ReadFunction) -> str:
        """Return a dict to copy for large Containers, which is faster than filling; else empty."""
        names = [member.name for member in self.members]
        if self.tagged is not None:
            names += [member.name for member in self.tagged.known_tags.values()]
        if len(names) < MIN_TEMPLATE_FIELDS:
            return ""
        return out.constant(f"dict.fromkeys(({', '.join(map(repr, names))}))")

    def _emit_build(self, out: BuildFunction, value: str) -> None:
        fields = out.name("fields")
        out.prepare(f"{fields} = {value}")
        kind = f"{fields}.__class__"
        is_other = f"{kind} is not Container and {kind} is not dict"
        is_other += f" and not isinstance({fields}, Container)"
        out.prepare(f"if {is_other}: raise CodecFallback")
        for member in self.members:
            found = f"{fields}[{member.name!r}]"
            if member.default is not ...:
                found = f"{fields}.get({member.name!r}, {out.literal(member.new_default())})"
            emit.build(member.construct, out, found)
        if self.tagged is not None:
            self.tagged._emit_build(out, fields)


class TaggedFields:
    """
    The tag section at the end of each struct of a flexible version.

    Declared tags become keys of the struct's own Container, absent ones with their default; unknown
    tags are stored under `UNKNOWN_TAGS`, a key that exists only if there are any. Tags are written
    in ascending order, without declared fields that have their default.

    Source: KIP-482, "Tagged Fields".
    """

    def __init__(self, known_tags: Mapping[int, Member]) -> None:
        self.known_tags = dict(known_tags)

    def parse_into(self, out: Container, stream: Any, context: Any) -> None:
        """Read the section into a Container."""
        for each in self.known_tags.values():
            dict.__setitem__(out, each.name, each.new_default())
        for tag, size, start in self.iter_tags(stream, context):
            member = self.known_tags.get(tag)
            if member is None:
                out.setdefault(UNKNOWN_TAGS, {})[tag] = read_exactly(stream, size)
                continue
            try:
                value = member.construct._parsereport(stream, context, "")
            except DecodeError as error:
                raise error.within(member.name) from None
            self.check_end(stream, start + size, member.name)
            dict.__setitem__(out, member.name, value)

    def iter_tags(self, stream: Any, context: Any) -> Any:
        """Yield (tag, size, start of the value); the caller must read the value before the next."""
        count_start = stream.tell()
        count = unsigned_varint._parse(stream, context, "")
        if count * 2 > bytes_left(stream):
            raise DecodeError(
                f"{count} tagged fields but {bytes_left(stream)} bytes are left",
                position=count_start,
            )
        seen: set[int] = set()
        for _ in range(count):
            at = stream.tell()
            tag = unsigned_varint._parse(stream, context, "")
            size = unsigned_varint._parse(stream, context, "")
            if tag in seen:
                raise DecodeError(f"tag {tag} occurs twice", position=at)
            if size > bytes_left(stream):
                raise DecodeError(
                    f"tag {tag} has size {size} but {bytes_left(stream)} bytes are left",
                    position=at,
                )
            seen.add(tag)
            yield tag, size, stream.tell()

    @staticmethod
    def check_end(stream: Any, end: int, name: str) -> None:
        """Check that a declared tagged field ends at its size."""
        if stream.tell() != end:
            raise DecodeError(
                f"tagged field ends at byte {stream.tell()}, its size says {end}",
                name,
                position=min(stream.tell(), end),
            )

    def build_from(self, obj: Mapping[str, Any], stream: Any, context: Any) -> None:
        """Build the section of a mapping."""
        values: dict[int, bytes] = {}
        for tag, member in self.known_tags.items():
            default = member.new_default()
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
                raise EncodeError(f"tag {tag!r} with {data!r} is not a tagged field", UNKNOWN_TAGS)
            values[tag] = bytes(data)
        unsigned_varint._build(len(values), stream, context, "")
        for tag, data in sorted(values.items()):
            unsigned_varint._build(tag, stream, context, "")
            unsigned_varint._build(len(data), stream, context, "")
            stream.write(data)

    def _emit_read(self, out: ReadFunction, fields: str) -> None:
        """Generate statements that read the section into a Container."""
        count = out.name("count")
        out.number("B", count)
        readers = []
        for tag, member in self.known_tags.items():
            out.line(f"{fields}[{member.name!r}] = {out.literal(member.new_default())}")
            readers.append(
                f"{tag}: ({member.name!r}, {emit.add_read_function(member.construct, out.code)})"
            )
        known = out.constant(f"{{{', '.join(readers)}}}") if readers else "{}"
        with out.block(f"if {count}:"):
            out.line(f"at = read_tags(data, at, {count}, {fields}, {known})")

    def _emit_build(self, out: BuildFunction, fields: str) -> None:
        """Generate statements that build the section from a mapping."""
        known = "{}"
        if self.known_tags:
            known = out.name("known")
            out.prepare(f"{known} = {{}}")
        for tag, member in self.known_tags.items():
            value, build = out.name("value"), emit.add_build_function(member.construct, out.code)
            default = out.constant(out.literal(member.new_default()))
            out.prepare(f"{value} = {fields}.get({member.name!r}, {default})")
            differs = f"{value} != {default}"
            if isinstance(member.new_default(), Container):
                same = f"{value}.__class__ is Container and dict_equal({value}, {default})"
                differs = f"not ({same}) and {differs}"
            out.prepare(f"if {differs}: {known}[{tag}] = {build}({value})")
        test = f"{UNKNOWN_TAGS!r} in {fields}"
        if self.known_tags:
            test = f"{known} or {test}"
        out.part(f"tags_bytes({known}, {fields}) if {test} else b'\\0'")
