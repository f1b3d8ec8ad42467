"""Foreign modules with names of our packages are reported in one line, when needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

EACH = """
import json, sys
import kafkashark
errors = {}
for name in ("UsageError", "codec", "Plan", "replay", "conform", "register"):
    try:
        getattr(kafkashark, name)
    except ImportError as error:
        errors[name] = [type(error).__name__, str(error)]
print(json.dumps(errors))
"""

HIDDEN = {
    "pipeline": {"register"},
    "conform": {"conform"},
    "cluster": {"Plan", "replay", "conform"},
    "replay": {"Plan", "replay"},
    "dissector": {"UsageError", "codec", "Plan", "replay", "conform", "register"},
}
"""Which names can't be given where a foreign module hides a package."""


def _python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.thinned(3)
@pytest.mark.parametrize("package", HIDDEN)
def test_only_users_of_the_package_raise(package: str, tmp_path: Path) -> None:
    file = tmp_path / f"{package}.py"
    file.write_text("raise SystemExit('a script of the user ran')")
    run = _python(tmp_path, "-c", EACH)
    assert run.returncode == 0, run.stderr
    errors = json.loads(run.stdout)
    assert errors.keys() == HIDDEN[package]
    for kind, text in errors.values():
        assert kind == ("ImportError" if package == "dissector" else "ForeignModule")
        assert text.startswith(f"{file} hides kafkashark's package {package!r}; ")
        assert "\n" not in text


@pytest.mark.long
def test_a_folder_can_hide_a_package(tmp_path: Path) -> None:
    folder = tmp_path / "pipeline"
    folder.mkdir()
    (folder / "__init__.py").write_text("def register(spark): ...")
    run = _python(tmp_path, "-c", f"import pipeline\n{EACH}")
    (error,) = json.loads(run.stdout).items()
    assert error[0] == "register"
    assert error[1][1].startswith(f"{folder} hides kafkashark's package 'pipeline'; ")


def test_a_foreign_module_is_a_dissector_error_and_an_import_error(tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").touch()
    code = """
from kafkashark import DissectorError
try:
    from kafkashark import register
except DissectorError as error:
    assert isinstance(error, ImportError)
    print(error)
"""
    assert "pipeline.py hides" in _python(tmp_path, "-c", code).stdout


def test_the_command_reports_a_foreign_dissector(tmp_path: Path) -> None:
    (tmp_path / "dissector.py").touch()
    run = _python(tmp_path, "-m", "kafkashark", "--version")
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.splitlines()
    assert line.startswith(f"kafkashark: {tmp_path / 'dissector.py'} hides kafkashark's package")


def test_only_the_command_that_needs_the_package_fails(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.py"
    file.write_text("print('a script of the user ran')")
    shown = _python(tmp_path, "-m", "kafkashark", "--help")
    assert shown.returncode == 0
    assert "a script of the user ran" not in shown.stdout
    run = _python(tmp_path, "-m", "kafkashark", "pipeline", "a.pcap", "--out", "tables")
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.splitlines()
    assert line.startswith("kafkashark: pipeline can't be loaded: ")
    assert str(file) in line


def test_without_spark_only_the_call_fails(tmp_path: Path) -> None:
    (tmp_path / "pyspark.py").write_text("raise ModuleNotFoundError(\"No module named 'pyspark'\")")
    code = """
from kafkashark import UsageError, register
try:
    register(None)
except UsageError as error:
    print(error)
"""
    run = _python(tmp_path, "-c", code)
    said = "the data source kafka-capture needs an extra: pip install 'kafkashark[spark]'"
    assert run.stdout.startswith(said), run.stderr
