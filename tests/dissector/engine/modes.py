"""Tests of kernels run twice: as Python, and compiled."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from dissector.kernel import Kernel


def both(*modules: ModuleType) -> Any:
    """Return a fixture that runs all tests of a file with the kernels of some modules each way."""

    @pytest.fixture(autouse=True, scope="module", params=["python", "compiled"])
    def mode(request: pytest.FixtureRequest) -> Iterator[str]:
        with pytest.MonkeyPatch.context() as patch:
            for module in modules:
                for name, kernel in vars(module).copy().items():
                    if isinstance(kernel, Kernel):
                        new = Kernel(kernel.python)
                        if request.param == "compiled":
                            _ = new.compiled  # from here on it is
                        else:
                            # Also those run as Python that would rather not be called then.
                            patch.setattr(new, "ready", lambda *_, work: True)
                        patch.setattr(module, name, new)
            yield request.param

    return mode
