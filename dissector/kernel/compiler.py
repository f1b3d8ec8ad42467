"""
Kernels to machine code, by Numba.

Numba's function takes arrays as loose numbers. The entrance written here takes one address of
words, reads the arrays from numpy's own objects, whose layout extension modules are compiled
against and so cannot change, and checks them: a call costs a microsecond, whatever the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types as numba_types

from dissector.kernel.arguments import ArrayType, Types
from dissector.kernel.crc32c import update_crc, update_crc_intrinsic
from dissector.kernel.machine import ENTRY_POINT, assemble
from dissector.kernel.memcpy import copy_bytes, copy_bytes_intrinsic
from dissector.kernel.native_call import (
    call_decompressor,
    call_decompressor_intrinsic,
    call_decompressor_with_context,
    call_decompressor_with_context_intrinsic,
)
from dissector.kernel.source import is_device_function, referenced_globals

OTHER_TYPES = -1
"""Status of a call whose arguments are not of the types that the code was made for."""

_OPTIONS: Any = {
    "_nrt": False,
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    # A part is handed each array as seven loose numbers or more: a call costs more than its work.
    "forceinline": True,
}

_WRITTEN_BY_HAND: dict[Any, Callable[[], Any]] = {
    update_crc: update_crc_intrinsic,
    copy_bytes: copy_bytes_intrinsic,
    call_decompressor: call_decompressor_intrinsic,
    call_decompressor_with_context: call_decompressor_with_context_intrinsic,
}
"""Parts that Numba would not compile as well, and what returns them as it takes them, or None."""

_NUMBERS = (numba_types.Integer, numba_types.Boolean)
"""What a kernel may return; all of these are a number to its caller."""

_HEAD = object.__basicsize__
"""Where the fields of an object begin, behind its count of references and its type."""

_TYPE, _DATA, _NDIM, _SHAPE, _STRIDES, _DTYPE, _FLAGS = (
    _HEAD + 8 * field for field in (-1, 0, 1, 2, 3, 5, 6)
)

_CONTIGUOUS_AND_ALIGNED = 0x101


class CompiledKernel(NamedTuple):
    """
    A compiled kernel.

    Attributes:
        code: An object file.
        returns: Whether it returns a number.
    """

    code: bytes
    returns: bool


def compile_kernel(function: Callable[..., Any], arguments: Types) -> CompiledKernel:
    """
    Compile a kernel, and the parts it calls, for some types of arguments.

    Raises:
        TypeError: It does what kernels may not do.
    """
    known: dict[Any, Any] = {}
    try:
        dispatcher = _within_numba(function, known)
        dispatcher.compile(tuple(map(_numba_type, arguments)))
    except numba.core.errors.NumbaError as error:
        raise TypeError(f"kernel {function.__qualname__}: {error}") from error
    if not any(kind and "f" in kind.dtype for kind in arguments):
        for each in known.values():
            _forbid_floats(each)
    (signature,) = dispatcher.nopython_signatures
    result = signature.return_type
    if result != numba_types.none and not isinstance(result, _NUMBERS):
        raise TypeError(f"kernel {function.__qualname__} returns {result}")
    native = dispatcher.overloads[signature.args].fndesc.llvm_func_name
    text = dispatcher.inspect_llvm(signature.args)
    entrance = _entrance(native, arguments, result)
    return CompiledKernel(assemble(text + entrance), result != numba_types.none)


def _numba_type(kind: ArrayType | None) -> Any:
    if kind is None:
        return numba.int64
    return numba_types.Array(numba.from_dtype(np.dtype(kind.dtype)), kind.ndim, "C")


def _within_numba(function: Callable[..., Any], known: dict[Any, Any]) -> Any:
    """Hand a function to Numba, behind the parts that it calls."""
    known[function] = None
    namespace: dict[str, Any] = {"__builtins__": __builtins__, "__name__": function.__module__}
    for name, value in referenced_globals(function).items():
        by_hand = _WRITTEN_BY_HAND[value]() if value in _WRITTEN_BY_HAND else None
        if by_hand is not None:
            namespace[name] = by_hand
        elif not is_device_function(value):
            namespace[name] = value
        else:
            namespace[name] = known[value] if value in known else _within_numba(value, known)
            if namespace[name] is None:
                # It would be linked through variables that only Numba can fill in.
                raise TypeError(f"{function.__qualname__} calls {name}, which calls it")
    bound = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__)
    bound.__qualname__, bound.__module__ = function.__qualname__, function.__module__
    known[function] = numba.njit(**_OPTIONS)(bound)
    return known[function]


def _forbid_floats(dispatcher: Any) -> None:
    """Refuse what would be rounded: some Numbas make a float of an int64 with a uint64."""
    for overload in dispatcher.overloads.values():
        for name, kind in overload.type_annotation.typemap.items():
            if isinstance(kind, numba_types.Float):
                raise TypeError(f"kernel {dispatcher.__qualname__}: {name} is a {kind}")


def _entrance(native: str, arguments: Types, result: Any) -> str:
    """
    Write the entrance to Numba's function.

    It takes where to put the result, and the words of the call: the address of what is expected
    (the type of arrays, then the dtype of each array), the address of each argument's object, and
    the values of the numbers.
    """
    body = _Text()
    expected = body.pointer("%call", 0)
    objects = {i: body.pointer("%call", 8 + 8 * i) for i, kind in enumerate(arguments) if kind}
    array = body.word(expected, 0)
    body.leave_unless([body.differs(body.word(at, _TYPE), array) for at in objects.values()])
    wrong = []
    for number, (i, at) in enumerate(objects.items()):
        kind = arguments[i]
        assert kind
        wrong.append(body.differs(body.word(at, _DTYPE), body.word(expected, 8 + 8 * number)))
        wrong.append(body.differs(body.half(at, _NDIM), kind.ndim))
        flags = body.make(f"and i64 {body.half(at, _FLAGS)}, {_CONTIGUOUS_AND_ALIGNED}")
        wrong.append(body.differs(flags, _CONTIGUOUS_AND_ALIGNED))
    body.leave_unless(wrong)
    passed = ["ptr %native_result", "ptr %native_error"]
    number = len(arguments)
    for i, kind in enumerate(arguments):
        if kind is None:
            number += 1
            passed.append(f"i64 {body.word('%call', 8 * number)}")
        else:
            passed += _array(body, objects[i], kind)
    status = body.make(f"call i32 @{native}({', '.join(passed)})")
    if result != numba_types.none:
        # A truth value takes a byte in memory.
        width = result.bitwidth if result != numba_types.boolean else 8
        value = body.make(f"load i{width}, ptr %native_result")
        if width < 64:
            extend = "sext" if getattr(result, "signed", False) else "zext"
            value = body.make(f"{extend} i{width} {value} to i64")
        body.write(f"store i64 {value}, ptr %result")
    body.write(f"ret i32 {status}")
    return (
        f"\ndefine i32 @{ENTRY_POINT}(ptr %result, ptr %call) {{\n"
        "%native_result = alloca i64\nstore i64 0, ptr %native_result\n"
        "%native_error = alloca ptr\n" + "\n".join(body.lines) + "\n}\n"
    )


def _array(body: _Text, at: str, kind: ArrayType) -> list[str]:
    """Write what reads an array, and return it as Numba's functions take it."""
    shape, strides = body.pointer(at, _SHAPE), body.pointer(at, _STRIDES)
    sizes = [body.word(shape, 8 * axis) for axis in range(kind.ndim)]
    steps = [body.word(strides, 8 * axis) for axis in range(kind.ndim)]
    items = sizes[0]
    for size in sizes[1:]:
        items = body.make(f"mul i64 {items}, {size}")
    width = np.dtype(kind.dtype).itemsize
    owners = ["ptr null", "ptr null"]
    words = [f"i64 {word}" for word in (items, width)]
    data = body.pointer(at, _DATA)
    return [*owners, *words, f"ptr {data}", *(f"i64 {word}" for word in sizes + steps)]


