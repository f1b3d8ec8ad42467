"""
Readers of Avro's types: functions of the bytes, a position and the room left.

Each returns the value in the types of JSON, and the position behind it. A union gives the value of
its branch; `bytes` and `fixed` are hex; logical types are ISO 8601 texts in UTC, decimals numbers.

Source: https://avro.apache.org/docs/1.12.0/specification/
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from math import isfinite
from typing import Any, TypeAlias
from uuid import UUID

from dissector.values.value_limits import Room, ValueProblem

Read: TypeAlias = Callable[[bytes, int, Room], tuple[Any, int]]

ENDS_EARLY = "it ends before its schema does"

_MAX_DECIMAL_BYTES = 64
_EXACT_DIGITS = 15
"""Digits of a decimal that a number of JSON keeps."""

unpack_float = struct.Struct("<f").unpack_from
unpack_double = struct.Struct("<d").unpack_from
_duration = struct.Struct("<III").unpack

_EPOCH = datetime(1970, 1, 1)
_DAY_0 = date(1970, 1, 1)


def read_long(data: bytes, at: int, room: Room) -> tuple[int, int]:
    """Read an int or a long: a zigzag varint."""
    byte = data[at]
    at += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at
    number = byte & 0x7F
    shift = 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise ValueProblem(f"a number of more than 10 bytes before byte {at:,}")
    if number >> 64:
        raise ValueProblem(f"a number of more than 64 bits before byte {at:,}")
    return (number >> 1) ^ -(number & 1), at


def read_null(data: bytes, at: int, room: Room) -> tuple[None, int]:
    """Read a null: no bytes."""
    return None, at


def read_boolean(data: bytes, at: int, room: Room) -> tuple[bool, int]:
    """Read a boolean."""
    byte = data[at]
    if byte > 1:
        raise ValueProblem(f"byte {at:,} is {byte}, not true or false")
    return byte == 1, at + 1


def _number(value: float) -> float | str:
    """Return a number that JSON has, or its word."""
    if isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def read_float(data: bytes, at: int, room: Room) -> tuple[float | str, int]:
    """Read a float of 4 bytes."""
    return _number(unpack_float(data, at)[0]), at + 4


def read_double(data: bytes, at: int, room: Room) -> tuple[float | str, int]:
    """Read a float of 8 bytes."""
    return _number(unpack_double(data, at)[0]), at + 8


def _content(data: bytes, at: int, room: Room) -> tuple[bytes, int]:
    """Read a length and as many bytes."""
    size, at = read_long(data, at, room)
    end = at + size
    if size < 0:
        raise ValueProblem(f"a negative length before byte {at:,}")
    if end > len(data):
        raise ValueProblem(ENDS_EARLY)
    return data[at:end], end


def read_string(data: bytes, at: int, room: Room) -> tuple[str, int]:
    """Read a text."""
    size = data[at]
    if size & 0x81:  # negative, or of more than one byte
        content, end = _content(data, at, room)
    else:
        at += 1
        end = at + (size >> 1)
        if end > len(data):
            raise ValueProblem(ENDS_EARLY)
        content = data[at:end]
    return content.decode(), end


def read_bytes(data: bytes, at: int, room: Room) -> tuple[str, int]:
    """Read bytes, as hex."""
    content, at = _content(data, at, room)
    return content.hex(), at


def fixed_reader(size: int) -> Read:
    """Return a reader of as many bytes, as hex."""

    def read(data: bytes, at: int, room: Room) -> tuple[str, int]:
        end = at + size
        if end > len(data):
            raise ValueProblem(ENDS_EARLY)
        return data[at:end].hex(), end

    return read


def enum_reader(symbols: Sequence[str]) -> Read:
    """Return a reader of one of the symbols."""
    count = len(symbols)

    def read(data: bytes, at: int, room: Room) -> tuple[str, int]:
        index, at = read_long(data, at, room)
        if not 0 <= index < count:
            raise ValueProblem(f"symbol {index} of {count} before byte {at:,}")
        symbol = symbols[index]
        room.take(len(symbol))
        return symbol, at

    return read


def union_reader(branches: Sequence[Read]) -> Read:
    """Return a reader of one of several types."""
    count = len(branches)
    by_byte = dict(zip(range(0, 0x80, 2), branches, strict=False))

    def read(data: bytes, at: int, room: Room) -> tuple[Any, int]:
        branch = by_byte.get(data[at])
        if branch is not None:
            return branch(data, at + 1, room)
        index, at = read_long(data, at, room)
        if not 0 <= index < count:
            raise ValueProblem(f"branch {index} of {count} before byte {at:,}")
        return branches[index](data, at, room)

    return read


ITEM_OUTPUT = 4
"""Output of an item, at least; a null takes none of the input."""


def record_output(fields: Sequence[tuple[str, Read]]) -> int:
    """Return what a record takes of the output at least; its names are a part of it."""
    return 2 + sum(len(name) + 4 + ITEM_OUTPUT for name, _ in fields)


def record_reader(fields: Sequence[tuple[str, Read]]) -> Read:
    """Return a reader of a record."""
    output = record_output(fields)

    def read(data: bytes, at: int, room: Room) -> tuple[dict[str, Any], int]:
        room.left -= output
        if room.left < 0:
            room.take(0)
        record = {}
        for name, read_field in fields:
            record[name], at = read_field(data, at, room)
        return record, at

    return read


def array_reader(read_item: Read) -> Read:
    """Return a reader of an array."""

    def read(data: bytes, at: int, room: Room) -> tuple[list[Any], int]:
        items: list[Any] = []
        while True:
            count, at = _block(data, at, room)
            if not count:
                return items, at
            for _ in range(count):
                item, at = read_item(data, at, room)
                items.append(item)

    return read


def map_reader(read_key: Read, read_value: Read) -> Read:
    """Return a reader of a map."""

    def read(data: bytes, at: int, room: Room) -> tuple[dict[str, Any], int]:
        items: dict[str, Any] = {}
        while True:
            count, at = _block(data, at, room)
            if not count:
                return items, at
            for _ in range(count):
                key, at = read_key(data, at, room)
                items[key], at = read_value(data, at, room)

    return read


def _block(data: bytes, at: int, room: Room) -> tuple[int, int]:
    """Read the number of items of a block; a negative one is followed by the block's size."""
    count, at = read_long(data, at, room)
    if count < 0:
        count = -count
        _, at = read_long(data, at, room)
    room.take(ITEM_OUTPUT * count)
    return count, at


