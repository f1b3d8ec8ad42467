"""Imports: no heavy libraries, and every module can be imported first."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import dissector
from dissector.protocol import records

SLOW = ("construct", "crc32c", "importlib.metadata", "numpy.ma", "polars")
HEAVY = ("polars", "pyarrow", "scapy", "pyspark", "pandas")
ROOT = Path(__file__).parents[2]

# Imports each module in a process with only `dissector` loaded, as Python does for submodules.
# Other libraries are loaded once for all.
ONE_BY_ONE = """
import importlib, os, sys
import construct, construct.expr, numpy, polars
import dissector
assert [name for name in sys.modules if name.startswith("dissector.")] == []
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
    """Return the heavy libraries loaded by an import in a new interpreter."""
    program = f"import {imports}, sys; print(*(m for m in {HEAVY!r} if m in sys.modules))"
    return _run("-c", program).split()


def test_the_package_loads_nothing_heavy() -> None:
    assert _loaded("dissector") == []


@pytest.mark.parametrize("module", ["protocol", "capture", "filter", "view", "engine", "public"])
def test_no_package_loads_heavy_libraries(module: str) -> None:
    assert _loaded(f"dissector.{module}") == []


def test_the_check_detects_loaded_libraries() -> None:
    assert _loaded("polars") == ["polars"]


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("part", range(20))
def test_every_module_can_be_imported_first(part: int) -> None:
    """No module depends on the earlier import of another."""
    modules = _modules()
    assert len(modules) > 150
    assert _run("-c", ONE_BY_ONE, *modules[part::20]) == ""
    assert "no_such_module" in _run("-c", ONE_BY_ONE, "dissector.no_such_module")


def test_public_names_are_loaded_on_access() -> None:
    program = "import sys; {}; print('numpy' in sys.modules)"
    assert _run("-c", program.format("import dissector")) == "False\n"
    assert _run("-c", program.format("from dissector import codec")) == "True\n"


def test_a_module_is_imported_without_the_public_names() -> None:
    program = "import sys; from dissector import errors; print('dissector.public' in sys.modules)"
    assert _run("-c", program) == "False\n"


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("name", "slow"), [("pairs", SLOW), ("records", ("numpy.ma", "polars"))])
def test_a_small_capture_is_read_without_heavy_libraries(name: str, slow: tuple[str, ...]) -> None:
    """Each takes tens of milliseconds, more than the actual work."""
    command = [name, "captures/kafka4-librdkafka-codecs.pcap", "-T", "ndjson", "-o", os.devnull]
    program = f"""
import sys
from dissector.cli import main
assert main({command!r}) == 0
print(*(m for m in {slow!r} if m in sys.modules))
"""
    assert _run("-c", program).split() == []
    assert _run("-c", program.replace("ndjson", "parquet")).split() == []
    assert _run("-c", program + "import polars; print('polars' in sys.modules)") == "\nTrue\n"


@pytest.mark.parametrize("name", records.__all__)
def test_lazy_names_of_records_resolve(name: str) -> None:
    assert getattr(records, name) is not None


@pytest.mark.parametrize("name", ["nothing", "import_module_", "read_batch"])
def test_records_have_no_other_public_names(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(records, name)