class _Text:
    """LLVM's code in text form, as it is written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._values = 0

    def write(self, line: str) -> None:
        self.lines.append(line)

    def make(self, instruction: str) -> str:
        """Write an instruction that gives a value; return the name of it."""
        self._values += 1
        self.write(f"%v{self._values} = {instruction}")
        return f"%v{self._values}"

    def place(self, base: str, offset: int) -> str:
        return self.make(f"getelementptr i8, ptr {base}, i64 {offset}")

    def word(self, base: str, offset: int) -> str:
        return self.make(f"load i64, ptr {self.place(base, offset)}")

    def half(self, base: str, offset: int) -> str:
        """Write what reads 32 bits."""
        return self.make(
            f"zext i32 {self.make(f'load i32, ptr {self.place(base, offset)}')} to i64"
        )

    def pointer(self, base: str, offset: int) -> str:
        return self.make(f"load ptr, ptr {self.place(base, offset)}")

    def differs(self, left: str, right: str | int) -> str:
        return self.make(f"icmp ne i64 {left}, {right}")

    def leave_unless(self, wrong: Sequence[str]) -> None:
        """Write what ends the call if one of some conditions is true."""
        some = "false"
        for condition in wrong:
            some = self.make(f"or i1 {some}, {condition}")
        self._values += 1
        at = self._values
        self.write(f"br i1 {some}, label %leave{at}, label %stay{at}")
        self.write(f"leave{at}:\nret i32 {OTHER_TYPES}\nstay{at}:")
