"""
Compilation of kernels to machine code with Numba.

Numba's function takes an array as seven or more separate values. The entry point generated here
takes the address of an array of words, reads the arrays from numpy's own objects, whose layout
cannot change because extension modules are compiled against it, and checks their types: a call
costs a microsecond, whatever the arrays.
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
"""Status of a call whose arguments do not have the types that the code was compiled for."""

_OPTIONS: Any = {
    "_nrt": False,
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    # Each array is passed as seven values or more, so a call would cost more than its work.
    "forceinline": True,
}

_INTRINSICS: dict[Any, Callable[[], Any]] = {
    update_crc: update_crc_intrinsic,
    copy_bytes: copy_bytes_intrinsic,
    call_decompressor: call_decompressor_intrinsic,
    call_decompressor_with_context: call_decompressor_with_context_intrinsic,
}
"""
Device functions that Numba would compile badly, each with a factory of its intrinsic.

A factory returns None where the processor lacks the instruction.
"""

_NUMBERS = (numba_types.Integer, numba_types.Boolean)
"""Return types of kernels; the caller gets an int for each."""

_HEAD = object.__basicsize__
"""Offset of an object's fields, behind its reference count and its type."""

_TYPE, _DATA, _NDIM, _SHAPE, _STRIDES, _DTYPE, _FLAGS = (
    _HEAD + 8 * field for field in (-1, 0, 1, 2, 3, 5, 6)
)

_CONTIGUOUS_AND_ALIGNED = 0x101


class CompiledKernel(NamedTuple):
    """
    A compiled kernel.

    Attributes:
        code: The object file.
        returns: Whether the kernel returns a number.
    """

    code: bytes
    returns: bool


def compile_kernel(function: Callable[..., Any], arguments: Types) -> CompiledKernel:
    """
    Compile a kernel, and the device functions it calls, for some types of arguments.

    Raises:
        TypeError: The kernel does what kernels may not do.
    """
    dispatchers: dict[Any, Any] = {}
    try:
        dispatcher = _to_dispatcher(function, dispatchers)
        dispatcher.compile(tuple(map(_numba_type, arguments)))
    except numba.core.errors.NumbaError as error:
        raise TypeError(f"kernel {function.__qualname__}: {error}") from error
    if not any(kind and "f" in kind.dtype for kind in arguments):
        for each in dispatchers.values():
            _forbid_floats(each)
    (signature,) = dispatcher.nopython_signatures
    result = signature.return_type
    if result != numba_types.none and not isinstance(result, _NUMBERS):
        raise TypeError(f"kernel {function.__qualname__} returns {result}")
    native = dispatcher.overloads[signature.args].fndesc.llvm_func_name
    text = dispatcher.inspect_llvm(signature.args)
    entry_point = _entry_point(native, arguments, result)
    return CompiledKernel(assemble(text + entry_point), result != numba_types.none)


def _numba_type(kind: ArrayType | None) -> Any:
    if kind is None:
        return numba.int64
    return numba_types.Array(numba.from_dtype(np.dtype(kind.dtype)), kind.ndim, "C")


def _to_dispatcher(function: Callable[..., Any], dispatchers: dict[Any, Any]) -> Any:
    """Return Numba's dispatcher of a function, after those of the device functions it calls."""
    dispatchers[function] = None
    namespace: dict[str, Any] = {"__builtins__": __builtins__, "__name__": function.__module__}
    for name, value in referenced_globals(function).items():
        intrinsic = _INTRINSICS[value]() if value in _INTRINSICS else None
        if intrinsic is not None:
            namespace[name] = intrinsic
        elif not is_device_function(value):
            namespace[name] = value
        else:
            namespace[name] = (
                dispatchers[value] if value in dispatchers else _to_dispatcher(value, dispatchers)
            )
            if namespace[name] is None:
                # Recursion would be linked through variables that only Numba can fill in.
                raise TypeError(f"{function.__qualname__} calls {name}, which calls it")
    bound = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__)
    bound.__qualname__, bound.__module__ = function.__qualname__, function.__module__
    dispatchers[function] = numba.njit(**_OPTIONS)(bound)
    return dispatchers[function]


def _forbid_floats(dispatcher: Any) -> None:
    """Raise TypeError if a value became a float: some versions of Numba mix int64 and uint64 so."""
    for overload in dispatcher.overloads.values():
        for name, kind in overload.type_annotation.typemap.items():
            if isinstance(kind, numba_types.Float):
                raise TypeError(f"kernel {dispatcher.__qualname__}: {name} is a {kind}")


