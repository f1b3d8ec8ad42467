"""
Loops over columns, compiled where there is much to do.

A *kernel* is a plain Python function in the small subset that Numba compiles: integers, arrays that
are indexed, `while` and `for range`. The same source runs both ways. With little to do it runs as
Python, so a small capture never waits for a compiler; with much it is compiled by Numba, once, and
kept on disk, from where it is loaded without Numba.

In Python a kernel sees its arrays as memoryviews, whose items are Python's own integers: quicker
than numpy's scalars, and without their overflow. So a kernel may index arrays and take their `len`,
and nothing else of numpy. It may name whole numbers of its module and functions marked as parts; it
must not raise, nor make anything but numbers.

Compiled code runs without the interpreter's lock and checks no index.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dissector.kernel.arguments import SignatureMismatch, Types, to_native, to_python, type_of

LOAD_FROM = 20_000
"""Work (in steps of some ten nanoseconds when compiled) from which compiled code pays."""

COMPILE_FROM = 1_000_000
"""Work from which it pays to compile what is not on disk."""


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
        self._enough = LOAD_FROM
        self._variants: dict[Types, Callable[..., int | None]] = {}
        self._latest: Callable[..., int | None] | None = None

    def __call__(self, *arguments: Any, work: int) -> Any:
        """
        Run over the arguments.

        Args:
            arguments: Arrays and integers.
            work: About how many steps there are to do. The work of all calls counts together.

        Raises:
            TypeError: An argument is neither a number nor an array of numbers that lie in order.
        """
        latest = self._latest
        if latest is not None:
            try:
                return latest(*arguments)
            except SignatureMismatch:
                pass  # other types than last time, or something that is no plain array
        found = self._found(arguments, work)
        return self.uncompiled(*arguments) if found is None else found(*map(to_native, arguments))

    def ready(self, *arguments: Any, work: int) -> bool:
        """
        Tell whether a call with such arguments would run compiled, and count its work.

        For those who have something quicker than the kernel as Python.
        """
        # Whoever asks, asks with the same types each time.
        return self._latest is not None or self._found(arguments, work) is not None

    @property
    def compiled(self) -> Callable[..., int | None]:
        """The kernel compiled; once asked for, it always runs so."""
        self._work = COMPILE_FROM
        return partial(self, work=0)

    def uncompiled(self, *arguments: Any) -> Any:
        """Run over the arguments as Python."""
        return self.python(*map(to_python, arguments))

    def _found(self, arguments: tuple[Any, ...], work: int) -> Callable[..., int | None] | None:
        """Count work; return the compiled form for some arguments, if it has come to that."""
        self._work += work
        if self._work < self._enough:
            return None
        found = self._variant(tuple(type_of(to_native(each)) for each in arguments))
        if found is None:
            self._enough = COMPILE_FROM
        else:
            self._latest = found
        return found

    def _variant(self, types: Types) -> Callable[..., int | None] | None:
        """Return the compiled form for some types, if it is there or worth to be made."""
        found = self._variants.get(types)
        if found is None:
            from dissector.kernel.variants import variant  # this loads LLVM

            count = self.python.__code__.co_argcount
            if len(types) != count:
                raise TypeError(f"kernel {self.__name__} takes {count} arguments")
            found = variant(self.python, types, compiling=self._work >= COMPILE_FROM)
            if found is not None:
                self._variants[types] = found
        return found
