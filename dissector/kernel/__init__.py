"""Functions over columns of numbers, compiled ahead of time where a C compiler is at hand."""

from __future__ import annotations

from dissector.kernel.call import Kernel
from dissector.kernel.decorators import device_function

__all__ = ["Kernel", "device_function"]
