"""
Readers of records as generated functions, in which plain fields are read without a call.

The text of a function has nothing of the schema but the names of fields, as literals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dissector.values.avro.avro_types import (
    ENDS_EARLY,
    PRIMITIVES,
    Read,
    read_string,
    record_output,
    unpack_double,
    unpack_float,
)
from dissector.values.value_limits import ValueProblem

MAX_FIELDS = 2_000
"""Fields of one schema that are compiled; the rest is read by calls."""

_LONG = """
    byte = data[at]
    if byte < 0x80:
        at += 1
        {value} = (byte >> 1) ^ -(byte & 1)
    else:
        {value}, at = {read}(data, at, room)
"""

_STRING = """
    size = data[at]
    if size & 0x81:
        {value}, at = {read}(data, at, room)
    else:
        begin = at + 1
        at = begin + (size >> 1)
        {value} = data[begin:at].decode()
"""

_NUMBER = """
    {value} = {unpack}(data, at)[0]
    if {value} - {value} != 0.0:
        {value} = {read}(data, at, room)[0]
    at += {size}
"""

_CALL = """
    {value}, at = {read}(data, at, room)
"""

_CODE: Mapping[Read, str] = {
    PRIMITIVES["long"]: _LONG,
    read_string: _STRING,
    PRIMITIVES["float"]: _NUMBER.replace("{unpack}", "unpack_float").replace("{size}", "4"),
    PRIMITIVES["double"]: _NUMBER.replace("{unpack}", "unpack_double").replace("{size}", "8"),
}


def compiled_record(fields: Sequence[tuple[str, Read]]) -> Read:
    """Return a reader of a record; a text at its end may end behind the data."""
    lines = [
        "def read(data, at, room):",
        f"    room.left -= {record_output(fields)}",
        "    if room.left < 0:",
        "        room.take(0)",
    ]
    names: dict[str, Any] = {
        "ValueProblem": ValueProblem,
        "ENDS_EARLY": ENDS_EARLY,
        "unpack_float": unpack_float,
        "unpack_double": unpack_double,
    }
    for number, (_, read) in enumerate(fields):
        names[f"read_{number}"] = read
        code = _CODE.get(read, _CALL)
        lines.append(code.strip("\n").format(value=f"value_{number}", read=f"read_{number}"))
    items = ", ".join(f"{name!r}: value_{number}" for number, (name, _) in enumerate(fields))
    lines.append(f"    return {{{items}}}, at")
    exec(compile("\n".join(lines), "<record>", "exec"), names)
    read_record: Read = names["read"]
    return read_record
