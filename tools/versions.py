"""
Runs part of the tests with the lowest versions in pyproject.toml, and on a newer Python.

Options, such as `--share 3/7`, are pytest's.
Environments are in `.venvs/`, and are recreated when pyproject.toml changes. Missing Pythons are
skipped with a message, not downloaded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

SMOKE = (
    "tests/dissector/kernel",
    "tests/dissector/cli",
    "tests/dissector/engine/tables/test_arrow.py",
    "tests/dissector/engine/tables/test_polars_tables.py",
    "tests/dissector/engine/tape/test_tape.py",
    "tests/dissector/protocol/records",
    "tests/dissector/protocol/test_apis.py",
    "tests/dissector/view/tables/test_bulk_rows.py",
    "tests/dissector/tls",
    "tests/dissector/query/test_fed_scapy.py",
    "tests/browse/app/test_browse_app.py",
    "tests/browse/panels",
    "tests/conform/rules",
    "tests/conform/test_cli.py",
    "tests/cluster/client/test_broker_connection.py",
    "tests/cluster/mock/test_librdkafka_mock.py",
    "tests/report/page",
    "tests/timeline/output",
)
"""Tests of each library: kernels, columns, codecs, ciphers, commands, the screen, pages, traces."""

FAST = "not (broker or long or spark)"


@dataclass(frozen=True)
class Environment:
    """A Python, with a selection of library versions."""

    name: str
    python: str
    resolution: str

    @property
    def folder(self) -> Path:
        return ROOT / ".venvs" / self.name

    @property
    def interpreter(self) -> Path:
        return self.folder / "bin" / "python"

    def make(self, uv: str) -> bool:
        """Create the environment if outdated; return whether its Python is installed."""
        ready = self.folder / ".ready"
        project = ROOT / "pyproject.toml"
        if ready.exists() and ready.stat().st_mtime > project.stat().st_mtime:
            return True
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.parent.mkdir(exist_ok=True)
        python = installed(self.python)
        if python is None:
            return False
        subprocess.run([uv, "venv", "--quiet", "--python", python, str(self.folder)], check=True)
        install = [uv, "pip", "install", "--quiet", "--python", str(self.interpreter)]
        extras = ["--resolution", self.resolution, "-e", ".[worker,dev]"]
        # The checkout's kernels fit its own Python, and other tests may be using them.
        own = self.python == f"{sys.version_info.major}.{sys.version_info.minor}"
        variables = {**os.environ, "CC": "false"} if own else None
        subprocess.run(install + extras, cwd=ROOT, check=True, env=variables)
        ready.touch()
        return True

    def test(self, options: Sequence[str]) -> bool:
        """Run the tests, with further options of pytest; return whether they pass."""
        # Warnings are errors with the newest versions only: others have other deprecations.
        words = ["-q", "-n", "auto", "-m", FAST, "-W", "default", "-p", "no:cacheprovider"]
        command = [str(self.interpreter), "-m", "pytest", *words, *options, *SMOKE]
        return subprocess.run(command, cwd=ROOT).returncode == 0


def installed(version: str) -> str | None:
    """Return the interpreter of a version, from the path or from pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    found = [shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python")]
    for each in filter(None, found):
        # pyenv's shims exist even for versions that are not selected.
        if subprocess.run([each, "-c", ""], capture_output=True).returncode == 0:
            return str(each)
    return None


ENVIRONMENTS = (
    Environment("lowest", "3.11", "lowest-direct"),
    Environment("3.13", "3.13", "highest"),
)


def main() -> int:
    """Run the tests in each environment; return 1 if one fails."""
    uv = str(Path(sys.executable).with_name("uv"))
    failed = []
    for each in ENVIRONMENTS:
        if not each.make(uv):
            print(f"Python {each.python} is not installed here: its tests are skipped")
            continue
        print(f"{each.name}: Python {each.python}, {each.resolution} versions", flush=True)
        if not each.test(sys.argv[1:]):
            failed.append(each.name)
    print(f"failed: {', '.join(failed)}" if failed else "all environments pass")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