def _entry_point(native: str, arguments: Types, result: Any) -> str:
    """
    Return LLVM code of the entry point to Numba's function.

    It takes the address of the result and that of the call's words: the address of the expected
    types (the type of arrays, then the dtype of each array), the address of each argument's object,
    and the values of the integers.
    """
    body = _IrBuilder()
    expected = body.load_ptr("%call", 0)
    objects = {i: body.load_ptr("%call", 8 + 8 * i) for i, kind in enumerate(arguments) if kind}
    array = body.load_i64(expected, 0)
    body.return_if_any([body.not_equal(body.load_i64(at, _TYPE), array) for at in objects.values()])
    mismatches = []
    for number, (i, at) in enumerate(objects.items()):
        kind = arguments[i]
        assert kind
        mismatches.append(
            body.not_equal(body.load_i64(at, _DTYPE), body.load_i64(expected, 8 + 8 * number))
        )
        mismatches.append(body.not_equal(body.load_i32(at, _NDIM), kind.ndim))
        flags = body.assign(f"and i64 {body.load_i32(at, _FLAGS)}, {_CONTIGUOUS_AND_ALIGNED}")
        mismatches.append(body.not_equal(flags, _CONTIGUOUS_AND_ALIGNED))
    body.return_if_any(mismatches)
    arguments_text = ["ptr %native_result", "ptr %native_error"]
    number = len(arguments)
    for i, kind in enumerate(arguments):
        if kind is None:
            number += 1
            arguments_text.append(f"i64 {body.load_i64('%call', 8 * number)}")
        else:
            arguments_text += _array_arguments(body, objects[i], kind)
    status = body.assign(f"call i32 @{native}({', '.join(arguments_text)})")
    if result != numba_types.none:
        # A boolean takes a byte in memory.
        width = result.bitwidth if result != numba_types.boolean else 8
        value = body.assign(f"load i{width}, ptr %native_result")
        if width < 64:
            extend = "sext" if getattr(result, "signed", False) else "zext"
            value = body.assign(f"{extend} i{width} {value} to i64")
        body.write(f"store i64 {value}, ptr %result")
    body.write(f"ret i32 {status}")
    return (
        f"\ndefine i32 @{ENTRY_POINT}(ptr %result, ptr %call) {{\n"
        "%native_result = alloca i64\nstore i64 0, ptr %native_result\n"
        "%native_error = alloca ptr\n" + "\n".join(body.lines) + "\n}\n"
    )


def _array_arguments(body: _IrBuilder, at: str, kind: ArrayType) -> list[str]:
    """Write the code that reads an array; return it in the form that Numba's functions take."""
    shape, strides = body.load_ptr(at, _SHAPE), body.load_ptr(at, _STRIDES)
    sizes = [body.load_i64(shape, 8 * axis) for axis in range(kind.ndim)]
    steps = [body.load_i64(strides, 8 * axis) for axis in range(kind.ndim)]
    items = sizes[0]
    for size in sizes[1:]:
        items = body.assign(f"mul i64 {items}, {size}")
    width = np.dtype(kind.dtype).itemsize
    owners = ["ptr null", "ptr null"]
    words = [f"i64 {word}" for word in (items, width)]
    data = body.load_ptr(at, _DATA)
    return [*owners, *words, f"ptr {data}", *(f"i64 {word}" for word in sizes + steps)]


class _IrBuilder:
    """Builder of LLVM code in text form."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._values = 0

    def write(self, line: str) -> None:
        self.lines.append(line)

    def assign(self, instruction: str) -> str:
        """Write an instruction that yields a value; return the value's name."""
        self._values += 1
        self.write(f"%v{self._values} = {instruction}")
        return f"%v{self._values}"

    def address(self, base: str, offset: int) -> str:
        return self.assign(f"getelementptr i8, ptr {base}, i64 {offset}")

    def load_i64(self, base: str, offset: int) -> str:
        return self.assign(f"load i64, ptr {self.address(base, offset)}")

    def load_i32(self, base: str, offset: int) -> str:
        """Write a load of 32 bits, extended to 64."""
        return self.assign(
            f"zext i32 {self.assign(f'load i32, ptr {self.address(base, offset)}')} to i64"
        )

    def load_ptr(self, base: str, offset: int) -> str:
        return self.assign(f"load ptr, ptr {self.address(base, offset)}")

    def not_equal(self, left: str, right: str | int) -> str:
        return self.assign(f"icmp ne i64 {left}, {right}")

    def return_if_any(self, conditions: Sequence[str]) -> None:
        """Write a return with `OTHER_TYPES` if any of these conditions holds."""
        any_true = "false"
        for condition in conditions:
            any_true = self.assign(f"or i1 {any_true}, {condition}")
        self._values += 1
        at = self._values
        self.write(f"br i1 {any_true}, label %leave{at}, label %stay{at}")
        self.write(f"leave{at}:\nret i32 {OTHER_TYPES}\nstay{at}:")
