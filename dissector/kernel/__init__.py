"""Functions over columns of numbers, compiled by Numba where the amount of work justifies it."""

from __future__ import annotations

from dissector.kernel.call import COMPILE_FROM, Kernel
from dissector.kernel.source import device_function

__all__ = ["COMPILE_FROM", "Kernel", "device_function"]
