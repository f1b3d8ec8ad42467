"""
Protobuf's wire format: numbers, and what a field is without its declaration.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple

from dissector.values.value_limits import Room, ValueProblem

VARINT, FIXED_64, SIZED, GROUP, GROUP_END, FIXED_32 = range(6)

RAW = "bytes as they are"
"""The type of bytes that are read again; no name in a schema."""

ENDS_EARLY = "it ends inside a field"

_MAX_VARINT_BYTES = 10
_MASK_64 = (1 << 64) - 1
_MASK_32 = (1 << 32) - 1

_float = struct.Struct("<f").unpack_from
_double = struct.Struct("<d").unpack_from
_as_float = struct.Struct("<f").pack
_fixed_64 = struct.Struct("<Q").unpack_from
_signed_fixed_64 = struct.Struct("<q").unpack_from
_fixed_32 = struct.Struct("<I").unpack_from
_signed_fixed_32 = struct.Struct("<i").unpack_from


class ProtoRoom(Room):
    """
    What is left for one value.

    Attributes:
        unknown: Fields so far that the schema does not declare.
    """

    __slots__ = ("unknown",)

    def __init__(self, size: int) -> None:
        """Start for a value of some bytes."""
        super().__init__(size)
        self.unknown = 0


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read an unsigned number of at most 64 bits; return it and the position behind it."""
    byte = data[at]
    at += 1
    if byte < 0x80:
        return byte, at
    number, shift = byte & 0x7F, 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & _MASK_64, at
        shift += 7
        if shift == 7 * _MAX_VARINT_BYTES:
            raise ValueProblem(f"a number of more than 10 bytes before byte {at:,}")


def read_span(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Read a size; return where its content begins and ends."""
    size, at = read_varint(data, at)
    if size > end - at:
        raise ValueProblem(ENDS_EARLY)
    return at, at + size


def number_of(value: float) -> float | str:
    """Return a number as JSON has it, or its word."""
    if isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _shortest_float(value: float) -> float | str:
    """Return the number with the fewest digits that is this float of 4 bytes."""
    if not isfinite(value):
        return number_of(value)
    packed = _as_float(value)
    for digits in (6, 7, 8):
        short = float(f"{value:.{digits}g}")
        try:
            if _as_float(short) == packed:
                return short
        except OverflowError:
            continue
    return float(f"{value:.9g}")


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def signed_32(number: int) -> int:
    """Return the int32 of a varint."""
    number &= _MASK_32
    return number - (1 << 32) if number >> 31 else number


def _zigzag(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _zigzag_32(number: int) -> int:
    return _zigzag(number & _MASK_32)


class Scalar(NamedTuple):
    """
    A type of numbers.

    Attributes:
        wire: Its wire type.
        convert: Returns the value of a varint; None: it is the value.
        unpack: Reads a number of fixed size.
        size: Of this.
        default: The value of a field that is not set.
    """

    wire: int
    convert: Callable[[Any], Any] | None = None
    unpack: Callable[[bytes, int], tuple[Any, ...]] | None = None
    size: int = 0
    default: Any = 0


SCALARS: dict[str, Scalar] = {
    "int32": Scalar(VARINT, signed_32),
    "int64": Scalar(VARINT, _signed),
    "uint32": Scalar(VARINT, lambda number: number & _MASK_32),
    "uint64": Scalar(VARINT),
    "sint32": Scalar(VARINT, _zigzag_32),
    "sint64": Scalar(VARINT, _zigzag),
    "bool": Scalar(VARINT, bool, default=False),
    "fixed64": Scalar(FIXED_64, None, _fixed_64, 8),
    "sfixed64": Scalar(FIXED_64, None, _signed_fixed_64, 8),
    "double": Scalar(FIXED_64, number_of, _double, 8, 0.0),
    "fixed32": Scalar(FIXED_32, None, _fixed_32, 4),
    "sfixed32": Scalar(FIXED_32, None, _signed_fixed_32, 4),
    "float": Scalar(FIXED_32, _shortest_float, _float, 4, 0.0),
}


def text_of(data: bytes) -> str:
    """Return a `string`."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueProblem("a text in it is not UTF-8") from None


def base64_of(data: bytes) -> str:
    """Return `bytes` as JSON has them."""
    return b64encode(data).decode()


def skip_unknown(
    values: dict[str, Any], key: int, data: bytes, at: int, end: int, room: ProtoRoom
) -> int:
    """Read a field that is not declared, under its number, and return the position behind it."""
    number, wire = key >> 3, key & 7
    if number == 0:
        raise ValueProblem(f"a field with number 0 before byte {at:,}")
    value: Any
    match wire:
        case 0:
            value, at = read_varint(data, at)
        case 1:
            value, at = _fixed_64(data, at)[0], at + 8
        case 2:
            at, stop = read_span(data, at, end)
            value, at = _text_or_base64(data[at:stop]), stop
        case 3:
            value, at = _unknown_group(number, data, at, end, room)
        case 5:
            value, at = _fixed_32(data, at)[0], at + 4
        case _:
            raise ValueProblem(f"a field of wire type {wire} before byte {at:,}")
    room.take(16)
    room.unknown += 1
    name = str(number)
    if name not in values:
        values[name] = value
    elif type(values[name]) is list:
        values[name].append(value)
    else:
        values[name] = [values[name], value]
    return at


def _unknown_group(
    number: int, data: bytes, at: int, end: int, room: ProtoRoom
) -> tuple[dict[str, Any], int]:
    room.enter()
    values: dict[str, Any] = {}
    last = number << 3 | GROUP_END
    while at < end:
        key, at = read_varint(data, at)
        if key == last:
            room.leave()
            return values, at
        at = skip_unknown(values, key, data, at, end, room)
    raise ValueProblem(ENDS_EARLY)


def _text_or_base64(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return base64_of(data)
    return text if text.isprintable() else base64_of(data)
