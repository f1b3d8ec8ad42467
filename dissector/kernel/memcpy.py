"""
Copies of bytes inside kernels, as calls of memcpy.

A loop over bytes takes a nanosecond per byte as Numba compiles it; memcpy takes three for all of a
short text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dissector.kernel.source import device_function


@device_function
def copy_bytes(target: Any, at: int, source: Any, start: int, length: int) -> None:
    """Copy bytes from one array of uint8 to another; both ranges must be inside their arrays."""
    target[at : at + length] = source[start : start + length]


def copy_bytes_intrinsic() -> Callable[..., Any]:
    """Return the intrinsic for `copy_bytes`."""
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, at, source, start, length = arguments
        places = [
            builder.gep(context.make_array(kind)(context, builder, array).data, [offset])
            for kind, array, offset in (
                (signature.args[0], target, at),
                (signature.args[2], source, start),
            )
        ]
        copy: Any = cgutils.raw_memcpy
        copy(builder, *places, length, 1)
        return context.get_dummy_value()

    def typed(typing: Any, target: Any, at: Any, source: Any, start: Any, length: Any) -> Any:
        return types.void(target, types.int64, source, types.int64, types.int64), generated

    compiled: Callable[..., Any] = intrinsic(typed)
    return compiled
