"""
Addresses of decompression functions that kernels can call, where the libraries export them.

Source: lz4.h; zstd.h.
"""

from __future__ import annotations

import ctypes
import threading
from functools import cache
from importlib.util import find_spec
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

LZ4_FUNCTION, ZSTD_FUNCTION, ZSTD_CONTEXT = range(3)
"""Indexes in the result of `library_addresses`; an address of 0 is not available."""

Ints: TypeAlias = NDArray[np.int64]


def no_libraries() -> Ints:
    """Return addresses that are all unavailable."""
    return np.zeros(3, np.int64)


def library_addresses(*, lz4: bool, zstd: bool) -> Ints:
    """
    Return addresses for a kernel that runs in the current thread.

    Args:
        lz4: Whether to look up the function of lz4.
        zstd: Whether to look up the function of zstd, and a context for it.
    """
    found = no_libraries()
    if lz4:
        found[LZ4_FUNCTION] = _lz4_function()
    if zstd:
        if not hasattr(_thread_local, "zstd"):
            _thread_local.zstd = _ZstdContext()
        found[ZSTD_FUNCTION], found[ZSTD_CONTEXT] = (
            _thread_local.zstd.function,
            _thread_local.zstd.context,
        )
    return found


_thread_local = threading.local()
"""A zstd context must not be used by two threads at a time."""


@cache
def _lz4_function() -> int:
    from lz4.block import _block

    library = _load(_block.__file__)
    return _address(library, "LZ4_decompress_safe")


@cache
def _zstd_library() -> ctypes.CDLL | None:
    # Of the two modules that wrap the library, this one exports it; it is loaded, not imported.
    spec = find_spec("zstandard._cffi")
    return _load(spec.origin if spec else None)


class _ZstdContext:
    """The function of zstd and a context, which is freed when its thread ends."""

    def __init__(self) -> None:
        self.function = self.context = 0
        library = _zstd_library()
        function = _address(library, "ZSTD_decompressDCtx")
        if library is None or not function:
            return
        create, self._free = library.ZSTD_createDCtx, library.ZSTD_freeDCtx
        create.restype, self._free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        self.context = create() or 0
        self.function = function if self.context else 0

    def __del__(self) -> None:
        if self.context:
            self._free(self.context)


def _load(path: str | None) -> ctypes.CDLL | None:
    """Load a library; None if it is missing or not loadable."""
    try:
        return ctypes.CDLL(path) if path else None
    except OSError:
        return None


def _address(library: ctypes.CDLL | None, name: str) -> int:
    """Return the address of a function; 0 where the library does not export it."""
    function = getattr(library, name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0
