"""What a kernel consists of: its own code, the device functions it calls, the constants it uses."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

_device_functions: set[Callable[..., Any]] = set()


def device_function(function: _Function) -> _Function:
    """Mark a function that kernels may call; it is compiled into them."""
    _device_functions.add(function)
    return function


def is_device_function(value: Any) -> bool:
    """Return whether a value is a function marked with `device_function`."""
    return isinstance(value, FunctionType) and value in _device_functions


def referenced_globals(function: Callable[..., Any]) -> dict[str, Any]:
    """
    Return the globals that a kernel uses: device functions, integers, tuples of integers.

    Raises:
        TypeError: It uses something that compiled code could not follow.
    """
    if function.__code__.co_freevars:
        raise TypeError(f"kernel {function.__qualname__} uses variables of another function")
    found: dict[str, Any] = {}
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if value is None and hasattr(builtins, name):
            continue
        if isinstance(value, int) and not isinstance(value, bool):
            value = int(value)  # members of enumerations too
        elif not (isinstance(value, bool | FunctionType) or _is_integer_tuple(value)):
            raise TypeError(
                f"kernel {function.__qualname__} may use integers and device functions, not {name}"
            )
        elif isinstance(value, FunctionType) and not is_device_function(value):
            raise TypeError(
                f"kernel {function.__qualname__} calls {name}, which is no device function"
            )
        found[name] = value
    return found


def fingerprint(function: Callable[..., Any]) -> str:
    """Return all that decides what a kernel does: bytecode, constants, device functions."""
    return "\n".join(_fingerprint_lines(function, set()))


def _fingerprint_lines(
    function: Callable[..., Any], seen: set[Callable[..., Any]]
) -> Iterator[str]:
    seen.add(function)
    code = function.__code__
    constants = code.co_consts[function.__doc__ is not None :]
    yield repr((code.co_argcount, code.co_varnames, code.co_names, constants))
    yield repr((code.co_code, code.co_exceptiontable, function.__defaults__))
    for name, value in referenced_globals(function).items():
        if not isinstance(value, FunctionType):
            yield f"{name} = {value!r}"
        else:
            yield f"{name}: {value.__module__}.{value.__qualname__}"
            if value not in seen:
                yield from _fingerprint_lines(value, seen)


def _is_integer_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, int) for item in value)
