"""
Reads the fields of a message that come in the order of their numbers, as writers put them.

It is a generated function, in which plain fields are read without a call; the text has nothing of
the schema but the names of fields, as literals. It stops at the first field that is elsewhere, that
the schema lacks, or whose number is above 15: `MessageReader` goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, TypeAlias

from dissector.values.protobuf.proto_declarations import ProtoField
from dissector.values.protobuf.wire_format import (
    ENDS_EARLY,
    SCALARS,
    SIZED,
    VARINT,
    ProtoRoom,
    Scalar,
    read_varint,
    text_of,
)
from dissector.values.value_limits import ValueProblem

Put: TypeAlias = Callable[[dict[str, Any], bytes, int, int, ProtoRoom], int]
"""Reads a field's value into a message, and returns the position behind it."""

Begin: TypeAlias = Put
"""Reads fields into a message from a position to its end, and returns the position behind them."""

ONE_BYTE_KEYS = 0x80
"""Keys on the wire that are lower take one byte."""

SIZE = """
        size = data[at + 1]
        at += 2
        if size >= 0x80:
            size, at = read_varint(data, at - 1)
        stop = at + size
        if stop > end:
            raise ValueProblem(ENDS_EARLY)
"""
"""The code that reads a size."""

_TEXT = f"""{SIZE}
        values[{{name}}] = text_of(data[at:stop])
        at = stop
"""

_SPAN = f"""{SIZE}
        values[{{name}}] = [(at, stop)]
        at = stop
"""

_NUMBER = """
        number = data[at + 1]
        at += 2
        if number >= 0x80:
            number, at = read_varint(data, at - 1)
        values[{name}] = {number}
"""

_FIXED = """
        number = unpack_{key}(data, at + 1)[0]
        at += 1 + {size}
        values[{name}] = {number}
"""

_CALL = """
        at = put_{key}(values, data, at + 1, end, room)
"""

_NEXT = """
        if at >= end:
            return at
        key = data[at]
"""


def ordered_reader(
    puts: Mapping[int, Put], fields: Mapping[int, ProtoField], spans: Container[str]
) -> Begin:
    """
    Return a function that reads these fields; it raises what their functions raise.

    Args:
        puts: Functions of fields, by their keys on the wire.
        fields: The fields, by the same keys.
        spans: Names of fields of which only the places are noted.
    """
    lines = [
        "def begin(values, data, at, end, room):",
        "    if at >= end:",
        "        return at",
        "    key = data[at]",
    ]
    names: dict[str, Any] = {
        "ENDS_EARLY": ENDS_EARLY,
        "ValueProblem": ValueProblem,
        "read_varint": read_varint,
        "text_of": text_of,
    }
    for key in sorted(key for key in puts if key < ONE_BYTE_KEYS):
        field = fields[key]
        scalar = SCALARS.get(field.type_name, _NO_NUMBER)
        names |= {
            f"put_{key}": puts[key],
            f"convert_{key}": scalar.convert,
            f"unpack_{key}": scalar.unpack,
        }
        lines.append(f"    {'while' if field.is_repeated else 'if'} key == {key}:")
        code = (_code_of(field, key & 7, spans) + _NEXT).format(
            key=key,
            name=repr(field.name),
            number="number" if scalar.convert is None else f"convert_{key}(number)",
            size=scalar.size,
        )
        lines += filter(None, code.split("\n"))
    lines.append("    return at")
    exec(compile("\n".join(lines), "<message>", "exec"), names)
    begin: Begin = names["begin"]
    return begin


_NO_NUMBER = Scalar(SIZED)


def _code_of(field: ProtoField, wire: int, spans: Container[str]) -> str:
    """Return how a field is read; those with more to do than to take a value by a call."""
    if field.is_repeated or field.oneof:
        return _CALL
    if wire == SIZED and field.type_name == "string":
        return _TEXT
    if wire == SIZED and field.name in spans:
        return _SPAN
    if field.type_name not in SCALARS:
        return _CALL
    return _NUMBER if wire == VARINT else _FIXED
