"""
Code generator: Python functions that parse and build as a Construct does, by Construct's hooks.

Our Constructs are `Emitted`: beside `_parse` and `_build` each one can generate statements that
read it from bytes at a position, and statements that write its value. The statements of
neighbouring fields form one straight function: consecutive numbers are one `struct` call, and a
struct needs no call at all. `construct.Construct.compile` uses these functions through its hooks;
`codec` calls `compile_reader` and `compile_writer`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from construct import Construct, Container
from construct.core import CodeGen

from dissector.protocol.codecs.compiled import Read, Write

_IMPORTS = """
import struct
from uuid import UUID
from construct import Container
from dissector.protocol.codecs.compiled import (
    BOOLEANS, CodecFallback, boolean, build_by, cached_unpackers, dict_equal, parse_by,
    plain_bytes, plain_list, read_tags, read_varint, tags_bytes, text_bytes, unpacker, uuid_bytes,
    uuid_of, varint_bytes,
)
"""

_SIZES = {"b": 1, "B": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8, "16s": 16}


class Emitted(Construct):  # type: ignore[misc]
    """
    A Construct that can be compiled.

    Attributes:
        min_bytes: Size of the smallest value.
    """

    min_bytes: int

    def _emit_read(self, out: ReadFunction, target: str) -> None:
        """Generate statements that read a value into a variable or an item."""
        raise NotImplementedError

    def _emit_build(self, out: BuildFunction, value: str) -> None:
        """Generate statements that build the value of an expression."""
        raise NotImplementedError

    def _emitparse(self, code: CodeGen) -> str:
        name = add_read_function(self, code)
        self._compileinstance(code)
        return f"parse_by({name}, io, linkedparsers[{id(self)}])"

    def _emitbuild(self, code: CodeGen) -> str:
        name = add_build_function(self, code)
        self._compileinstance(code)
        return f"build_by({name}, obj, io, linkedbuilders[{id(self)}])"


class _FunctionSource:
    """The source of a function while it is generated."""

    def __init__(self, code: CodeGen, head: str) -> None:
        self.code = code
        code.append(_IMPORTS)
        self._lines = [head]
        self._indent = "    "

    def name(self, letter: str) -> str:
        """Return an unused name."""
        return f"{letter}{self.code.allocateId()}"

    def constant(self, source: str, name: str = "") -> str:
        """Define a module-level constant and return its name; the same name defines it once."""
        name = name or self.name("constant_")
        self.code.append(f"{name} = {source}")
        return name

    def literal(self, value: Any) -> str:
        """Return an expression for a default value; a mutable default is created at each call."""
        if isinstance(value, UUID):
            return self.constant(f"UUID(int={value.int})")
        if isinstance(value, Container):
            items = [(key, self.literal(item)) for key, item in value.items()]
            if any(isinstance(item, list | dict) for item in value.values()):
                return f"Container({_dict_source(items)})"
            return f"Container({self.constant(_dict_source(items))})"
        return repr(value)

    def line(self, text: str) -> None:
        """Append a statement."""
        self.flush()
        self._append(text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Put the statements added in the block under a `for`, `if` or `else`."""
        self.line(head)
        outer, self._indent = self._indent, self._indent + "    "
        yield
        self.flush()
        self._indent = outer

    def flush(self) -> None:
        """Append the pending fields, which were collected to be joined with their neighbours."""
        raise NotImplementedError

    def finish(self) -> None:
        """Append the function to the module's code."""
        self.flush()
        self.code.append("\n".join(self._lines))

    def _append(self, text: str) -> None:
        self._lines.append(self._indent + text)


