"""
Return of freed memory to the system.

The C library of Linux retains freed memory between used blocks: hundreds of megabytes after a list
of a million records.

Source: https://man7.org/linux/man-pages/man3/mallopt.3.html and malloc_trim.3.html
"""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_LARGE_BYTES = 1 << 20


def limit_free_memory() -> None:
    """Return large blocks at once, and share small ones among threads."""
    _call("mallopt", _M_MMAP_THRESHOLD, _LARGE_BYTES)
    _call("mallopt", _M_ARENA_MAX, 2)


def trim_memory() -> None:
    """Return free memory to the system, if the C library can."""
    _call("malloc_trim", 0)


def release_memory() -> None:
    """Collect garbage, and return free memory to the system, if the C library can."""
    gc.collect()
    trim_memory()


def _call(name: str, *numbers: int) -> None:
    """Call a function of the C library, if it exists."""
    function: Any = getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
    if function is not None:
        function(*numbers)
