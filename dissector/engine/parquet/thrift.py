"""
The part of Thrift's compact protocol used by Parquet's metadata.

Source: github.com/apache/thrift, doc/specs/thrift-compact-protocol.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

_TRUE, _FALSE, _I8, _I16, _I32, _I64, _BINARY, _LIST, _STRUCT = 1, 2, 3, 4, 5, 6, 8, 9, 12
_LONG_LIST = 15


@dataclass(frozen=True, slots=True)
class Int:
    """An integer of 8, 16 or 64 bits; plain `int` has 32."""

    value: int
    bits: int


Value: TypeAlias = "bool | int | Int | bytes | str | Sequence[Value] | Mapping[int, Value | None]"
"""Integers have 32 bits; a mapping is a struct: its fields by id, without None."""

_WIDE = {8: _I8, 16: _I16, 64: _I64}


def struct(fields: Mapping[int, Value | None]) -> bytes:
    """Return the bytes of a struct; the ids of its fields ascend."""
    out = bytearray()
    last = 0
    for number, value in fields.items():
        if value is None:
            continue
        kind = _kind(value)
        out.append((number - last) << 4 | kind)
        last = number
        if kind not in (_TRUE, _FALSE):
            out += _content(value)
    out.append(0)
    return bytes(out)


def varint(number: int) -> bytes:
    """Return an unsigned number, seven bits a byte."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _kind(value: Value) -> int:
    match value:
        case bool():
            return _TRUE if value else _FALSE
        case int():
            return _I32
        case Int():
            return _WIDE[value.bits]
        case bytes() | str():
            return _BINARY
        case Mapping():
            return _STRUCT
        case _:
            return _LIST


def _content(value: Value) -> bytes:
    match value:
        case Int(number, 8):
            return number.to_bytes(1, "little", signed=True)
        case int():
            return varint(_zigzag(value))
        case Int():
            return varint(_zigzag(value.value))
        case str():
            return _content(value.encode())
        case bytes():
            return varint(len(value)) + value
        case Mapping():
            return struct(value)
        case _:
            return _list(value)


def _zigzag(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1


def _list(items: Sequence[Value]) -> bytes:
    kind = _kind(items[0]) if items else _STRUCT
    short = len(items) < _LONG_LIST
    head = bytes([len(items) << 4 | kind]) if short else bytes([0xF0 | kind]) + varint(len(items))
    return head + b"".join(map(_content, items))
