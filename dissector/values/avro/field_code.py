"""
Functions that read one field of Avro values and step over the others, generated like `record_code`.

What they accept, `AvroSchema.value` accepts; what they refuse is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from dissector.values.avro.avro_types import (
    PRIMITIVES,
    Read,
    read_string,
)
from dissector.values.value_limits import Room

FieldReader: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
"""Returns the value of a field, and the position behind the value with the field."""

_MAX_LINES = 300
"""Steps over single fields; behind these records are stepped over by calls."""

_SKIPPED = {
    PRIMITIVES["long"]: """
    if data[at] < 0x80:
        at += 1
    else:
        at = {read}(data, at, None)[1]
""",
    read_string: """
    size = data[at]
    if size & 0x81:
        at = {read}(data, at, None)[1]
    else:
        begin = at + 1
        at = begin + (size >> 1)
        data[begin:at].decode()
""",
    PRIMITIVES["float"]: """
    at += 4
""",
    PRIMITIVES["double"]: """
    at += 8
""",
    PRIMITIVES["null"]: """
""",
}

_SKIPPED_BY_CALL = """
    at = {read}(data, at, room)[1]
"""


class FieldCode:
    """The text of a function, and the objects that it refers to."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._names: dict[str, Any] = {"Room": Room}
        self._needs_room = False

    def skip(self, read: Read) -> None:
        """Step over a field with this reader."""
        code = _SKIPPED.get(read)
        self._needs_room |= code is None
        text = (code or _SKIPPED_BY_CALL).strip("\n")
        if text:
            self._lines.append(text.format(read=self._name_of(read)))

    def read(self, read: Read) -> None:
        """Read the field."""
        self._needs_room |= read not in _SKIPPED
        self._lines.append(f"    value, at = {self._name_of(read)}(data, at, room)")

    def _name_of(self, read: Read) -> str:
        name = f"read_{len(self._names)}"
        self._names[name] = read
        return name

    def __len__(self) -> int:
        return len(self._lines)

    def function(self) -> FieldReader:
        """Return the function."""
        room = "Room(len(data))" if self._needs_room else "None"
        lines = ["def read(data, at):", f"    room = {room}", *self._lines, "    return value, at"]
        exec(compile("\n".join(lines), "<field>", "exec"), self._names)
        found: FieldReader = self._names["read"]
        return found


def field_reader(
    read: Read, path: Sequence[str], fields_of: Callable[[Read], Any]
) -> tuple[FieldReader, int] | None:
    """
    Return a function that reads a field, and how many names of the path it follows.

    It follows them through records; None: there is no record, or no such field in it.

    Args:
        read: The reader of the whole value.
        path: Names of the field, and of the fields around it.
        fields_of: Returns the fields of a reader of records; None for other readers.
    """
    code, fields = FieldCode(), fields_of(read)
    depth = 0 if fields is None else _write(code, fields, path, fields_of)
    return (code.function(), depth) if depth else None


def _write(
    code: FieldCode,
    fields: Sequence[tuple[str, Read]],
    path: Sequence[str],
    fields_of: Callable[[Read], Any],
) -> int:
    """Write the reading of a record; return the depth of the field that is read, 0 for none."""
    depth = 0
    for name, read in fields:
        if name != path[0] or depth:
            _skip(code, read, fields_of)
            continue
        inner = fields_of(read) if len(path) > 1 and len(code) < _MAX_LINES else None
        found = 0 if inner is None else _write(code, inner, path[1:], fields_of)
        if inner is not None and not found:
            return 0  # no such field inside
        if not found:
            code.read(read)
        depth = 1 + found
    return depth


def _skip(code: FieldCode, read: Read, fields_of: Callable[[Read], Any]) -> None:
    inner = fields_of(read) if len(code) < _MAX_LINES else None
    if inner is None:
        code.skip(read)
        return
    for _, each in inner:
        _skip(code, each, fields_of)
