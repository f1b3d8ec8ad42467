"""
Return of freed memory to the system.

The C library of Linux retains freed memory between used blocks: hundreds of megabytes after a list
of a million records.

Source: https://man7.org/linux/man-pages/man3/malloc_trim.3.html
"""

from __future__ import annotations

import ctypes
import gc
import sys


def release_memory() -> None:
    """Collect garbage, and return free memory to the system, if the C library can."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
