"""What importing costs: nothing heavy, and every module on its own."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import dissector

HEAVY = ("numba", "polars", "pyarrow", "scapy", "pyspark", "pandas")
ROOT = Path(__file__).parents[2]

# Imports each module in a process that has loaded `dissector` and nothing else of ours, as Python
# itself does before it looks for a module inside.
ONE_BY_ONE = """
import importlib, os, sys
import dissector
for name in sys.argv[1:]:
    child = os.fork()
    if not child:
        try:
            importlib.import_module(name)
        except BaseException as error:
            print(name, repr(error), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def _modules() -> list[str]:
    return ["dissector"] + [
        module.name
        for module in pkgutil.walk_packages(dissector.__path__, "dissector.")
        if not module.name.endswith("__main__")
    ]


def _run(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def _loaded(imports: str) -> list[str]:
    """Return the heavy libraries that an import loads, in a new interpreter."""
    program = f"import {imports}, sys; print(*(m for m in {HEAVY!r} if m in sys.modules))"
    return _run("-c", program).split()


def test_the_package_loads_nothing_heavy() -> None:
    assert _loaded("dissector") == []


@pytest.mark.parametrize("module", ["protocol", "capture", "filter", "view", "engine", "public"])
def test_no_floor_of_the_house_loads_anything_heavy(module: str) -> None:
    assert _loaded(f"dissector.{module}") == []


def test_the_check_sees_what_is_loaded() -> None:
    assert _loaded("polars") == ["polars"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_every_module_can_be_imported_first() -> None:
    """No module depends on another having been imported before it."""
    modules = _modules()
    assert len(modules) > 150
    assert _run("-c", ONE_BY_ONE, *modules) == ""
    assert "no_such_module" in _run("-c", ONE_BY_ONE, "dissector.no_such_module")
