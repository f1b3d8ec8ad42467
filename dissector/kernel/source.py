"""What a kernel is made of: its own code, the parts that it calls, the numbers that it names."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

_parts: set[Callable[..., Any]] = set()


def device_function(function: _Function) -> _Function:
    """Mark a function that kernels call; it is compiled into them."""
    _parts.add(function)
    return function


def is_device_function(value: Any) -> bool:
    """Tell whether a value is a function that is marked so."""
    return isinstance(value, FunctionType) and value in _parts


def referenced_globals(function: Callable[..., Any]) -> dict[str, Any]:
    """
    Return what a kernel or part takes from its module: parts, whole numbers and tuples of them.

    Raises:
        TypeError: It takes something else, which compiled code could not follow.
    """
    if function.__code__.co_freevars:
        raise TypeError(f"kernel {function.__qualname__} uses variables of another function")
    taken: dict[str, Any] = {}
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if value is None and hasattr(builtins, name):
            continue
        if isinstance(value, int) and not isinstance(value, bool):
            value = int(value)  # members of enumerations too
        elif not (isinstance(value, bool | FunctionType) or _is_numbers(value)):
            raise TypeError(
                f"kernel {function.__qualname__} may use whole numbers and parts, not {name}"
            )
        elif isinstance(value, FunctionType) and not is_device_function(value):
            raise TypeError(f"kernel {function.__qualname__} calls {name}, which is no part")
        taken[name] = value
    return taken


def fingerprint(function: Callable[..., Any]) -> str:
    """Tell all that decides what a kernel does; a change of it makes another kernel."""
    return "\n".join(_described(function, set()))


def _described(function: Callable[..., Any], told: set[Callable[..., Any]]) -> Iterator[str]:
    told.add(function)
    code = function.__code__
    constants = code.co_consts[function.__doc__ is not None :]
    yield repr((code.co_argcount, code.co_varnames, code.co_names, constants))
    yield repr((code.co_code, code.co_exceptiontable, function.__defaults__))
    for name, value in referenced_globals(function).items():
        if not isinstance(value, FunctionType):
            yield f"{name} = {value!r}"
        else:
            yield f"{name}: {value.__module__}.{value.__qualname__}"
            if value not in told:
                yield from _described(value, told)


def _is_numbers(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, int) for item in value)
