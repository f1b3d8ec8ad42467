"""The figures are those of the files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.house_figures import circle_of_imports, size_of

PROJECT = """
[project]
dependencies = ["one", "two>=2"]
[tool.importlinter]
root_packages = ["house"]
[tool.pytest.ini_options]
markers = ["broker", "long", "spark"]
"""

TESTS = """
import pytest
def test_a(): pass
@pytest.mark.parametrize("at", range(3))
@pytest.mark.long
def test_b(at): pass
@pytest.mark.broker
@pytest.mark.long
def test_c(): pass
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A package of three modules, and five cases of tests."""
    files = {
        "pyproject.toml": PROJECT,
        "house/__init__.py": "",
        "house/roof.py": "from house import walls\nimport sys\n",
        "house/walls.py": "def ground():\n    return 'house.ground'\n",
        "house/ground.py": "",
        "tests/test_all.py": TESTS,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_circle_is_named(project: Path) -> None:
    modules = [Path("house/roof.py"), Path("house/walls.py"), Path("house/ground.py")]
    assert circle_of_imports(modules, project) == []
    (project / "house/ground.py").write_text("if TYPE_CHECKING:\n    import house.roof\n")
    assert set(circle_of_imports(modules, project)) == {"house.roof", "house.walls", "house.ground"}


@pytest.mark.long
def test_all_figures(project: Path) -> None:
    assert size_of([project / "house"]) == (4, 4)
    code = "import sys; from pathlib import Path; from tools.house_figures import main; "
    words = [sys.executable, "-c", code + "main(Path(sys.argv[1]))", str(project)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "product: 4 lines in 4 files",
        f"tests: {TESTS.count(chr(10))} lines in 1 files",
        "cases: 1 fast, 1 broker, 0 spark, 3 long",
        "required dependencies: 2",
        "circle of imports: none",
    ]
