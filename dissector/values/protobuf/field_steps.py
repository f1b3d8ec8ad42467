"""
Functions that read one field of Protobuf values and step over the others.

They are generated like `ordered_fields`, for messages whose fields come in order. What they accept,
`MessageReader` accepts; what they refuse is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from dissector.values.protobuf.message_readers import UNSET, MessageReader
from dissector.values.protobuf.ordered_fields import ONE_BYTE_KEYS, SIZE
from dissector.values.protobuf.wire_format import (
    ENDS_EARLY,
    SCALARS,
    SIZED,
    VARINT,
    ProtoRoom,
    read_varint,
)
from dissector.values.value_limits import MAX_DEPTH, MIN_OUTPUT, ValueProblem

Step: TypeAlias = Callable[[bytes, int], Any]
"""Returns the field of a value from a position to its end."""

_MAX_LEVELS = MAX_DEPTH // 4
"""Messages inside messages that are stepped over; others are read. A function that is used at two
levels has at most twice as many around it, and what it reads has as many inside."""

_MAX_FUNCTIONS = 200

_HEAD = """
def step(data, at, end, room):
    value = default
    key = data[at] if at < end else -1
"""

_NEXT = """
        key = data[at] if at < end else -1
"""

_END = """
    if at != end or value is UNSET:
        raise ValueProblem
    return value
"""

_TEXT = f"""{SIZE}
        {{result}}data[at:stop].decode()
        at = stop
"""

_BYTES = f"""{SIZE}
        at = stop
"""

_INNER = f"""{SIZE}
        {{result}}step_{{key}}(data, at, stop, room)
        at = stop
"""

_WHOLE = f"""{SIZE}
        {{result}}reader_{{key}}().read(data, at, stop, room)
        at = stop
"""

_SKIPPED_NUMBER = """
        at += 2
        if data[at - 1] >= 0x80:
            at = read_varint(data, at - 1)[1]
"""

_NUMBER = """
        number, at = read_varint(data, at + 1)
        value = {number}
"""

_SKIPPED_FIXED = """
        at += 1 + {size}
"""

_FIXED = """
        number = unpack_{key}(data, at + 1)[0]
        at += 1 + {size}
        value = {number}
"""

_CALL = """
        at = put_{key}(values, data, at + 1, end, room)
"""

_CALLED = f"""{_CALL}
        value = values[{{name}}]
