"""
Loops over columns, compiled where there is much to do.

A *kernel* is a plain Python function in the small subset that Numba compiles: integers, arrays that
are indexed, `while` and `for range`. The same source runs both ways. With little to do it runs as
Python, so a small capture never waits for a compiler; with much it is compiled by Numba, once, and
kept on disk.

In Python a kernel sees its arrays as memoryviews, whose items are Python's own integers: quicker
than numpy's scalars, and without their overflow. So a kernel may index arrays and take their `len`,
and nothing else of numpy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

COMPILE_FROM = 20_000
"""Work (in steps of some ten nanoseconds when compiled) from which compiled code pays."""


class Kernel:
    """
    A function over columns; see the module.

    Attributes:
        python: The function as written.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.python = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any, work: int) -> Any:
        """
        Run over the arguments.

        Args:
            arguments: Arrays and integers.
            work: About how many steps there are to do.
        """
        if work < COMPILE_FROM and self._compiled is None:
            return self.python(*map(_view, arguments))
        return self.compiled(*arguments)

    @property
    def compiled(self) -> Callable[..., Any]:
        """The function compiled by Numba, from its cache on disk if it is there."""
        if self._compiled is None:
            import numba

            _announce()
            self._compiled = numba.njit(cache=True, nogil=True)(self.python)
        return self._compiled


_announced = False


def _announce() -> None:
    """Say once, on a terminal, why the first run on a machine takes longer."""
    global _announced  # noqa: PLW0603  (once a process)
    if _announced or not sys.stderr.isatty():
        return
    _announced = True


def _view(argument: Any) -> Any:
    """Return an array as a memoryview; anything else as it is."""
    return memoryview(argument) if isinstance(argument, np.ndarray) else argument
