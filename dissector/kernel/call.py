"""
Kernels: functions over columns, compiled when there is enough work.

A *kernel* is a Python function in the small subset that Numba compiles: integers, indexed arrays,
`while` and `for range`. The same source runs in both modes. With little work it runs as Python, so
a small capture never waits for a compiler; with more it is compiled by Numba, once, and the machine
code is cached on disk, from where it is loaded without Numba.

In Python mode a kernel gets its arrays as memoryviews, whose items are Python integers: faster than
numpy scalars, and without their overflow. So a kernel may index arrays and take their `len`, and
may use nothing else of numpy. It may use integer constants of its module and functions marked with
`device_function`; it must not raise, and must not create anything but numbers.

Compiled code runs without the interpreter's lock (GIL) and does not check indices.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dissector.kernel.arguments import SignatureMismatch, Types, to_native, to_python, type_of

LOAD_FROM = 20_000
"""Work, in steps of about ten nanoseconds when compiled, above which compiled code is loaded."""

COMPILE_FROM = 1_000_000
"""Work above which a kernel that is not in the cache is compiled."""


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
        self._work = 0
        self._threshold = LOAD_FROM
        self._variants: dict[Types, Callable[..., int | None]] = {}
        self._latest: Callable[..., int | None] | None = None

    def __call__(self, *arguments: Any, work: int) -> Any:
        """
        Run the kernel.

        Args:
            arguments: Arrays and integers.
            work: About how many steps the call takes. The work of all calls is added up.

        Raises:
            TypeError: An argument is neither an integer nor a contiguous array of numbers.
        """
        latest = self._latest
        if latest is not None:
            try:
                return latest(*arguments)
            except SignatureMismatch:
                pass  # other types than in the last call, or an array that needs conversion
        compiled = self._compiled_for(arguments, work)
        return (
            self.uncompiled(*arguments)
            if compiled is None
            else compiled(*map(to_native, arguments))
        )

    def ready(self, *arguments: Any, work: int) -> bool:
        """
        Return whether a call with such arguments would run compiled, and count its work.

        For callers that have a faster alternative than the kernel in Python mode.
        """
        # Each caller passes the same types every time.
        return self._latest is not None or self._compiled_for(arguments, work) is not None

    @property
    def compiled(self) -> Callable[..., int | None]:
        """The compiled kernel; after the first access it always runs compiled."""
        self._work = COMPILE_FROM
        return partial(self, work=0)

    def uncompiled(self, *arguments: Any) -> Any:
        """Run as Python."""
        return self.python(*map(to_python, arguments))

    def _compiled_for(
        self, arguments: tuple[Any, ...], work: int
    ) -> Callable[..., int | None] | None:
        """Add to the work done; return the compiled form, or None below the threshold."""
        self._work += work
        if self._work < self._threshold:
            return None
        compiled = self._variant(tuple(type_of(to_native(each)) for each in arguments))
        if compiled is None:
            self._threshold = COMPILE_FROM
        else:
            self._latest = compiled
        return compiled

    def _variant(self, types: Types) -> Callable[..., int | None] | None:
        """Return the compiled form for these types if it is cached or worth compiling."""
        compiled = self._variants.get(types)
        if compiled is None:
            from dissector.kernel.variants import variant  # loads LLVM

            count = self.python.__code__.co_argcount
            if len(types) != count:
                raise TypeError(f"kernel {self.__name__} takes {count} arguments")
            compiled = variant(self.python, types, compiling=self._work >= COMPILE_FROM)
            if compiled is not None:
                self._variants[types] = compiled
        return compiled
