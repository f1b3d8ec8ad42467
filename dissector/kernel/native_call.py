"""
Calls of a C library's functions inside kernels, where Python would cost as much as the work.

A kernel is handed the address of a function whose library is loaded already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dissector.kernel.source import device_function

NOT_CALLED = -1


@device_function
def call_decompressor(
    function: int, source: Any, start: int, length: int, target: Any, at: int, room: int
) -> int:
    """
    Call a function that decompresses bytes of one array of uint8 to another.

    Args:
        function: Address of a C function that takes where the bytes are, where the output goes, how
            many bytes there are, and for how many there is room: numbers that C's `int` holds.
        source: The bytes,
        start: from there on,
        length: so many.
        target: Is written to,
        at: from there on,
        room: so many at most.

    Returns:
        What the function returns: how many bytes it wrote; something negative if it could not. In a
        kernel that runs as Python NOT_CALLED: Python has the library itself.
    """
    return NOT_CALLED


@device_function
def call_decompressor_with_context(
    function: int,
    within: int,
    source: Any,
    start: int,
    length: int,
    target: Any,
    at: int,
    room: int,
) -> int:
    """
    Call a decompressor like `call_decompressor`, one with a context and sizes of `size_t`.

    Args:
        function: Address of a C function that takes the context, where the output goes, for how
            many bytes there is room, where the bytes are, and how many there are.
        within: Address of the context, which nobody else uses meanwhile.
        source: As there, like all that follows.
        start: As there.
        length: As there.
        target: As there.
        at: As there.
        room: As there.
    """
    return NOT_CALLED


def call_decompressor_intrinsic() -> Callable[..., Any]:
    """Return `call_decompressor` as kernels are compiled with it."""
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    c_function = ir.FunctionType(number, [byte, byte, number, number]).as_pointer()

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function, source, start, length, target, at, room = arguments
        taken = _place(context, builder, signature.args[1], source, start)
        given = _place(context, builder, signature.args[4], target, at)
        sizes = [builder.trunc(each, number) for each in (length, room)]
        result = builder.call(builder.inttoptr(function, c_function), [taken, given, *sizes])
        return builder.sext(result, ir.IntType(64))

    def typed(
        typing: Any,
        function: Any,
        source: Any,
        start: Any,
        length: Any,
        target: Any,
        at: Any,
        room: Any,
    ) -> Any:
        size = types.int64
        return size(size, source, size, size, target, size, size), generated

    compiled: Callable[..., Any] = intrinsic(typed)
    return compiled


def call_decompressor_with_context_intrinsic() -> Callable[..., Any]:
    """Return `call_decompressor_with_context` as kernels are compiled with it."""
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    byte, number = ir.IntType(8).as_pointer(), ir.IntType(64)
    c_function = ir.FunctionType(number, [byte, byte, number, byte, number]).as_pointer()

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function, within, source, start, length, target, at, room = arguments
        taken = _place(context, builder, signature.args[2], source, start)
        given = _place(context, builder, signature.args[5], target, at)
        return builder.call(
            builder.inttoptr(function, c_function),
            [builder.inttoptr(within, byte), given, room, taken, length],
        )

    def typed(
        typing: Any,
        function: Any,
        within: Any,
        source: Any,
        start: Any,
        length: Any,
        target: Any,
        at: Any,
        room: Any,
    ) -> Any:
        size = types.int64
        return size(size, size, source, size, size, target, size, size), generated

    compiled: Callable[..., Any] = intrinsic(typed)
    return compiled


def _place(context: Any, builder: Any, kind: Any, array: Any, offset: Any) -> Any:
    """Return the address of a byte of an array."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [offset])
