"""
Calls of C functions inside kernels, where a call from Python would cost as much as the work.

A kernel gets the address of a function of a library that is already loaded.
"""

from __future__ import annotations

from dissector.kernel.arrays import U8
from dissector.kernel.decorators import device_function

NOT_CALLED = -1


@device_function
def call_decompressor(
    function: int, source: U8, start: int, length: int, target: U8, at: int, room: int
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
    source: U8,
    start: int,
    length: int,
    target: U8,
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
