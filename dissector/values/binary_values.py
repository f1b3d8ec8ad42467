"""
CBOR and MessagePack: values that describe themselves in binary, in the types of JSON.

Bytes are hex, times ISO 8601 in UTC, and keys of maps that are no texts are written as JSON.

Source: RFC 8949 (CBOR); https://github.com/msgpack/msgpack/blob/master/spec.md (MessagePack)
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import datetime, timedelta
from math import isfinite
from typing import Any, TypeAlias
from uuid import UUID

from dissector.values.json_values import compact_json
from dissector.values.value_limits import Room, ValueProblem

_Read: TypeAlias = Callable[[bytes, int, Room], tuple[Any, int]]

_ENDS_EARLY = "it ends inside a value"
_EPOCH = datetime(1970, 1, 1)
_MAX_NUMBER_BYTES = 64
_half, _float, _double = (struct.Struct(form).unpack_from for form in (">e", ">f", ">d"))


def cbor_value(data: bytes) -> Any:
    """
    Return the value of a CBOR item.

    Raises:
        ValueProblem: It is damaged, or more follows it.
    """
    return _whole(_cbor, data)


def msgpack_value(data: bytes) -> Any:
    """
    Return the value of a MessagePack object.

    Raises:
        ValueProblem: It is damaged, or more follows it.
    """
    return _whole(_msgpack, data)


def _whole(read: _Read, data: bytes) -> Any:
    try:
        value, end = read(data, 0, Room(len(data)))
    except (IndexError, struct.error):
        raise ValueProblem(_ENDS_EARLY) from None
    except UnicodeDecodeError:
        raise ValueProblem("a text in it is not UTF-8") from None
    if value is _BREAK:
        raise ValueProblem("the end of a list before byte 1")
    if end != len(data):
        raise ValueProblem(f"{len(data) - end:,} bytes behind its end at byte {end:,}")
    return value


def _content(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    end = at + size
    if end > len(data):
        raise ValueProblem(_ENDS_EARLY)
    return data[at:end], end


def _number(value: float) -> float | str:
    if isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _key(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return compact_json(value)
    except ValueError:
        raise ValueProblem("a number of too many digits") from None


def _time(seconds: float, nanos: int = 0) -> str | None:
    """Return a time as text; None if it is too far off."""
    try:
        text = (_EPOCH + timedelta(seconds=seconds)).isoformat()
    except (OverflowError, ValueError):
        return None
    return f"{text}.{nanos:09}Z" if nanos else f"{text}Z"


# CBOR

_BREAK: Any = object()
_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _TAG, _SIMPLE = range(8)
_INDEFINITE = 31


def _cbor(data: bytes, at: int, room: Room) -> tuple[Any, int]:
    head = data[at]
    at += 1
    major, short = head >> 5, head & 31
    if major == _SIMPLE:
        return _cbor_simple(short, data, at)
    if short == _INDEFINITE:
        return _cbor_indefinite(major, data, at, room)
    number, at = _cbor_number(short, data, at)
    match major:
        case 0:
            return number, at
        case 1:
            return -1 - number, at
        case 2:
            content, at = _content(data, at, number)
            return content.hex(), at
        case 3:
            content, at = _content(data, at, number)
            return content.decode(), at
    room.enter()
    value: Any
    if major == _TAG:
        value, at = _cbor_item(data, at, room)
        value = _tagged(number, value)
    elif major == _ARRAY:
        value = []
        for _ in range(number):
            item, at = _cbor_item(data, at, room)
            value.append(item)
    else:
        value = {}
        for _ in range(number):
            key, at = _cbor_item(data, at, room)
            value[_key(key)], at = _cbor_item(data, at, room)
    room.leave()
    return value, at


def _cbor_item(data: bytes, at: int, room: Room) -> tuple[Any, int]:
    """Read an item that must not be the end of a list."""
    value, at = _cbor(data, at, room)
    if value is _BREAK:
        raise ValueProblem(f"the end of a list before byte {at:,}")
    return value, at


def _cbor_number(short: int, data: bytes, at: int) -> tuple[int, int]:
    if short < 24:
        return short, at
    if short > 27:
        raise ValueProblem(f"byte {at - 1:,} is no item of CBOR")
    content, at = _content(data, at, 1 << (short - 24))
    return int.from_bytes(content, "big"), at


def _cbor_simple(short: int, data: bytes, at: int) -> tuple[Any, int]:
    match short:
        case 20 | 21:
            return short == 21, at
        case 22 | 23:
            return None, at
        case 25:
            return _number(_half(data, at)[0]), at + 2
        case 26:
            return _number(_float(data, at)[0]), at + 4
        case 27:
            return _number(_double(data, at)[0]), at + 8
        case 31:
            return _BREAK, at
    number, at = _cbor_number(short, data, at)
    return number, at


def _cbor_indefinite(major: int, data: bytes, at: int, room: Room) -> tuple[Any, int]:
    """Read items up to the end of their list: texts and bytes are in pieces."""
    if major not in (_BYTES, _TEXT, _ARRAY, _MAP):
        raise ValueProblem(f"byte {at - 1:,} is no item of CBOR")
    room.enter()
    items: list[Any] = []
    while True:
        if major in (_BYTES, _TEXT) and data[at] >> 5 != major and data[at] != 0xFF:
            raise ValueProblem(f"byte {at:,} is no piece of a text")
        item, at = _cbor(data, at, room)
        if item is _BREAK:
            break
        items.append(item)
    room.leave()
    if major == _ARRAY:
        return items, at
    if major == _MAP:
        if len(items) % 2:
            raise ValueProblem(f"a map without its last value before byte {at:,}")
        return dict(zip(map(_key, items[::2]), items[1::2], strict=True)), at
    return "".join(items), at


def _tagged(tag: int, value: Any) -> Any:
    """Return the value of a tag: a time, a large number, a UUID; of other tags the content."""
    match tag, value:
        case 1, int() | float() if not isinstance(value, bool):
            return _time(value) or value
        case ((2 | 3), str()) if len(value) <= 2 * _MAX_NUMBER_BYTES:
            try:
                number = int(value or "0", 16)
            except ValueError:
                return value
            return number if tag == 2 else -1 - number
        case 37, str() if len(value) == 32:
            try:
                return str(UUID(value))
            except ValueError:
                return value
    return value


# MessagePack

_FIXED_NUMBERS = {
    0xCA: (_float, 4),
    0xCB: (_double, 8),
    **{
        0xCC + at: (struct.Struct(f">{form}").unpack_from, 1 << at % 4)
        for at, form in enumerate("BHIQbhiq")
    },
}
_SIZES = {
    **{0xC4 + at: 1 << at for at in range(3)},
    **{0xC7 + at: 1 << at for at in range(3)},
    **{0xD9 + at: 1 << at for at in range(3)},
    **{0xDC + at: 2 << at for at in range(2)},
    **{0xDE + at: 2 << at for at in range(2)},
}
"""Bytes of a size by the byte before it."""


def _msgpack(data: bytes, at: int, room: Room) -> tuple[Any, int]:
    head = data[at]
    at += 1
    if head < 0x80:
        return head, at
    if head >= 0xE0:
        return head - 256, at
    if head < 0x90:
        return _msgpack_map(head & 15, data, at, room)
    if head < 0xA0:
        return _msgpack_list(head & 15, data, at, room)
    if head < 0xC0:
        content, at = _content(data, at, head & 31)
        return content.decode(), at
    if head in _FIXED_NUMBERS:
        unpack, size = _FIXED_NUMBERS[head]
        value = unpack(data, at)[0]
        return (_number(value) if isinstance(value, float) else value), at + size
    if head in _SIZES:
        content, at = _content(data, at, _SIZES[head])
        return _msgpack_sized(head, int.from_bytes(content, "big"), data, at, room)
    if 0xD4 <= head <= 0xD8:
        return _msgpack_extension(1 << (head - 0xD4), data, at)
    if head == 0xC1:
        raise ValueProblem(f"byte {at - 1:,} is no object of MessagePack")
    return None if head == 0xC0 else head == 0xC3, at


def _msgpack_sized(head: int, size: int, data: bytes, at: int, room: Room) -> tuple[Any, int]:
    if head >= 0xDE:
        return _msgpack_map(size, data, at, room)
    if head >= 0xDC:
        return _msgpack_list(size, data, at, room)
    if 0xC7 <= head <= 0xC9:
        return _msgpack_extension(size, data, at)
    content, at = _content(data, at, size)
    return (content.decode() if head >= 0xD9 else content.hex()), at


def _msgpack_list(count: int, data: bytes, at: int, room: Room) -> tuple[list[Any], int]:
    room.enter()
    items = []
    for _ in range(count):
        item, at = _msgpack(data, at, room)
        items.append(item)
    room.leave()
    return items, at


def _msgpack_map(count: int, data: bytes, at: int, room: Room) -> tuple[dict[str, Any], int]:
    room.enter()
    items: dict[str, Any] = {}
    for _ in range(count):
        key, at = _msgpack(data, at, room)
        items[_key(key)], at = _msgpack(data, at, room)
    room.leave()
    return items, at


def _msgpack_extension(size: int, data: bytes, at: int) -> tuple[Any, int]:
    """Read an extension: a time, or its type and bytes."""
    kind = data[at] - 256 if data[at] & 0x80 else data[at]
    content, at = _content(data, at + 1, size)
    if kind == -1 and (found := _msgpack_time(content)) is not None:
        return found, at
    return {"type": kind, "data": content.hex()}, at


def _msgpack_time(content: bytes) -> str | None:
    number = int.from_bytes(content, "big")
    match len(content):
        case 4:
            return _time(number)
        case 8:
            return _time(number & (1 << 34) - 1, number >> 34)
        case 12:
            seconds = int.from_bytes(content[4:], "big", signed=True)
            return _time(seconds, int.from_bytes(content[:4], "big"))
    return None
