"""
Kafka's primitive types as Constructs: the only file that knows how a byte looks.

Everything here reads in place on one seekable stream of known length (`io.BytesIO`), so positions
are absolute, and checks every count and length against the bytes left before it takes them. What
does not fit raises `DecodeError`; on its way out the error collects the path of the field, so that
the good case pays nothing for it.

The Constructs keep what Kafka itself would refuse but still can be told apart (a null where none is
allowed, text that is no UTF-8, a boolean of 2), because a dissector shows what is there, and
`build` gives it back.

Source: https://kafka.apache.org/protocol#protocol_types; KIP-482 (compact forms and tagged fields).
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from construct import Construct, Container, Subconstruct

from dissector.errors import DecodeError, EncodeError

UNKNOWN_TAGS = "unknown_tags"
"""Key under which a Container keeps tagged fields that no declaration names: `{tag: bytes}`."""


def bytes_left(stream: Any) -> int:
    """Return how many bytes of the stream are still unread."""
    return len(stream.getbuffer()) - int(stream.tell())


def take(stream: Any, count: int) -> bytes:
    """
    Read exactly so many bytes.

    Raises:
        DecodeError: Fewer are left; the position is where the read began.
    """
    data: bytes = stream.read(count)
    if len(data) != count:
        at = stream.tell() - len(data)
        raise DecodeError(f"{count} bytes wanted, {len(data)} left", position=at)
    return data


class Number(Construct):  # type: ignore[misc]
    """A big-endian number of fixed size, by its `struct` letter."""

    def __init__(self, letter: str) -> None:
        super().__init__()
        self._struct = struct.Struct(f">{letter}")
        self.least = self._struct.size

    def _parse(self, stream: Any, context: Any, path: Any) -> Any:
        return self._struct.unpack(take(stream, self._struct.size))[0]

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        try:
            stream.write(self._struct.pack(obj))
        except (struct.error, TypeError, OverflowError):
            raise EncodeError(f"{obj!r} is no number of this size") from None
        return obj

    def _sizeof(self, context: Any, path: Any) -> int:
        return self._struct.size


class Boolean(Construct):  # type: ignore[misc]
    """One byte; 0 and 1 are False and True, any other byte stays the number it is."""

    least = 1

    def _parse(self, stream: Any, context: Any, path: Any) -> bool | int:
        byte = take(stream, 1)[0]
        return bool(byte) if byte < 2 else byte

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        if not isinstance(obj, int) or not 0 <= obj <= 255:
            raise EncodeError(f"{obj!r} is no boolean")
        stream.write(bytes((obj,)))
        return obj

    def _sizeof(self, context: Any, path: Any) -> int:
        return 1


class Uuid(Construct):  # type: ignore[misc]
    """Sixteen bytes as `uuid.UUID`."""

    least = 16

    def _parse(self, stream: Any, context: Any, path: Any) -> uuid.UUID:
        return uuid.UUID(bytes=take(stream, 16))

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        try:
            stream.write((obj if isinstance(obj, uuid.UUID) else uuid.UUID(obj)).bytes)
        except (ValueError, AttributeError, TypeError):
            raise EncodeError(f"{obj!r} is no uuid") from None
        return obj

    def _sizeof(self, context: Any, path: Any) -> int:
        return 16


class UnsignedVarint(Construct):  # type: ignore[misc]
    """
    Seven bits a byte, low bits first, at most five bytes.

    Source: KIP-482, "Unsigned Varints".
    """

    least = 1

    def _parse(self, stream: Any, context: Any, path: Any) -> int:
        start = stream.tell()
        value = 0
        for shift in (0, 7, 14, 21, 28):
            byte = take(stream, 1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > 0xFFFFFFFF:
                    break
                return value
        raise DecodeError("varint does not end within 32 bits", position=start)

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        rest = obj
        if not isinstance(rest, int) or not 0 <= rest <= 0xFFFFFFFF:
            raise EncodeError(f"{obj!r} is no unsigned varint")
        while rest >= 0x80:
            stream.write(bytes((rest & 0x7F | 0x80,)))
            rest >>= 7
        stream.write(bytes((rest,)))
        return obj

    def _sizeof(self, context: Any, path: Any) -> int:
        raise EncodeError("a varint has no fixed size")


class CompactLength(UnsignedVarint):
    """A length as the flexible versions write it: n + 1, and 0 for null (here -1)."""

    def _parse(self, stream: Any, context: Any, path: Any) -> int:
        return super()._parse(stream, context, path) - 1

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        return super()._build(obj + 1, stream, context, path)


int8, int16, int32, int64 = Number("b"), Number("h"), Number("i"), Number("q")
uint16, uint32, float64 = Number("H"), Number("I"), Number("d")
boolean, uuid16 = Boolean(), Uuid()
unsigned_varint, compact_length = UnsignedVarint(), CompactLength()


def _length(construct: Construct, stream: Any, context: Any, path: Any) -> int:
    """Read a length and hold it against the bytes left; -1 is null."""
    start = stream.tell()
    length: int = construct._parsereport(stream, context, path)
    if length < -1:
        raise DecodeError(f"length {length} is negative", position=start)
    return length


class Bytes(Construct):  # type: ignore[misc]
    """A length and so many bytes, or null."""

    def __init__(self, length: Construct) -> None:
        super().__init__()
        self.length = length
        self.least = length.least

    def _parse(self, stream: Any, context: Any, path: Any) -> Any:
        start = stream.tell()
        length = _length(self.length, stream, context, path)
        if length < 0:
            return None
        data = stream.read(length)
        if len(data) != length:
            raise DecodeError(
                f"length {length} but {len(data)} bytes are left in the message", position=start
            )
        return self._decode(data)

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        if obj is None:
            self.length._build(-1, stream, context, path)
            return None
        data = self._encode(obj)
        self.length._build(len(data), stream, context, path)
        stream.write(data)
        return obj

    def _decode(self, data: bytes) -> Any:
        return data

    def _encode(self, obj: Any) -> bytes:
        if not isinstance(obj, bytes | bytearray | memoryview):
            raise EncodeError(f"{obj!r} is not bytes")
        return bytes(obj)


class Text(Bytes):
    """A length and so much UTF-8, or null; bytes that are no UTF-8 survive as surrogates."""

    def _decode(self, data: bytes) -> str:
        return data.decode("utf-8", "surrogateescape")

    def _encode(self, obj: Any) -> bytes:
        if not isinstance(obj, str):
            raise EncodeError(f"{obj!r} is not text")
        try:
            return obj.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise EncodeError(f"{obj!r} can't be written as UTF-8") from None


class Counted(Construct):  # type: ignore[misc]
    """A count and so many items, or null."""

    def __init__(self, length: Construct, item: Construct) -> None:
        super().__init__()
        self.length = length
        self.item = item
        self.least = length.least

    def count(self, stream: Any, context: Any, path: Any) -> int:
        """
        Read the count; -1 is null.

        Raises:
            DecodeError: So many items can't be in the bytes that are left, however small they are.
        """
        start = stream.tell()
        count = _length(self.length, stream, context, path)
        if count > 0 and count * self.item.least > bytes_left(stream):
            raise DecodeError(
                f"count {count} but {bytes_left(stream)} bytes are left in the message",
                position=start,
            )
        return count

    def _parse(self, stream: Any, context: Any, path: Any) -> Any:
        count = self.count(stream, context, path)
        if count < 0:
            return None
        items: list[Any] = []
        parse = self.item._parsereport
        try:
            for _ in range(count):
                items.append(parse(stream, context, path))
        except DecodeError as error:
            raise error.within(f"[{len(items)}]") from None
        return items

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        if obj is None:
            self.length._build(-1, stream, context, path)
            return None
        if isinstance(obj, str | bytes) or not isinstance(obj, Sequence):
            raise EncodeError(f"{obj!r} is not a list")
        self.length._build(len(obj), stream, context, path)
        for index, item in enumerate(obj):
            try:
                self.item._build(item, stream, context, path)
            except EncodeError as error:
                raise error.within(f"[{index}]") from None
        return obj


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
