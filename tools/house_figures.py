"""
Prints the size of the house: `python -m tools.house_figures`.

Lines and files of the product and of its tests, required dependencies, circles of imports, and the
cases of the tests by what runs them. `pytest --folders` measures their time.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import redirect_stdout
from graphlib import CycleError, TopologicalSorter
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]

KINDS = ("broker", "spark", "long")
"""Marks of tests that `make test` leaves out, the first that a test has counts."""


class Size(NamedTuple):
    """Python files and their lines."""

    files: int
    lines: int

    def __str__(self) -> str:
        return f"{self.lines:,} lines in {self.files:,} files"


class CaseCounter:
    """A plugin of pytest that counts the collected tests by their marks."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Count, after `tests/conftest.py` has marked cases."""
        for item in items:
            marks = {mark.name for mark in item.iter_markers()}
            self.counts[next((kind for kind in KINDS if kind in marks), "fast")] += 1


def size_of(folders: Iterable[Path]) -> Size:
    """Return the size of all Python files below some folders."""
    texts = [path.read_bytes() for folder in folders for path in folder.rglob("*.py")]
    return Size(len(texts), sum(text.count(b"\n") for text in texts))


def circle_of_imports(modules: Iterable[Path], root: Path = ROOT) -> list[str]:
    """
    Return the names of modules that import each other in a circle; empty without one.

    Also imports for types, inside functions, and by name count.

    Args:
        modules: Their files, relative to the root.
        root: The folder of the packages.
    """
    files = {".".join(module.with_suffix("").parts): root / module for module in modules}
    graph = {name: imports_of(path, files.keys()) - {name} for name, path in files.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def imports_of(path: Path, known: Collection[str]) -> set[str]:
    """Return the known modules that a file imports, or that a text in it names."""
    return {name for name in _mentioned(ast.parse(path.read_bytes())) if name in known}


def _mentioned(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def count_cases(root: Path = ROOT) -> Counter[str]:
    """Return how many cases the tests have: of `make test` ("fast"), and of each other kind."""
    counter = CaseCounter()
    options = ["--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider", "--assert=plain"]
    with redirect_stdout(StringIO()):
        status = pytest.main([*options, str(root / "tests")], plugins=[counter])
    if status != pytest.ExitCode.OK:
        sys.exit("the tests can't be collected; run: pytest --collect-only")
    return counter.counts


def main(root: Path = ROOT) -> None:
    """Print all figures, one a line."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    packages = [root / name for name in project["tool"]["importlinter"]["root_packages"]]
    modules = [path.relative_to(root) for package in packages for path in package.rglob("*.py")]
    circle = circle_of_imports((path for path in modules if path.name != "__init__.py"), root)
    cases = count_cases(root)
    print(f"product: {size_of(packages)}")
    print(f"tests: {size_of([root / 'tests'])}")
    print(f"cases: {', '.join(f'{cases[kind]:,} {kind}' for kind in ('fast', *KINDS))}")
    print(f"required dependencies: {len(project['project']['dependencies'])}")
    print(f"circle of imports: {' -> '.join(circle) or 'none'}")


if __name__ == "__main__":
    main()
