"""
What the functions that `emit` writes call while they run.

Those functions work on bytes and a position. They check as they go only what keeps them from taking
memory or time; that nothing was read behind the end they check once, when they are through: a
position only ever grows, and a slice stops at the end. Whatever does not fit raises one of
`FALLBACK_ERRORS`, without a place; the caller then has the interpreted form say what is wrong, and
where.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any
from uuid import UUID

from construct import Container

UNKNOWN_TAGS = "unknown_tags"
"""Key under which a Container keeps tagged fields that no declaration names: `{tag: bytes}`."""

Read = Callable[[bytes, int], tuple[Any, int]]
"""Reads a value at a position and tells where it ends."""

Write = Callable[[Any], bytes]


class EncodeFallback(Exception):
    """The bytes or the value are not as declared; how, the interpreted form knows."""


FALLBACK_ERRORS = (
    EncodeFallback,
    struct.error,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
)
"""What the compiled form raises."""

BOOLEANS = (False, True, *range(2, 256))
"""What a byte means as a boolean."""

ONE_BYTE_VARINTS = tuple(bytes((n,)) for n in range(0x80))
"""The unsigned varints of one byte."""

MAX_CACHED_COUNT = 32
"""Arrays of fewer numbers are unpacked by formats that are kept."""

uuid_of = lru_cache(maxsize=4096)(lambda data: UUID(bytes=data))
"""Sixteen bytes as `UUID`; the same few topic ids come again and again."""


dict_equal = dict.__eq__
"""Whether Containers are equal, for most that are; Container's own answer takes long."""


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read an unsigned varint, and tell where it ends."""
    value = 0
    for shift in (0, 7, 14, 21, 28):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, at
    raise EncodeFallback


def varint_bytes(value: int) -> bytes:
    """Write an unsigned varint."""
    if 0 <= value < 0x80:
        return ONE_BYTE_VARINTS[value]
    if not 0 <= value <= 0xFFFFFFFF:
        raise EncodeFallback
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@cache
def cached_unpackers(letter: str) -> tuple[Callable[[bytes, int], tuple[Any, ...]], ...]:
    """Return what unpacks 0, 1, 2, ... numbers."""
    return tuple(struct.Struct(f">{n}{letter}").unpack_from for n in range(MAX_CACHED_COUNT))


def unpacker(letter: str, count: int) -> Callable[[bytes, int], tuple[Any, ...]]:
    """Return what unpacks so many numbers."""
    return struct.Struct(f">{count}{letter}").unpack_from


def read_tags(
    data: bytes, at: int, count: int, out: Container, known_tags: Mapping[int, tuple[str, Read]]
) -> int:
    """
    Read a tag section that is not empty into a Container, and tell where it ends.

    Args:
        data: The bytes.
        at: Behind the first byte of the number of fields.
        count: That byte.
        out: Has the defaults of the known fields already.
        known_tags: Name and reader by tag.
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
            raise EncodeFallback
        seen.add(tag)
        if tag in known_tags:
            name, read = known_tags[tag]
            out[name], at = read(data, at)
            if at != end:
                raise EncodeFallback
        else:
            out.setdefault(UNKNOWN_TAGS, {})[tag] = data[at:end]
            at = end
    return at


def tags_bytes(known_tags: dict[int, bytes], obj: Mapping[str, Any]) -> bytes:
    """Write a tag section: the known fields, and the unknown ones of the mapping, by tag."""
    values = dict(known_tags)
    unknown = obj.get(UNKNOWN_TAGS, {})
    if not isinstance(unknown, dict):
        raise EncodeFallback
    for tag, data in unknown.items():
        if not isinstance(tag, int) or tag < 0 or not isinstance(data, bytes):
            raise EncodeFallback
        values[tag] = data
    parts = [varint_bytes(len(values))]
    for tag, data in sorted(values.items()):
        parts += (varint_bytes(tag), varint_bytes(len(data)), data)
    return b"".join(parts)


def uuid_bytes(obj: Any) -> bytes:
    """Write a uuid, or the text of one."""
    return (obj if isinstance(obj, UUID) else UUID(obj)).bytes


def boolean(obj: Any) -> int:
    """Return what is written for a boolean; its range is checked where it is packed."""
    if not isinstance(obj, int):
        raise EncodeFallback
    return obj


def text_bytes(obj: Any) -> bytes | None:
    """Return what is written for a text that is no plain `str`."""
    if obj is None:
        return None
    if not isinstance(obj, str):
        raise EncodeFallback
    return obj.encode("utf-8", "surrogateescape")


def plain_bytes(obj: Any) -> bytes | None:
    """Return what is written for bytes that are not plain `bytes`."""
    if obj is None:
        return None
    if not isinstance(obj, bytes | bytearray | memoryview):
        raise EncodeFallback
    return bytes(obj)


def plain_list(obj: Any) -> list[Any] | tuple[Any, ...] | None:
    """Return what is written for a list that is no plain `list`."""
    if obj is not None and not isinstance(obj, list | tuple):
        raise EncodeFallback
    return obj


def parse_by(read: Read, stream: Any, interpreted: Callable[[Any, Any, Any], Any]) -> Any:
    """Read from a stream; by the interpreted form where the bytes do not fit."""
    try:
        value, end = read(stream.getvalue(), stream.tell())
    except FALLBACK_ERRORS:
        return interpreted(stream, None, "")
    stream.seek(end)
    return value


def build_by(
    write: Write, obj: Any, stream: Any, interpreted: Callable[[Any, Any, Any, Any], Any]
) -> Any:
    """Write into a stream; by the interpreted form where the value does not fit."""
    try:
        data = write(obj)
    except FALLBACK_ERRORS:
        return interpreted(obj, stream, None, "")
    stream.write(data)
    return obj
