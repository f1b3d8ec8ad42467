"""
Runtime support for the codec functions that `emit` generates.

The generated functions work on bytes and a position. On the way they check only what would
otherwise cost unbounded memory or time. Reading past the end is detected once, at the end of a
function: a position only ever grows, and a slice stops at the end of the bytes. A mismatch raises
one of `FALLBACK_ERRORS`, without a position; the caller then runs the interpreted codec, which
raises the error with field and position.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any
from uuid import UUID

from construct import Container

UNKNOWN_TAGS = "unknown_tags"
"""Key of the undeclared tagged fields in a Container: `{tag: bytes}`."""

Read = Callable[[bytes, int], tuple[Any, int]]
"""Reads a value at a position; returns it and the position of its end."""

Write = Callable[[Any], bytes]


class CodecFallback(Exception):
    """Bytes or value do not match the declaration; the interpreted codec finds the reason."""


FALLBACK_ERRORS = (
    CodecFallback,
    struct.error,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
)
"""Errors raised by generated functions if bytes or value do not match the declaration."""

BOOLEANS = (False, True, *range(2, 256))
"""Byte -> value of a boolean field; bytes above 1 stay numbers, to be written back unchanged."""

ONE_BYTE_VARINTS = tuple(bytes((n,)) for n in range(0x80))
"""The unsigned varints of one byte."""

MAX_CACHED_COUNT = 32
"""Arrays of fewer numbers are unpacked by cached `struct` formats."""

uuid_of = lru_cache(maxsize=4096)(lambda data: UUID(bytes=data))
"""Sixteen bytes as `UUID`, cached because the same few topic ids recur."""


dict_equal = dict.__eq__
"""Quick test for equal Containers; if it fails, the slow `Container.__eq__` must decide."""


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read an unsigned varint; return it and the position of its end."""
    value = 0
    for shift in (0, 7, 14, 21, 28):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, at
    raise CodecFallback


def varint_bytes(value: int) -> bytes:
    """Encode an unsigned varint."""
    if 0 <= value < 0x80:
        return ONE_BYTE_VARINTS[value]
    if not 0 <= value <= 0xFFFFFFFF:
        raise CodecFallback
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@cache
def cached_unpackers(letter: str) -> tuple[Callable[[bytes, int], tuple[Any, ...]], ...]:
    """Return functions that unpack 0, 1, 2, ... numbers, by their count."""
    return tuple(struct.Struct(f">{n}{letter}").unpack_from for n in range(MAX_CACHED_COUNT))


def unpacker(letter: str, count: int) -> Callable[[bytes, int], tuple[Any, ...]]:
    """Return the function that unpacks `count` numbers."""
    return struct.Struct(f">{count}{letter}").unpack_from


def read_tags(
    data: bytes, at: int, count: int, out: Container, known_tags: Mapping[int, tuple[str, Read]]
) -> int:
    """
    Read a non-empty tag section into a Container; return the position of its end.

    Args:
        data: The bytes.
        at: Position after the first byte of the number of fields.
        count: That byte.
        out: The Container; it already has the defaults of the declared tags.
        known_tags: Name and reader of each declared tag.
    """
    if count > 0x7F:
        count, at = read_varint(data, at - 1)
    seen: set[int] = set()
    for _ in range(count):
        tag, size = data[at], data[at + 1]
        at += 2
        if tag > 0x7F or size > 0x7F:
            tag, at = read_varint(data, at - 2)
            size, at = read_varint(data, at)
        end = at + size
        if tag in seen or end > len(data):
            raise CodecFallback
        seen.add(tag)
        if tag in known_tags:
            name, read = known_tags[tag]
            out[name], at = read(data, at)
            if at != end:
                raise CodecFallback
        else:
            out.setdefault(UNKNOWN_TAGS, {})[tag] = data[at:end]
            at = end
    return at


def tags_bytes(known_tags: dict[int, bytes], obj: Mapping[str, Any]) -> bytes:
    """Encode a tag section: declared fields and the mapping's unknown tags, sorted by tag."""
    values = dict(known_tags)
    unknown = obj.get(UNKNOWN_TAGS, {})
    if not isinstance(unknown, dict):
        raise CodecFallback
    for tag, data in unknown.items():
        if not isinstance(tag, int) or tag < 0 or not isinstance(data, bytes):
            raise CodecFallback
        values[tag] = data
    parts = [varint_bytes(len(values))]
    for tag, data in sorted(values.items()):
        parts += (varint_bytes(tag), varint_bytes(len(data)), data)
    return b"".join(parts)


def uuid_bytes(obj: Any) -> bytes:
    """Encode a uuid, given as `UUID` or as text."""
    return (obj if isinstance(obj, UUID) else UUID(obj)).bytes


def boolean(obj: Any) -> int:
    """Return the number to write for a boolean; `struct` checks its range."""
    if not isinstance(obj, int):
        raise CodecFallback
    return obj


def text_bytes(obj: Any) -> bytes | None:
    """Return the bytes of a text: None, or of a subclass of `str`."""
    if obj is None:
        return None
    if not isinstance(obj, str):
        raise CodecFallback
    return obj.encode("utf-8", "surrogateescape")


def plain_bytes(obj: Any) -> bytes | None:
    """Return None, bytes-like values and subclasses of `bytes` as `bytes`."""
    if obj is None:
        return None
    if not isinstance(obj, bytes | bytearray | memoryview):
        raise CodecFallback
    return bytes(obj)


def plain_list(obj: Any) -> list[Any] | tuple[Any, ...] | None:
    """Return None, tuples and subclasses of `list`; reject all others."""
    if obj is not None and not isinstance(obj, list | tuple):
        raise CodecFallback
    return obj


def parse_by(read: Read, stream: Any, interpreted: Callable[[Any, Any, Any], Any]) -> Any:
    """Parse from a stream; by the interpreted codec if the bytes do not match."""
    try:
        value, end = read(stream.getvalue(), stream.tell())
    except FALLBACK_ERRORS:
        return interpreted(stream, None, "")
    stream.seek(end)
    return value


def build_by(
    write: Write, obj: Any, stream: Any, interpreted: Callable[[Any, Any, Any, Any], Any]
) -> Any:
    """Build into a stream; by the interpreted codec if the value does not match."""
    try:
        data = write(obj)
    except FALLBACK_ERRORS:
        return interpreted(obj, stream, None, "")
    stream.write(data)
    return obj
