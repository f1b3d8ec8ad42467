"""
Builds a Debian package of a wheel: an environment with all it needs in /opt/kafkashark.

    python -m tools.packaging.deb WHEEL FOLDER [--python /usr/bin/python3.12]

Needs uv and dpkg-deb. The package fits the version of Python that it was built with, and the
processor.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools import man_page

EXTRAS = "mock,browse"

HOME = "https://github.com/kafkashark/kafkashark"

CONTROL = """\
Package: kafkashark
Version: {version}
Architecture: {architecture}
Maintainer: kafkashark <{home}>
Homepage: {home}
Installed-Size: {kilobytes}
Depends: python{python}, libc6
Recommends: tcpdump
Section: net
Priority: optional
Description: Wireshark for Apache Kafka
 Reads packet captures, decodes every Kafka API at every version, pairs requests
 with responses, replays captures, and checks clients and brokers.
"""


def build(wheel: Path, folder: Path, python: str) -> Path:
    """
    Build the package; return its path.

    Args:
        wheel: The wheel.
        folder: Gets the package.
        python: The interpreter, where Debian's packages have it.
    """
    version = wheel.name.split("-")[1]
    architecture = _output("dpkg", "--print-architecture")
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary) / "root"
        _install(wheel, root, python)
        _add_manual(root)
        kilobytes = sum(each.lstat().st_size for each in root.rglob("*")) // 1024
        (root / "DEBIAN").mkdir()
        control = CONTROL.format(
            version=version,
            architecture=architecture,
            home=HOME,
            kilobytes=kilobytes,
            python=_output(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"),
        )
        (root / "DEBIAN" / "control").write_text(control)
        folder.mkdir(parents=True, exist_ok=True)
        made = folder / f"kafkashark_{version}_{architecture}.deb"
        _output("dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "--build", str(root), str(made))
    return made


def _install(wheel: Path, root: Path, python: str) -> None:
    """Install a wheel into an environment that may be moved, with its command in /usr/bin."""
    place = root / "opt" / "kafkashark"
    _output(_uv(), "venv", "--quiet", "--relocatable", "--python", python, str(place))
    command = (_uv(), "pip", "install", "--quiet", "--compile-bytecode", "--python")
    # Links into uv's cache would be part of the package.
    _output(*command, str(place), "--link-mode", "copy", f"{wheel.resolve()}[{EXTRAS}]")
    programs = root / "usr" / "bin"
    programs.mkdir(parents=True)
    (programs / "kafkashark").symlink_to("../../opt/kafkashark/bin/kafkashark")


def _add_manual(root: Path) -> None:
    manual = root / "usr" / "share" / "man" / "man1" / "kafkashark.1.gz"
    manual.parent.mkdir(parents=True)
    manual.write_bytes(gzip.compress(man_page.PAGE.read_bytes(), mtime=0))


def _output(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"tools.packaging.deb: {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def _uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else shutil.which("uv") or "uv"


def main() -> None:
    """Build the package that the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m tools.packaging.deb")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default="/usr/bin/python3")
    given = parser.parse_args()
    print(build(given.wheel, given.folder, given.python))


if __name__ == "__main__":
    main()
