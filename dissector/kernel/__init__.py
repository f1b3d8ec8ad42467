"""Functions over columns of numbers, compiled ahead of time if a C compiler is available."""

from __future__ import annotations

from dissector.kernel.call import Kernel
from dissector.kernel.decorators import device_function

__all__ = ["Kernel", "device_function"]
