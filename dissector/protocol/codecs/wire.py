"""
Kafka's primitive types as Constructs: the only file with their encoding.

Everything here reads from one seekable stream of known length (`io.BytesIO`), so positions are
absolute, and checks every count and length against the remaining bytes before it reads them. A
mismatch raises `DecodeError`; the error collects the path of the field while it propagates, at no
cost for valid bytes.

The Constructs preserve values that Kafka would reject but that can be represented (a null where
none is allowed, text that is not UTF-8, a boolean of 2), because a dissector shows the actual
bytes, and `build` writes them back.

Source: https://kafka.apache.org/protocol#protocol_types; KIP-482 (compact forms and tagged fields).
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from construct import Construct

from dissector.errors import DecodeError, EncodeError
from dissector.protocol.codecs import emit
from dissector.protocol.codecs.compiled import MAX_CACHED_COUNT
from dissector.protocol.codecs.emit import BuildFunction, Emitted, ReadFunction


def bytes_left(stream: Any) -> int:
    """Return the number of unread bytes of the stream."""
    return len(stream.getbuffer()) - int(stream.tell())


def read_exactly(stream: Any, count: int) -> bytes:
    """
    Read exactly `count` bytes.

    Raises:
        DecodeError: Fewer are left; its position is the begin of the read.
    """
    data: bytes = stream.read(count)
    if len(data) != count:
        start = stream.tell() - len(data)
        raise DecodeError(f"{count} bytes expected, {len(data)} left", position=start)
    return data


class Number(Emitted):
    """A big-endian number of fixed size, by its `struct` format character."""

    def __init__(self, letter: str) -> None:
        super().__init__()
        self.format_char = letter
        self._struct = struct.Struct(f">{letter}")
        self.min_bytes = self._struct.size

    def _parse(self, stream: Any, context: Any, path: Any) -> Any:
        return self._struct.unpack(read_exactly(stream, self._struct.size))[0]

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        try:
            stream.write(self._struct.pack(obj))
        except (struct.error, TypeError, OverflowError):
            raise EncodeError(f"{obj!r} is not a number of this size") from None
        return obj

    def _sizeof(self, context: Any, path: Any) -> int:
        return self._struct.size

    def _emit_read(self, out: ReadFunction, target: str) -> None:
        out.number(self.format_char, target)

    def _emit_build(self, out: BuildFunction, value: str) -> None:
        out.number(self.format_char, value)


class Boolean(Emitted):
    """One byte; 0 and 1 are False and True, any other byte stays a number."""

    min_bytes = 1

    def _parse(self, stream: Any, context: Any, path: Any) -> bool | int:
        byte = read_exactly(stream, 1)[0]
        return bool(byte) if byte < 2 else byte

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        if not isinstance(obj, int) or not 0 <= obj <= 255:
            raise EncodeError(f"{obj!r} is not a boolean")
        stream.write(bytes((obj,)))
        return obj

    def _sizeof(self, context: Any, path: Any) -> int:
        return 1

    def _emit_read(self, out: ReadFunction, target: str) -> None:
        out.number("B", target)
        out.line(f"{target} = BOOLEANS[{target}]")

    def _emit_build(self, out: BuildFunction, value: str) -> None:
        out.number("B", f"boolean({value})")


class Uuid(Emitted):
    """Sixteen bytes as `uuid.UUID`."""

    min_bytes = 16

    def _parse(self, stream: Any, context: Any, path: Any) -> uuid.UUID:
        return uuid.UUID(bytes=read_exactly(stream, 16))

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        try:
            stream.write((obj if isinstance(obj, uuid.UUID) else uuid.UUID(obj)).bytes)
        except (ValueError, AttributeError, TypeError):
            raise EncodeError(f"{obj!r} is not a uuid") from None
        return obj

    def _sizeof(self, context: Any, path: Any) -> int:
        return 16

    def _emit_read(self, out: ReadFunction, target: str) -> None:
        out.number("16s", target)
        out.line(f"{target} = uuid_of({target})")

    def _emit_build(self, out: BuildFunction, value: str) -> None:
        out.part(f"uuid_bytes({value})")


class UnsignedVarint(Emitted):
    """
    Seven bits a byte, low bits first, at most five bytes.

    Source: KIP-482, "Unsigned Varints".
    """

    min_bytes = 1

    def _parse(self, stream: Any, context: Any, path: Any) -> int:
        start = stream.tell()
        value = 0
        for shift in (0, 7, 14, 21, 28):
            byte = read_exactly(stream, 1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > 0xFFFFFFFF:
                    break
                return value
        raise DecodeError("varint does not end within 32 bits", position=start)

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        rest = obj
        if not isinstance(rest, int) or not 0 <= rest <= 0xFFFFFFFF:
            raise EncodeError(f"{obj!r} is not an unsigned varint")
        while rest >= 0x80:
            stream.write(bytes((rest & 0x7F | 0x80,)))
            rest >>= 7
        stream.write(bytes((rest,)))
        return obj

    def _sizeof(self, context: Any, path: Any) -> int:
        raise EncodeError("a varint has no fixed size")

    def _emit_read(self, out: ReadFunction, target: str) -> None:
        out.number("B", target)
        with out.block(f"if {target} > 127:"):
            out.line(f"{target} += data[at] * 128 - 128")
            out.line("at += 1")
            with out.block(f"if {target} > 16383:"):
                out.line(f"{target}, at = read_varint(data, at - 2)")

    def _emit_build(self, out: BuildFunction, value: str) -> None:
        out.part(f"varint_bytes({value})")


class CompactLength(UnsignedVarint):
    """A length in flexible versions: n + 1 on the wire, and 0 for null (-1 as a value)."""

    def _parse(self, stream: Any, context: Any, path: Any) -> int:
        return super()._parse(stream, context, path) - 1

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        return super()._build(obj + 1, stream, context, path)

    def _emit_read(self, out: ReadFunction, target: str) -> None:
        super()._emit_read(out, target)
        out.line(f"{target} -= 1")

    def _emit_build(self, out: BuildFunction, value: str) -> None:
        super()._emit_build(out, f"{value} + 1")


int8, int16, int32, int64 = Number("b"), Number("h"), Number("i"), Number("q")
uint16, uint32, float64 = Number("H"), Number("I"), Number("d")
boolean, uuid16 = Boolean(), Uuid()
unsigned_varint, compact_length = UnsignedVarint(), CompactLength()


def _length(construct: Construct, stream: Any, context: Any, path: Any) -> int:
    """Read a length; -1 is null, and less is an error."""
    start = stream.tell()
    length: int = construct._parsereport(stream, context, path)
    if length < -1:
        raise DecodeError(f"length {length} is negative", position=start)
    return length


@contextmanager
def _emit_length(length: Construct, out: ReadFunction, target: str) -> Iterator[str]:
    """Generate the read of a length; yield its expression inside the branch that is not null."""
    count = out.name("length")
    if isinstance(length, CompactLength):
        # Kept as n + 1: a test for 0 is faster than a comparison with -1.
        unsigned_varint._emit_read(out, count)
        with out.block(f"if {count}:"):
            yield f"({count} - 1)"
    else:
        emit.read(length, out, count)
        with out.block(f"if {count} >= 0:"):
            yield count
        with out.block(f"elif {count} != -1:"):
            out.line("raise CodecFallback")
    with out.block("else:"):
        out.line(f"{target} = None")


class Bytes(Emitted):
    """A length and that many bytes, or null."""

    _decoded = ""
    _encoded = "if {0}.__class__ is not bytes: {0} = plain_bytes({0})"

    def __init__(self, length: Construct) -> None:
        super().__init__()
        self.length = length
        self.min_bytes = length.min_bytes

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

    def _emit_read(self, out: ReadFunction, target: str) -> None:
        with _emit_length(self.length, out, target) as length:
            end = out.name("end")
            out.line(f"{end} = at + {length}")
            out.line(f"{target} = data[at:{end}]{self._decoded}")
            out.line(f"at = {end}")

    def _emit_build(self, out: BuildFunction, value: str) -> None:
        data, length = out.name("data"), out.name("length")
        out.prepare(f"{data} = {value}")
        out.prepare(self._encoded.format(data))
        out.prepare(f"{length} = -1 if {data} is None else len({data})")
        emit.build(self.length, out, length)
        out.part(f"{data} or b''")


class Text(Bytes):
    """A length and that much UTF-8, or null; other bytes are preserved as surrogates."""

    _decoded = ".decode('utf-8', 'surrogateescape')"
    _encoded = (
        "{0} = {0}.encode('utf-8', 'surrogateescape') if {0}.__class__ is str else text_bytes({0})"
    )

    def _decode(self, data: bytes) -> str:
        return data.decode("utf-8", "surrogateescape")

    def _encode(self, obj: Any) -> bytes:
        if not isinstance(obj, str):
            raise EncodeError(f"{obj!r} is not text")
        try:
            return obj.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise EncodeError(f"{obj!r} can't be written as UTF-8") from None


class CountedArray(Emitted):
    """A count and that many items, or null."""

    def __init__(self, length: Construct, item: Construct) -> None:
        super().__init__()
        self.length = length
        self.item = item
        self.min_bytes = length.min_bytes

    def read_count(self, stream: Any, context: Any, path: Any) -> int:
        """
        Read the count; -1 is null.

        Raises:
            DecodeError: The remaining bytes are too few for that many items of minimal size.
        """
        start = stream.tell()
        count = _length(self.length, stream, context, path)
        if count > 0 and count * self.item.min_bytes > bytes_left(stream):
            raise DecodeError(
                f"count {count} but {bytes_left(stream)} bytes are left in the message",
                position=start,
            )
        return count

    def _parse(self, stream: Any, context: Any, path: Any) -> Any:
        count = self.read_count(stream, context, path)
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

    def _emit_read(self, out: ReadFunction, target: str) -> None:
        with _emit_length(self.length, out, target) as count:
            with out.block(f"if {count} * {self.item.min_bytes} > size - at:"):
                out.line("raise CodecFallback")
            if isinstance(self.item, Number):
                self._emit_numbers(out, target, count, self.item.format_char)
                return
            items, item = out.name("items"), out.name("item")
            out.line(f"{target} = {items} = []")
            with out.block(f"for _ in range({count}):"):
                emit.read(self.item, out, item)
                out.line(f"{items}.append({item})")

    def _emit_numbers(self, out: ReadFunction, target: str, count: str, letter: str) -> None:
        """Generate the read of all items by one `struct` call."""
        cached = out.constant(f"cached_unpackers({letter!r})", f"unpackers_{letter}")
        unpack = (
            f"{cached}[{count}] if {count} < {MAX_CACHED_COUNT} else unpacker({letter!r}, {count})"
        )
        out.line(f"{target} = list(({unpack})(data, at))")
        out.line(f"at += {count} * {self.item.min_bytes}")

    def _emit_build(self, out: BuildFunction, value: str) -> None:
        items, item, count = out.name("items"), out.name("item"), out.name("count")
        out.prepare(f"{items} = {value}")
        out.prepare(f"if {items}.__class__ is not list: {items} = plain_list({items})")
        out.prepare(f"{count} = -1 if {items} is None else len({items})")
        emit.build(self.length, out, count)
        if isinstance(self.item, Number):
            letter = self.item.format_char
            out.part(f"struct.pack('>%d{letter}' % len({items} or ()), *{items} or ())")
            return
        with out.block(f"for {item} in {items} or ():"):
            emit.build(self.item, out, item)
