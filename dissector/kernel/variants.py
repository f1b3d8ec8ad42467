"""Compiled kernels for the types of their arguments: from disk, or compiled and kept there."""

from __future__ import annotations

import ctypes
import hashlib
import struct
import sys
import threading
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dissector.kernel import machine, store
from dissector.kernel.arguments import SignatureMismatch, Types
from dissector.kernel.source import fingerprint

_FORMAT = 2
"""To be counted up when what is kept, or how it is called, changes."""

_lock = threading.RLock()

_loaded: dict[str, tuple[Callable[..., int], bool]] = {}
"""By name, the code in this process, and whether it returns a number."""

_expected: list[Any] = []
"""What the code reads at each call; it stays as the code does."""

_notified: set[str] = set()


def variant(
    function: Callable[..., Any], types: Types, compiling: bool
) -> Callable[..., int | None] | None:
    """
    Return a kernel's compiled form for some types; calling it with others raises Unfit.

    Args:
        function: The kernel.
        types: Of its arguments.
        compiling: Whether to compile it if it is not on disk; otherwise there is none.
    """
    with _lock:
        # The code takes truth values for bytes.
        in_code = tuple(
            kind and kind._replace(dtype=kind.dtype.replace("b", "u")) for kind in types
        )
        name = f"{function.__module__}.{function.__qualname__}-{_key(function, in_code)}"
        if name not in _loaded:
            kept = store.read(name)
            if kept is None and compiling:
                kept = _compiled(name, function, in_code)
            if kept is None:
                return None
            _loaded[name] = machine.load(kept[1:]), bool(kept[0])
        return _native_callable(*_loaded[name], types, function.__qualname__)


def _compiled(name: str, function: Callable[..., Any], types: Types) -> bytes:
    """Compile a kernel and keep it, unless another process has done so meanwhile."""
    from dissector.kernel.compiler import compile_kernel  # this takes half a second

    _tell("compiling, once on this machine")
    with store.compile_lock(name):
        kept = store.read(name)
        if kept is not None:
            return kept
        compiled = compile_kernel(function, types)
        content = bytes([compiled.returns]) + compiled.code
        if not store.save(name, content):
            _tell(f"what is compiled can't be kept in {store.cache_folder()}")
        return content


def _key(function: Callable[..., Any], types: Types) -> str:
    """Tell compiled code from that of other sources, types, compilers and processors."""
    made_of = [_FORMAT, _toolchain(), types, fingerprint(function)]
    return hashlib.sha256(repr(made_of).encode()).hexdigest()[:32]


@cache
def _toolchain() -> tuple[str, ...]:
    """Return what compiles, and for what."""
    place = find_spec("numba")
    # Numba says its version there; to ask for it would import Numba.
    numba = (
        Path(place.origin).with_name("_version.py").read_text() if place and place.origin else ""
    )
    return (
        str(sys.implementation.cache_tag),
        str(object.__basicsize__),
        numba,
        machine.host_description(),
    )


def _native_callable(
    native: Callable[..., int], returns: bool, types: Types, name: str
) -> Callable[..., int | None]:
    """Return what calls the code: it hands over the addresses of the arguments, and the numbers."""
    arrays = [kind for kind in types if kind]
    numbers = [i for i, kind in enumerate(types) if kind is None]
    expected = (ctypes.c_int64 * (1 + len(arrays)))(
        id(np.ndarray), *(id(np.dtype(dtype)) for dtype, _ in arrays)
    )
    _expected.append(expected)
    first = ctypes.addressof(expected)
    words = struct.Struct(f"={1 + len(types) + len(numbers)}q").pack
    place = ctypes.c_int64 * 1

    def call(*arguments: Any) -> int | None:
        result = place()
        try:
            given = words(first, *map(id, arguments), *[arguments[i] for i in numbers])
        except (struct.error, TypeError, IndexError):
            raise SignatureMismatch from None
        status = native(result, given)
        if status:
            if status < 0:
                raise SignatureMismatch
            raise RuntimeError(f"kernel {name} was broken off")
        return result[0] if returns else None

    return call


def _tell(text: str) -> None:
    """Say something once, to a person."""
    if text not in _notified and sys.stderr.isatty():
        print(f"kafkashark: {text}", file=sys.stderr)
    _notified.add(text)
