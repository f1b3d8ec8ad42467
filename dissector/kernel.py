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
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

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
            self._compiled = _compile(self.python)
        return self._compiled


_Function = TypeVar("_Function", bound=Callable[..., Any])

_parts: set[Callable[..., Any]] = set()


def part(function: _Function) -> _Function:
    """Mark a function that kernels call; it is compiled into them."""
    _parts.add(function)
    return function


def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for Numba to compile when it is first called."""
    import numba

    # The parts see one another, compiled, through a namespace that kernel and parts share.
    namespace = dict(function.__globals__)
    parts = [(name, value) for name, value in namespace.items() if _is_part(value)]
    namespace |= {name: numba.njit(_within(namespace, value)) for name, value in parts}
    bound = _within(namespace, function)
    try:
        compiled = numba.njit(cache=True, nogil=True)(bound)
    except RuntimeError:  # no folder that may be written to: it is compiled in each process
        compiled = numba.njit(nogil=True)(bound)
    if not _is_cached(compiled) and sys.stderr.isatty():
        print("kafkashark: compiling, once on this machine", file=sys.stderr)
    return cast(Callable[..., Any], compiled)


def _is_part(value: Any) -> bool:
    return isinstance(value, FunctionType) and value in _parts


def _within(namespace: dict[str, Any], function: Callable[..., Any]) -> FunctionType:
    """Return a function that looks its globals up in a namespace."""
    bound = FunctionType(function.__code__, namespace, function.__name__)
    bound.__qualname__, bound.__module__ = function.__qualname__, function.__module__
    return bound


def _is_cached(compiled: Any) -> bool:
    """Tell whether an earlier process has left its compiled code on disk."""
    folder = compiled.stats.cache_path
    name = compiled.py_func.__qualname__
    return folder is not None and any(Path(folder).glob(f"*.{name}-*.nbi"))


def _view(argument: Any) -> Any:
    """Return an array as a memoryview; anything else as it is."""
    return argument.data if isinstance(argument, np.ndarray) else argument