def recursive_reader(target: Callable[[], Read]) -> Read:
    """Return a reader of a type inside itself, which is known only when a value is read."""

    def read(data: bytes, at: int, room: Room) -> tuple[Any, int]:
        room.enter()
        result = target()(data, at, room)
        room.leave()
        return result

    return read


def _converted(read: Read, convert: Callable[[Any], Any]) -> Read:
    def read_converted(data: bytes, at: int, room: Room) -> tuple[Any, int]:
        value, at = read(data, at, room)
        return convert(value), at

    return read_converted


def _time_of(units: int, places: int, end: str) -> Callable[[int], Any]:
    """Return a function of a time: its ISO text; a time too far off stays a number."""

    def text(value: int) -> Any:
        seconds, rest = divmod(value, units)
        try:
            return f"{(_EPOCH + timedelta(seconds=seconds)).isoformat()}.{rest:0{places}}{end}"
        except OverflowError:
            return value

    return text


def _time_of_day(units: int, places: int) -> Callable[[int], Any]:
    def text(value: int) -> Any:
        seconds, rest = divmod(value, units)
        if not 0 <= seconds < 86_400:
            return value
        minutes, second = divmod(seconds, 60)
        return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}.{rest:0{places}}"

    return text


def _date(value: int) -> Any:
    try:
        return (_DAY_0 + timedelta(days=value)).isoformat()
    except OverflowError:
        return value


def _duration_of(value: str) -> dict[str, int]:
    months, days, milliseconds = _duration(bytes.fromhex(value))
    return {"months": months, "days": days, "milliseconds": milliseconds}


def decimal_of(scale: int) -> Callable[[str], Any]:
    """Return a function of the hex of an unscaled number: a number; a text if JSON lacks it."""

    def number(value: str) -> Any:
        content = bytes.fromhex(value)
        if len(content) > _MAX_DECIMAL_BYTES:
            return value
        unscaled = int.from_bytes(content, "big", signed=True)
        if not scale:
            return unscaled
        digits = f"{abs(unscaled):0{scale + 1}}"
        text = f"{'-' if unscaled < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"
        return float(text) if len(digits) <= _EXACT_DIGITS else text

    return number


_LOGICAL: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("int", "date"): _date,
    ("int", "time-millis"): _time_of_day(1000, 3),
    ("long", "time-micros"): _time_of_day(10**6, 6),
} | {
    ("long", f"{local}timestamp-{unit}"): _time_of(10**places, places, "" if local else "Z")
    for local in ("", "local-")
    for unit, places in (("millis", 3), ("micros", 6), ("nanos", 9))
}

_MAX_SCALE = 300


def logical_reader(read: Read, kind: str, schema: dict[str, Any]) -> Read:
    """
    Return the reader of a logical type; of an unknown or a wrong one that of its own type.

    Args:
        read: The reader of its own type.
        kind: Its own type.
        schema: The declaration.
    """
    logical = schema.get("logicalType")
    if not isinstance(logical, str):
        return read
    if convert := _LOGICAL.get((kind, logical)):
        return _converted(read, convert)
    match kind, logical, schema.get("size"), schema.get("scale", 0):
        case (("bytes" | "fixed"), "decimal", _, int(scale)) if 0 <= scale <= _MAX_SCALE:
            return _converted(read, decimal_of(scale))
        case "fixed", "uuid", 16, _:
            return _converted(read, lambda value: str(UUID(value)))
        case "fixed", "duration", 12, _:
            return _converted(read, _duration_of)
    return read


PRIMITIVES: dict[str, Read] = {
    "null": read_null,
    "boolean": read_boolean,
    "int": read_long,
    "long": read_long,
    "float": read_float,
    "double": read_double,
    "bytes": read_bytes,
    "string": read_string,
}
