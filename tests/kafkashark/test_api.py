"""`import kafkashark`: names, types, and loaded libraries."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

import conform
import dissector
import kafkashark
import replay

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
HEAVY = "asyncio confluent_kafka construct numpy pandas polars pyarrow pyspark"


def _imported(code: str) -> set[str]:
    """Return the names that code imports from kafkashark."""
    return {
        name.name
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and node.module == "kafkashark"
        for name in node.names
    }


def _printed(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def test_documented_names_are_the_public_names() -> None:
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    names = page.split("## Names\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in names.splitlines() if line.startswith("| `")]
    documented = sorted(name for row in rows for name in re.findall(r"`(\w+)`", row))
    assert documented == kafkashark.__all__ == dir(kafkashark)


def test_the_names_have_the_types_of_the_table() -> None:
    """Type checkers and programs import the same objects."""
    tree = ast.parse(Path(str(kafkashark.__file__)).read_text(encoding="utf-8"))
    typed = {
        name.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module not in ("__future__", "typing")
        for name in node.names
        if name.name in kafkashark.__all__
    }
    assert sorted(typed) == kafkashark.__all__
    for name, module in typed.items():
        given = getattr(kafkashark, name)
        assert given is getattr(sys.modules[str(module)], name)
        assert given.__doc__ or name == "Kind", f"{name} has no docstring"


def test_no_other_name_is_public() -> None:
    with pytest.raises(AttributeError, match="'kafkashark' has no attribute 'MAX_FRAME_BYTES'"):
        kafkashark.MAX_FRAME_BYTES  # noqa: B018


@pytest.mark.parametrize(("name", "room"), [("conform", conform), ("replay", replay)])
def test_functions_and_packages_of_the_same_name_do_not_clash(name: str, room: ModuleType) -> None:
    __import__(f"{name}.cli")
    assert callable(getattr(kafkashark, name))
    assert sys.modules[name] is room
    assert isinstance(room, ModuleType)


@pytest.mark.parametrize("room", [dissector, replay, conform])
def test_examples_of_the_rooms_import_kafkashark(room: ModuleType) -> None:
    lines = [line.strip() for line in (room.__doc__ or "").splitlines()]
    assert [line for line in lines if line.startswith("from kafkashark import ")]
    assert not [line for line in lines if line.startswith(f"from {room.__name__} import ")]


def test_the_import_loads_no_library() -> None:
    code = f"import sys, kafkashark; dir(kafkashark); print(*{HEAVY.split()} & sys.modules.keys())"
    code = code.replace("print(*", "print(*set(").replace(" & ", ") & ")
    assert _printed(code).split() == []
    assert _printed(code.replace("dir(", "kafkashark.Plan, dir(")).split() != []


def test_an_error_class_loads_no_library() -> None:
    code = "import sys; from kafkashark import CaptureError, Problem; print('numpy' in sys.modules)"
    assert _printed(code) == "False\n"


def test_the_module_is_the_command() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "kafkashark", "schema", "Heartbeat", "0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.startswith("Heartbeat request v0")


def test_docs_import_public_names() -> None:
    pages = [README, *(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))]
    lines = [line for page in pages for line in page.splitlines()]
    found = [line for line in lines if line.startswith("from kafkashark import ")]
    imported = _imported("\n".join(found))
    assert len(imported) >= 7
    assert imported <= {*kafkashark.__all__}
    assert not [line for line in lines if line.startswith(("from dissector ", "from replay "))]


def test_the_version_is_that_of_the_package() -> None:
    assert kafkashark.__version__ == version("kafkashark")
