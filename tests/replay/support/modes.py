"""Kernels as Python and compiled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from dissector.kernel import Kernel

MODES = ("as Python", "compiled")


@contextmanager
def run_as(module: ModuleType, name: str, mode: str) -> Iterator[None]:
    """Have a kernel of a module run so."""
    kernel = getattr(module, name)
    assert isinstance(kernel, Kernel)
    function = kernel.compiled if mode == "compiled" else kernel.uncompiled

    def called(*arguments: Any, work: int) -> Any:
        return function(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, called)
        yield