"""


def field_step(reader: MessageReader, path: Sequence[str]) -> tuple[Step, int] | None:
    """
    Return a function that reads a field, and how many names of the path it follows.

    None: there is no such field, or it is no plain one. The function raises `ValueProblem` and
    `READING_ERRORS` where the reader may still succeed.
    """
    writer = _StepWriter()
    written = writer.function(reader, path)
    # What is stepped over would make output, of which there may be so much for the smallest value.
    if written is None or written.output > MIN_OUTPUT:
        return None
    step, output = written

    def read(data: bytes, at: int) -> Any:
        room = ProtoRoom(len(data) - at)
        room.left -= output
        room.depth = MAX_DEPTH - _MAX_LEVELS
        return step(data, at, len(data), room)

    return read, writer.depth


class _Written(NamedTuple):
    """The function of a message, and the output of those that it steps over, if all are there."""

    step: Callable[..., Any]
    output: int


class _Message:
    """The code of one message, as it is written."""

    def __init__(self, reader: MessageReader, path: Sequence[str]) -> None:
        self.reader = reader
        self.output = reader.output
        default = reader.start.get(path[0], UNSET) if path else None
        self.names = {**_NAMES, "default": default, "start": reader.start}


class _StepWriter:
    """
    Writes the functions of a message and of those inside it.

    Attributes:
        depth: Names of the path that are followed.
    """

    def __init__(self) -> None:
        self.depth = 0
        self._written: dict[str, _Written] = {}
        self._around: list[str] = []

    def function(self, reader: MessageReader, path: Sequence[str]) -> _Written | None:
        """Return the function of a message; None if the field at the path is no plain one."""
        self._around.append(reader.full_name)
        message = _Message(reader, path)
        lines, is_found = [], not path
        for key in sorted(key for key in reader.puts if key < ONE_BYTE_KEYS):
            field = reader.fields[key]
            if path and field.name == path[0]:
                is_found, code = True, self._wanted(message, key, path[1:])
            else:
                code = self._skipped(message, key)
            if code is None:
                return None
            repeats = "while" if field.is_repeated else "if"
            lines += [f"    {repeats} key == {key}:", *code.split("\n"), *_NEXT.split("\n")]
        self._around.pop()
        return _Written(_compiled(lines, message.names), message.output) if is_found else None

    def _skipped(self, message: _Message, key: int) -> str:
        """Return the code that steps over a field."""
        reader = message.reader
        field, wire = reader.fields[key], key & 7
        message.names[f"put_{key}"] = reader.puts[key]
        if field.is_repeated or (wire != SIZED and field.type_name not in SCALARS):
            return _CALL.format(key=key)
        if field.type_name in SCALARS:
            scalar = SCALARS[field.type_name]
            return _SKIPPED_NUMBER if wire == VARINT else _SKIPPED_FIXED.format(size=scalar.size)
        if field.name in reader.inner:
            return self._inner(message, key).format(key=key, result="")
        return _TEXT.format(result="") if field.type_name == "string" else _BYTES

    def _inner(self, message: _Message, key: int) -> str:
        """Return the code that steps over a message, or that reads it."""
        find = message.reader.inner[message.reader.fields[key].name]
        inner = find()
        message.names[f"reader_{key}"] = find
        if not self._is_stepped(inner):
            return _WHOLE
        if inner.full_name not in self._written:
            written = self.function(inner, ())
            assert written is not None
            self._written[inner.full_name] = written
        message.names[f"step_{key}"], output = self._written[inner.full_name]
        message.output += output
        return _INNER

    def _is_stepped(self, inner: MessageReader) -> bool:
        if inner.finish is not None or inner.full_name in self._around:
            return False
        if inner.full_name in self._written:
            return True
        return len(self._around) < _MAX_LEVELS and len(self._written) < _MAX_FUNCTIONS

    def _wanted(self, message: _Message, key: int, rest: Sequence[str]) -> str | None:
        """Return the code that reads a field; None if it is no plain one."""
        reader, names = message.reader, message.names
        field, wire = reader.fields[key], key & 7
        if field.is_repeated or field.oneof:
            return None
        self.depth += 1
        if field.type_name in SCALARS:
            scalar = SCALARS[field.type_name]
            names |= {f"convert_{key}": scalar.convert, f"unpack_{key}": scalar.unpack}
            number = "number" if scalar.convert is None else f"convert_{key}(number)"
            code = _NUMBER if wire == VARINT else _FIXED
            return code.format(key=key, number=number, size=scalar.size)
        if field.type_name == "string":
            return _TEXT.format(result="value = ")
        if field.name not in reader.inner or wire != SIZED:
            names[f"put_{key}"] = reader.puts[key]
            return _CALLED.format(key=key, name=repr(field.name))
        find = names[f"reader_{key}"] = reader.inner[field.name]
        if not rest or not self._is_stepped(find()):
            return _WHOLE.format(key=key, result="value = ")
        written = self.function(find(), rest)
        if written is None:
            return None
        names[f"step_{key}"], output = written
        message.output += output
        return _INNER.format(key=key, result="value = ")


_NAMES = {
    "ENDS_EARLY": ENDS_EARLY,
    "UNSET": UNSET,
    "ValueProblem": ValueProblem,
    "read_varint": read_varint,
}


def _compiled(lines: Sequence[str], names: dict[str, Any]) -> Callable[..., Any]:
    body = list(filter(None, lines))
    is_called = any("values" in line for line in body)
    head = [*_HEAD.split("\n"), "    values = start.copy()" if is_called else ""]
    exec(compile("\n".join([*head, *body, *_END.split("\n")]), "<field>", "exec"), names)
    step: Callable[..., Any] = names["step"]
    return step
