"""
Runs tests on a module with a fault, in a forked process: the files stay as they are.

Libraries are imported once, before the fork, the project after it. Programs that tests start read
the files, and do not have the fault.
"""

from __future__ import annotations

import ast
import importlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any

LIBRARIES = ("construct", "cryptography", "hypothesis", "numpy", "polars", "pytest")


class FaultyModule(MetaPathFinder):
    """Loads one module from a changed tree."""

    def __init__(self, file: Path, tree: ast.Module) -> None:
        self.name = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
        self.file, self.tree = file, tree

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Return the spec of this module; None for others."""
        if fullname != self.name:
            return None
        loader = _TreeLoader(fullname, str(self.file.resolve()))
        loader.tree = self.tree
        return spec_from_file_location(fullname, self.file.resolve(), loader=loader)


class _TreeLoader(SourceFileLoader):
    tree: ast.Module

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.tree, self.path, "exec")


def import_libraries() -> None:
    """Import what all processes need."""
    for name in LIBRARIES:
        importlib.import_module(name)


def is_killed(tests: Sequence[str], module: FaultyModule | None, seconds: float) -> bool:
    """
    Return whether tests fail.

    Args:
        tests: Arguments of pytest.
        module: The module with a fault; None for the files as they are.
        seconds: A fault that takes longer has made a loop endless.
    """
    child = os.fork()
    if child == 0:
        _run_tests(tests, module)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status != 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _run_tests(tests: Sequence[str], module: FaultyModule | None) -> None:
    """Run the tests, and end this process with their status."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    if module is not None:
        sys.meta_path.insert(0, module)
    import pytest

    status = 1
    try:
        # What rewrites assertions would load the module itself.
        status = int(pytest.main(["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", *tests]))
    finally:
        os._exit(status)
