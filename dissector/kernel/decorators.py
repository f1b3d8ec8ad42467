"""Marks of the functions that are compiled; `tools.kernels` reads them from the source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


def device_function(function: _Function) -> _Function:
    """Mark a function that kernels call; it is compiled with them."""
    return function
