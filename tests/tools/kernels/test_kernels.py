"""Language features of kernels, and agreement of built kernels with sources."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from tests.dissector.kernel import sample_kernels
from tools.kernels.extensions import PACKAGES
from tools.kernels.kernel_sources import Function, Module, module, modules_with_kernels
from tools.kernels.translate import Unit
from tools.kernels.unit import unit_hash, unit_text

HEAD = """
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8
from dissector.kernel.named_rows import NamedRow, Rows, Two

class Side(NamedRow):
    sent: int

class Wrong(NamedRow):
    sent: I64

class Other:
    sent: int

NAME = "text"
PAIR = (1, 2)

@device_function
def first(column: I64) -> int:
    return column[0]

@Kernel
"""


def translated(folder: Path, kernel: str) -> str:
    """Translate a module with one kernel."""
    path = folder / "made.py"
    path.write_text(HEAD + kernel)
    unit = Unit()
    (found,) = Module("made", path).kernels
    unit.specialise(found)
    return "".join(unit.written)


@pytest.mark.parametrize(
    ("kernel", "error"),
    [
        ("def f(a: int) -> int:\n    return a.bit_length()\n", KeyError),
        ("def f(a: int) -> int:\n    return first(column=a)\n", TypeError),
        ("def f(a: U8) -> int:\n    return first(a)\n", TypeError),
        ("def f(a: U8) -> int:\n    return a[0, 0]\n", TypeError),
        ("def f(a: int) -> int:\n    return a[0]\n", TypeError),
        ("def f(a: int) -> int:\n    return PAIR\n    a //= 2\n", TypeError),
        ("def f(a: int) -> int:\n    return NAME\n", KeyError),
        ("def f(a: int) -> int:\n    return first\n", TypeError),
        ("def f(a: int) -> int:\n    return Other.sent\n", KeyError),
        ("def f(a: list[int]) -> int:\n    return 0\n", KeyError),
        ("def f(a) -> int:\n    return 0\n", KeyError),
        ("def f(a: int) -> int:\n    return missing(a)\n", KeyError),
        ("def f(a: Side) -> int:\n    return a.received\n", TypeError),
        ("def f(a: Rows[Side]) -> int:\n    return a[0, 1].sent\n", TypeError),
        ("def f(a: Rows[Side], b: Side) -> int:\n    a[0] = b\n    return 0\n", TypeError),
        ("def f(a: Side) -> int:\n    return first(a)\n", TypeError),
        ("def f(a: Wrong) -> int:\n    return 0\n", KeyError),
        ("def f(a: Other) -> int:\n    return 0\n", KeyError),
        ("def f(a: Rows[int]) -> int:\n    return 0\n", KeyError),
    ],
)
def test_uncompilable_kernels_are_errors(
    kernel: str, error: type[Exception], tmp_path: Path
) -> None:
    with pytest.raises(error):
        translated(tmp_path, kernel)


def test_an_error_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"made\.py:25: a is no array"):
        translated(tmp_path, "def f(a: int) -> int:\n    b = a\n    return a[b]\n")


def test_constants_are_inlined(tmp_path: Path) -> None:
    text = translated(tmp_path, "def f(a: int) -> bool:\n    return a in PAIR\n")
    assert "v_a in (1LL, 2LL)" in text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("RED", 7), ("Colour.RED", 7), ("SECOND", 1), ("SOME", (2, 3, 5)), ("SET", (11, 13))],
        ("LEAST", -(2**63)),
    ],
)
def test_constants_are_found_without_import(name: str, value: object) -> None:
    found = module(sample_kernels.__name__)
    assert found is not None
    assert found.lookup(name) == value


def test_functions_of_other_modules_are_found() -> None:
    found = module(sample_kernels.__name__)
    assert found is not None
    function = found.lookup("update_crc")
    assert isinstance(function, Function)
    assert function.place == "dissector.kernel.crc32c.update_crc"
    assert module("no.such.module") is None


def test_arrays_written_by_a_function_are_found() -> None:
    found = module(sample_kernels.__name__)
    assert found is not None
    unit = Unit()
    written = {each.tree.name: unit.specialise(each).written for each in found.kernels}
    assert written["walk"] == {"table", "cube", "rows"}
    assert written["move"] == {"target"}
    assert written["sums"] == set()
    assert written["add_rows"] == {"sums.table"}
    assert written["add_groups"] == {"outer.second.numbers", "outer.total"}
    assert written["send_all"] == {"tables.links", "tables.others", "tables.totals"}
    assert written["sum_links"] == set()
    assert written["count_row"] == {"totals"}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("package", [*PACKAGES, "tests"])
def test_built_kernels_are_current(package: str) -> None:
    assert modules_with_kernels(package)
    try:
        built = import_module(f"{package}._kernels")
    except ModuleNotFoundError:
        pytest.skip("kernels are not compiled here")
    text = unit_text(package)
    assert text == unit_text(package)
    assert unit_hash(text) == built.SOURCE, "run `make kernels`"
