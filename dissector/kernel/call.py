"""
Kernels: functions over columns, compiled ahead of time if a C compiler was available.

A *kernel* is a Python function in a small subset of the language: integers, indexed arrays, `while`
and `for range`. `tools.kernels` compiles it, with all that it calls, into the extension module of
its package; without that module the same function runs as Python.

Arrays that belong together are the fields of a NamedTuple, so that a kernel has few parameters.
State is kept in tables of rows with named fields, see `named_rows`.

As Python a kernel gets its arrays as memoryviews with Python integers as items, and tables of rows
as their memory. So it may index arrays and take their `len`, and may use no other part of numpy.
It may use integer constants, also those of a class (`Op.NUMBER`), and functions marked with
`device_function`; it must not raise, and must not create anything but numbers.

Compiled code runs without the interpreter's lock (GIL) and does not check indices, unless it was
built to.
"""

from __future__ import annotations

import math
import operator
import os
import sys
from collections.abc import Callable
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

from dissector.installation import IS_CHECKOUT, compiling
from dissector.kernel.named_rows import in_memory

CHECKED = "KAFKASHARK_CHECKED"
"""Environment variable that selects kernels built with checks of all indices."""

NOTICE_SECONDS = 1.0
"""Time in uncompiled kernels after which a process says that they are slow: small work needs no
notice."""


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

    def __call__(self, *arguments: Any) -> Any:
        """
        Run the kernel with arrays and integers.

        Raises:
            TypeError: An argument has another type than its annotation.
            OverflowError: An integer has more than 64 bits.
        """
        return (self.compiled or self.uncompiled)(*arguments)

    @property
    def is_compiled(self) -> bool:
        """Whether calls run compiled; for callers with a faster alternative to Python mode."""
        return self.compiled is not None

    @cached_property
    def compiled(self) -> Callable[..., Any] | None:
        """The compiled form; None if it was not built."""
        module = self.python.__module__
        extension = _extension(_package(module))
        return getattr(extension, f"{module}.{self.__name__}".replace(".", "__"), None)

    def uncompiled(self, *arguments: Any) -> Any:
        """Run as Python; after `NOTICE_SECONDS` of that, stderr gets a line with the cure."""
        start = perf_counter()
        result = self.python(*map(_to_python, arguments))
        if _extension(_package(self.python.__module__)) is None:
            _slowness.add(perf_counter() - start)
        return result


def _package(module: str) -> str:
    """Return the package with the extension of a module's kernels."""
    parts = module.split(".")
    return ".".join(parts[: 2 if parts[0] == "dissector" else 1])


class _Slowness:
    """The time that a process has spent in kernels that were not built."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.cause = "the kernels are not compiled", compiling()

    def add(self, seconds: float) -> None:
        """Add the time of a call; write the notice when it becomes worth one."""
        was, self.seconds = self.seconds, self.seconds + seconds
        if was <= NOTICE_SECONDS < self.seconds:
            cause, cure = self.cause
            line = f"{cause}, this takes some 30 times as long: {cure}"
            print(f"kafkashark: {line}", file=sys.stderr)


_slowness = _Slowness()


@cache
def _extension(package: str) -> ModuleType | None:
    """Load the compiled kernels of a package; None if they were not built, or are outdated."""
    name = f"{package}._kernels" + ("_checked" if os.environ.get(CHECKED) else "")
    try:
        found = import_module(name)
    except ModuleNotFoundError:
        return None
    if IS_CHECKOUT and _is_outdated(found):
        _slowness.cause = "the kernels are older than their sources", "make kernels"
        return None
    return found


def _is_outdated(extension: ModuleType) -> bool:
    """Return whether a source has changed since the build: rows and columns may be others now."""
    built = _changed_ns(Path(extension.__file__ or ""))
    root = Path(__file__).parents[2]
    files = getattr(extension, "FILES", None)  # builds of earlier sources have none
    return files is None or any(_changed_ns(root / each) > built for each in files)


def _changed_ns(path: Path) -> float:
    """Return when a file has changed; a source that is gone is a change."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return math.inf


def _to_python(argument: Any) -> Any:
    """
    Return an argument for a kernel that runs as Python: a memoryview, or a Python integer.

    Raises:
        TypeError: The argument is neither an integer, nor a C-contiguous array, nor a NamedTuple of
            these.
    """
    if isinstance(argument, tuple):
        return type(argument)(*map(_to_python, argument))
    if not isinstance(argument, np.ndarray):
        return operator.index(argument)
    if argument.dtype.fields is not None and argument.flags.c_contiguous:
        return in_memory(argument)
    memory = (argument if argument.dtype != np.bool_ else argument.view(np.uint8)).data
    if not memory.c_contiguous:
        raise TypeError("kernels take C-contiguous arrays")
    return memory
