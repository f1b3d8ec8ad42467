"""Tests of kernels in both modes: Python and compiled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from dissector.kernel import Kernel

PYTHON, COMPILED = MODES = ("python", "compiled")


@contextmanager
def running(mode: str, *places: Kernel | ModuleType) -> Iterator[None]:
    """Run kernels, or all kernels of modules, in one mode; skip if they are not compiled."""
    kernels = [kernel for place in places for kernel in _kernels(place)]
    assert kernels
    with pytest.MonkeyPatch.context() as patch:
        for each in kernels:
            if mode == PYTHON:
                # Also replaces faster alternatives of callers to kernels in Python.
                patch.setitem(vars(each), "compiled", each.uncompiled)
                continue
            patch.delitem(vars(each), "compiled", raising=False)
            if not each.is_compiled:
                pytest.skip("kernels are not compiled here")
        yield


def both(*places: Kernel | ModuleType) -> Any:
    """Return a fixture that runs all tests of a file in each mode."""

    @pytest.fixture(autouse=True, scope="module", params=MODES)
    def mode(request: pytest.FixtureRequest) -> Iterator[str]:
        with running(request.param, *places):
            yield request.param

    return mode


def _kernels(place: Kernel | ModuleType) -> list[Kernel]:
    if isinstance(place, Kernel):
        return [place]
    return [each for each in vars(place).values() if isinstance(each, Kernel)]
