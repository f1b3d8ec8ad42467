"""Compiled kernels by the types of their arguments: from the cache, or compiled and cached."""

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
"""Version of the cached files and of the calling convention; to be increased with either."""

_lock = threading.RLock()

_loaded: dict[str, tuple[Callable[..., int], bool]] = {}
"""By name, the loaded code, and whether it returns a number."""

_type_tables: list[Any] = []
"""Tables that the code reads at each call; they live as long as the code."""

_notified: set[str] = set()


def variant(
    function: Callable[..., Any], types: Types, compiling: bool
) -> Callable[..., int | None] | None:
    """
    Return a kernel's compiled form for some types; with others it raises SignatureMismatch.

    Args:
        function: The kernel.
        types: Types of its arguments.
        compiling: Whether to compile it if it is not cached; otherwise return None.
    """
    with _lock:
        # Compiled code reads booleans as bytes.
        in_code = tuple(
            kind and kind._replace(dtype=kind.dtype.replace("b", "u")) for kind in types
        )
        name = f"{function.__module__}.{function.__qualname__}-{_cache_key(function, in_code)}"
        if name not in _loaded:
            stored = store.read(name)
            if stored is None and compiling:
                stored = _compiled(name, function, in_code)
            if stored is None:
                return None
            _loaded[name] = machine.load(stored[1:]), bool(stored[0])
        return _native_callable(*_loaded[name], types, function.__qualname__)


def _compiled(name: str, function: Callable[..., Any], types: Types) -> bytes:
    """Compile a kernel and cache it, unless another process has just done so."""
    from dissector.kernel.compiler import compile_kernel  # takes half a second

    _notify_once("compiling kernels, once on this machine")
    with store.compile_lock(name):
        stored = store.read(name)
        if stored is not None:
            return stored
        compiled = compile_kernel(function, types)
        content = bytes([compiled.returns]) + compiled.code
        if not store.save(name, content):
            _notify_once(f"compiled kernels can't be saved in {store.cache_folder()}")
        return content


def _cache_key(function: Callable[..., Any], types: Types) -> str:
    """Return a hash that differs for other sources, types, compilers and processors."""
    parts = [_FORMAT, _toolchain(), types, fingerprint(function)]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


@cache
def _toolchain() -> tuple[str, ...]:
    """Return the versions of Python, Numba and LLVM, and the processor."""
    spec = find_spec("numba")
    # Read Numba's version from its file: importing Numba takes half a second.
    numba = Path(spec.origin).with_name("_version.py").read_text() if spec and spec.origin else ""
    return (
        str(sys.implementation.cache_tag),
        str(object.__basicsize__),
        numba,
        machine.host_description(),
    )


def _native_callable(
    native: Callable[..., int], returns: bool, types: Types, name: str
) -> Callable[..., int | None]:
    """Return a callable that passes array addresses and integers to the native function."""
    arrays = [kind for kind in types if kind]
    numbers = [i for i, kind in enumerate(types) if kind is None]
    expected = (ctypes.c_int64 * (1 + len(arrays)))(
        id(np.ndarray), *(id(np.dtype(dtype)) for dtype, _ in arrays)
    )
    _type_tables.append(expected)
    first = ctypes.addressof(expected)
    pack_words = struct.Struct(f"={1 + len(types) + len(numbers)}q").pack
    result_type = ctypes.c_int64 * 1

    def call(*arguments: Any) -> int | None:
        result = result_type()
        try:
            call_words = pack_words(first, *map(id, arguments), *[arguments[i] for i in numbers])
        except (struct.error, TypeError, IndexError):
            raise SignatureMismatch from None
        status = native(result, call_words)
        if status:
            if status < 0:
                raise SignatureMismatch
            raise RuntimeError(f"kernel {name} was aborted")
        return result[0] if returns else None

    return call


def _notify_once(text: str) -> None:
    """Print a text to the terminal, once per process."""
    if text not in _notified and sys.stderr.isatty():
        print(f"kafkashark: {text}", file=sys.stderr)
    _notified.add(text)
