"""The two ways a kernel runs, whichever the amount of work would choose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from dissector.kernel import Kernel

WAYS = {"python": 0, "compiled": 10**9}


@contextmanager
def running(way: str, *modules: ModuleType) -> Iterator[None]:
    """Let all kernels of some modules run as Python, or compiled, for a while."""
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            kernels = {
                name: each for name, each in vars(module).items() if isinstance(each, Kernel)
            }
            assert kernels
            for name, kernel in kernels.items():
                patch.setattr(module, name, _only(Kernel(kernel.python), WAYS[way]))
        yield


def _only(kernel: Kernel, enough: int) -> Any:
    def call(*arguments: Any, work: int) -> Any:
        return kernel(*arguments, work=enough)

    return call