class ReadFunction(_FunctionSource):
    """Source of a `Read` function: `data` are the bytes, `size` their number, `at` the position."""

    def __init__(self, code: CodeGen, name: str) -> None:
        super().__init__(code, f"def {name}(data, at):")
        self._numbers: list[tuple[str, str]] = []
        self._append("size = len(data)")

    def number(self, letter: str, target: str) -> None:
        """Read a number, or bytes of fixed size, by its `struct` format character."""
        self._numbers.append((letter, target))

    def flush(self) -> None:
        """Read all pending numbers by one `struct` call."""
        numbers, self._numbers = self._numbers, []
        if not numbers:
            return
        letters = "".join(letter for letter, _ in numbers)
        if letters == "B":
            self._append(f"{numbers[0][1]} = data[at]")
        else:
            unpack = self.constant(f"struct.Struct('>{letters}').unpack_from", f"unpack_{letters}")
            self._append(f"{', '.join(target for _, target in numbers)}, = {unpack}(data, at)")
        self._append(f"at += {sum(_SIZES[letter] for letter, _ in numbers)}")


class BuildFunction(_FunctionSource):
    """Source of a `Write` function: `parts` are the bytes so far."""

    def __init__(self, code: CodeGen, name: str) -> None:
        super().__init__(code, f"def {name}(obj):")
        self._parts: list[tuple[str, str]] = []
        self._append("parts = []")

    def prepare(self, text: str) -> None:
        """Append a statement that prepares a later one and does not touch `parts`."""
        self._append(text)

    def number(self, letter: str, value: str) -> None:
        """Write a number by its `struct` format character."""
        self._parts.append((letter, value))

    def part(self, value: str) -> None:
        """Write bytes."""
        self._parts.append(("", value))

    def flush(self) -> None:
        """Write consecutive numbers by one `struct` call, and append all pending parts at once."""
        parts, self._parts = self._parts, []
        whole: list[str] = []
        while parts:
            numbers = []
            while parts and parts[0][0]:
                numbers.append(parts.pop(0))
            if numbers:
                letters = "".join(letter for letter, _ in numbers)
                pack = self.constant(f"struct.Struct('>{letters}').pack", f"pack_{letters}")
                whole.append(f"{pack}({', '.join(value for _, value in numbers)})")
            else:
                whole.append(parts.pop(0)[1])
        if len(whole) == 1:
            self._append(f"parts.append({whole[0]})")
        elif whole:
            self._append(f"parts += ({', '.join(whole)})")


def read(construct: Construct, out: ReadFunction, target: str) -> None:
    """
    Generate statements that read the value of a Construct.

    Raises:
        NotImplementedError: It can't be compiled; Construct's compiler then uses the interpreted
            form of the enclosing Construct.
    """
    if not isinstance(construct, Emitted):
        raise NotImplementedError
    construct._emit_read(out, target)


def build(construct: Construct, out: BuildFunction, value: str) -> None:
    """
    Generate statements that build the bytes of a Construct.

    Raises:
        NotImplementedError: As in `read`.
    """
    if not isinstance(construct, Emitted):
        raise NotImplementedError
    construct._emit_build(out, value)


def add_read_function(construct: Construct, code: CodeGen) -> str:
    """Add a `Read` function to the code; return its name."""
    name = f"read_{code.allocateId()}"
    out = ReadFunction(code, name)
    read(construct, out, "value")
    with out.block("if at > size:"):
        out.line("raise CodecFallback")
    out.line("return value, at")
    out.finish()
    return name


def add_build_function(construct: Construct, code: CodeGen) -> str:
    """Add a `Write` function to the code; return its name."""
    name = f"build_{code.allocateId()}"
    out = BuildFunction(code, name)
    build(construct, out, "obj")
    out.line("return b''.join(parts)")
    out.finish()
    return name


def compile_reader(construct: Construct) -> Read:
    """Compile the function that parses a Construct from bytes."""
    code = CodeGen()
    name = add_read_function(construct, code)
    return _run(code)[name]  # type: ignore[no-any-return]


def compile_writer(construct: Construct) -> Write:
    """Compile the function that builds the bytes of a Construct."""
    code = CodeGen()
    name = add_build_function(construct, code)
    return _run(code)[name]  # type: ignore[no-any-return]


def _run(code: CodeGen) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(code.toString(), "<compiled codec>", "exec"), names)
    return names


def _dict_source(items: list[tuple[str, str]]) -> str:
    return f"{{{', '.join(f'{key!r}: {item}' for key, item in items)}}}"
