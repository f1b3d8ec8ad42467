"""
Calls of C functions inside kernels, where a call from Python would cost as much as the work.

A kernel gets the address of a function of a library that is already loaded.
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
    Call a function that decompresses bytes of one array of uint8 into another.

    Args:
        function: Address of a C function that takes the address of the input, that of the output,
            the length of the input and the room in the output, all lengths as C's `int`.
        source: The input.
        start: Index of its first byte.
        length: Its length.
        target: The output.
        at: Index of its first byte.
        room: The number of bytes that may be written.

    Returns:
        The function's result: the number of bytes written, negative on failure. In Python mode
        NOT_CALLED: Python calls the library itself.
    """
    return NOT_CALLED


@device_function
def call_decompressor_with_context(
    function: int,
    context: int,
    source: Any,
    start: int,
    length: int,
    target: Any,
    at: int,
    room: int,
) -> int:
    """
    Call a decompressing function that needs a context and takes sizes as `size_t`.

    Args:
        function: Address of a C function that takes the context, the address of the output, the
            room in the output, the address of the input and its length.
        context: Address of the context, which nothing else may use meanwhile.
        source: As for `call_decompressor`, and so are the next.
        start: Likewise.
        length: Likewise.
        target: Likewise.
        at: Likewise.
        room: Likewise.
    """
    return NOT_CALLED


def call_decompressor_intrinsic() -> Callable[..., Any]:
    """Return the intrinsic for `call_decompressor`."""
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    c_function = ir.FunctionType(number, [byte, byte, number, number]).as_pointer()

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function, source, start, length, target, at, room = arguments
        source_address = _byte_address(context, builder, signature.args[1], source, start)
        target_address = _byte_address(context, builder, signature.args[4], target, at)
        sizes = [builder.trunc(each, number) for each in (length, room)]
        result = builder.call(
            builder.inttoptr(function, c_function), [source_address, target_address, *sizes]
        )
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
    """Return the intrinsic for `call_decompressor_with_context`."""
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    byte, number = ir.IntType(8).as_pointer(), ir.IntType(64)
    c_function = ir.FunctionType(number, [byte, byte, number, byte, number]).as_pointer()

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function, c_context, source, start, length, target, at, room = arguments
        source_address = _byte_address(context, builder, signature.args[2], source, start)
        target_address = _byte_address(context, builder, signature.args[5], target, at)
        return builder.call(
            builder.inttoptr(function, c_function),
            [builder.inttoptr(c_context, byte), target_address, room, source_address, length],
        )

    def typed(
        typing: Any,
        function: Any,
        c_context: Any,
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


def _byte_address(context: Any, builder: Any, kind: Any, array: Any, offset: Any) -> Any:
    """Return the address of an array's byte."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [offset])
