"""
`python -m tools.wheel [--test]` builds `dist/kafkashark-*.whl`, with compiled kernels.

With `--test` the wheel is installed in a separate environment, without tests or tools, and runs
commands on the demo capture, with a read-only home and no compiler on the path. A second wheel is
built without a C compiler; its output must be the same, and its tag that of pure Python. Commands
that require an extra must report that in one line, and work with it; the demo runs with each.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tools.kernels.extensions import PACKAGES

ROOT = Path(__file__).parents[1]

FOLDER = ROOT / ".venvs" / "wheel"

CAPTURE = str(ROOT / "captures" / "demo.pcap")

COMMANDS = (
    ("pairs", "-T", "ndjson", "--bodies"),
    ("records", "-T", "ndjson"),
    ("report",),
    ("secrets", "-T", "ndjson"),
    ("dissect", "-T", "ndjson"),
    ("replay", "--dry-run"),
)

TABLES = "from kafkashark import open_capture; open_capture('{capture}').exchanges()"

WITHOUT_EXTRA = (
    (("kafkashark", "replay", "{capture}", "--to", "mock"), "kafkashark[mock]"),
    (("kafkashark", "pipeline", "{capture}", "--out", "out"), "kafkashark[spark]"),
    (("kafkashark", "browse", "{capture}"), "kafkashark[browse]"),
    (("kafkashark", "mcp", "."), "kafkashark[mcp]"),
    (("python", "-I", "-c", "import kafkashark.scapy"), "kafkashark[scapy]"),
    (("python", "-I", "-c", TABLES), "kafkashark[tables]"),
)
"""Commands that require an extra, and its name."""

EXTRAS = ("browse", "mcp", "otlp", "scapy", "spark", "tables", "worker")
"""Extras beside `mock`; the demo needs none of them."""

PURE = "-py3-none-any.whl"
"""The end of the name of a wheel without compiled kernels."""

COMPILED = f"""
from importlib.util import find_spec
print(all(find_spec(package + "._kernels") for package in {PACKAGES}))
"""

NO_COMPILER = {"CC": "false"}


class Tried(NamedTuple):
    """An installed wheel: its kernels, outputs of the commands, and number of warnings of each."""

    is_compiled: bool
    outputs: list[bytes]
    warnings: set[int]


def build(folder: Path, environment: dict[str, str] | None = None) -> Path:
    """Build a source distribution, and a wheel from it; return the wheel's path."""
    words = ["build", "--quiet", "--out-dir", str(folder), str(ROOT)]
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([_uv(), *words], check=True, env={**os.environ, **(environment or {})})
    (wheel,) = folder.glob("*.whl")
    return wheel


def tried(wheel: Path, name: str) -> Tried:
    """Install a wheel without extras, and run the commands."""
    place = _environment(name)
    _install(place, str(wheel))
    is_compiled = _run(place, "python", "-I", "-c", COMPILED).stdout.strip() == b"True"
    runs = [_run(place, "kafkashark", room, CAPTURE, *options) for room, *options in COMMANDS]
    assert not list(_home().iterdir()), "a command has written to the home folder"
    warnings = {run.stderr.count(b"the kernels are not compiled") for run in runs}
    return Tried(is_compiled, [run.stdout for run in runs], warnings)


def faults_of_extras(wheel: Path, name: str) -> list[str]:
    """Return the faults of commands that require an extra, without and with it."""
    place, faults = FOLDER / name, []
    for words, extra in WITHOUT_EXTRA:
        ran = _run(place, *(word.format(capture=CAPTURE) for word in words), check=False)
        output = ran.stderr.decode().splitlines() or [""]
        if not ran.returncode or extra not in output[-1]:
            faults.append(f"{' '.join(words)}: {extra} is not named: {output[-1]}")
    if b"kafkashark[mock]" not in _run(place, "kafkashark", "demo").stdout:
        faults.append("without an extra the demo does not name it")
    _install(place, f"{wheel}[mock]")
    if b"$ kafkashark replay" not in _run(place, "kafkashark", "demo").stdout:
        faults.append("with the mock the demo has no replay")
    run = [_uv(), "tool", "run", "--quiet", "--from", str(wheel), "kafkashark", "demo"]
    if b"Response times" not in subprocess.run(run, capture_output=True, check=False).stdout:
        faults.append("the demo does not run by uvx")
    for extra in EXTRAS:
        place = _environment("extra")
        _install(place, f"{wheel}[{extra}]")
        ran = _run(place, "kafkashark", "demo", check=False)
        if ran.returncode or ran.stderr:
            faults.append(f"with [{extra}] the demo fails: {ran.stderr.decode()[-200:]}")
    return faults


def _environment(name: str) -> Path:
    """Create an empty environment; return its folder."""
    place = FOLDER / name
    subprocess.run([_uv(), "venv", "--quiet", "--clear", str(place)], check=True)
    return place


def _install(place: Path, what: str) -> None:
    python = place / "bin" / "python"
    subprocess.run([_uv(), "pip", "install", "--quiet", "--python", str(python), what], check=True)


def _run(
    place: Path, command: str, *words: str, check: bool = True
) -> subprocess.CompletedProcess[bytes]:
    """Run a command of an environment with an otherwise empty path."""
    programs, home = place / "bin", _home()
    bare = {"PATH": str(programs), "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [programs / command, *words], env=bare, cwd=home, check=check, capture_output=True
    )


def _home() -> Path:
    home = FOLDER / "home"
    home.mkdir(exist_ok=True)
    home.chmod(0o500)
    return home


def _uv() -> str:
    return str(Path(sys.executable).with_name("uv"))


def main(arguments: list[str]) -> int:
    """Build, and test on request; return 1 if the wheel has faults."""
    wheel = build(ROOT / "dist")
    print(wheel.relative_to(ROOT))
    if "--test" not in arguments:
        return 0
    pure = build(FOLDER / "plain-dist", NO_COMPILER)
    compiled = tried(wheel, "compiled")
    plain = tried(pure, "plain")
    faults = faults_of_extras(wheel, "compiled")
    if wheel.name.endswith(PURE) or not pure.name.endswith(PURE):
        faults.append(f"wrong tags: {wheel.name} is compiled, {pure.name} is not")
    if not compiled.is_compiled:
        faults.append("the wheel has no compiled kernels")
    if plain.is_compiled:
        faults.append("the wheel built without a C compiler has compiled kernels")
    if compiled.outputs != plain.outputs:
        faults.append("compiled and uncompiled kernels give other output")
    if compiled.warnings != {0} or not plain.warnings <= {0, 1}:
        faults.append("a command reports that the kernels are not compiled when they are, or twice")
    print("\n".join(faults) or "the wheel passes, with and without compiled kernels")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
