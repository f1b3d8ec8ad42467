"""
`python -m tools.wheel [--test]` builds `dist/kafkashark-*.whl`, with compiled kernels.

With `--test` the wheel is installed in an environment of its own, without tests or tools, and runs
commands on the demo capture: with a home that can't be written to, and no compiler on the path. A
second wheel is built as where there is no C compiler; its output must be the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

FOLDER = ROOT / ".venvs" / "wheel"

COMMANDS = (
    ("pairs", "-T", "ndjson", "--bodies"),
    ("records", "-T", "ndjson"),
    ("dissect", "-T", "ndjson"),
    ("replay", "--dry-run"),
)

COMPILED = """
from importlib.util import find_spec
packages = "dissector.capture", "dissector.engine", "dissector.view", "replay", "pipeline"
print(all(find_spec(package + "._kernels") for package in packages))
"""

NO_COMPILER = {"CC": "false"}


def build(folder: Path, environment: dict[str, str] | None = None) -> Path:
    """Build a source distribution, and from that alone a wheel; return the wheel's path."""
    words = ["build", "--quiet", "--out-dir", str(folder), str(ROOT)]
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([_uv(), *words], check=True, env={**os.environ, **(environment or {})})
    (wheel,) = folder.glob("*.whl")
    return wheel


def outputs(wheel: Path, name: str) -> tuple[bool, list[bytes]]:
    """Install a wheel alone; return whether its kernels are compiled, and the commands' output."""
    folder = FOLDER / name
    python = folder / "bin" / "python"
    subprocess.run([_uv(), "venv", "--quiet", "--clear", str(folder)], check=True)
    install = [_uv(), "pip", "install", "--quiet", "--python", str(python), str(wheel)]
    subprocess.run(install, check=True)
    home = FOLDER / "home"
    home.mkdir(exist_ok=True)
    home.chmod(0o500)
    bare = {"PATH": str(python.parent), "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(*words: str) -> bytes:
        ran = subprocess.run(words, env=bare, cwd=home, check=True, capture_output=True)
        return ran.stdout

    is_compiled = run(str(python), "-I", "-c", COMPILED).strip() == b"True"
    capture = str(ROOT / "captures" / "demo.pcap")
    command = str(python.with_name("kafkashark"))
    results = [run(command, room, capture, *options) for room, *options in COMMANDS]
    assert not list(home.iterdir()), "a command has written to the home folder"
    return is_compiled, results


def _uv() -> str:
    return str(Path(sys.executable).with_name("uv"))


def main(arguments: list[str]) -> int:
    """Build, and test if asked to; return 1 if the wheel does not do what it should."""
    wheel = build(ROOT / "dist")
    print(wheel.relative_to(ROOT))
    if "--test" not in arguments:
        return 0
    compiled = outputs(wheel, "compiled")
    plain = outputs(build(FOLDER / "plain-dist", NO_COMPILER), "plain")
    faults = []
    if not compiled[0]:
        faults.append("the wheel has no compiled kernels")
    if plain[0]:
        faults.append("the wheel built without a C compiler has compiled kernels")
    if compiled[1] != plain[1]:
        faults.append("compiled and uncompiled kernels give other output")
    print("\n".join(faults) or "the wheel passes, with and without compiled kernels")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
