"""
`python -m tools.image [ROOT]` builds the image of the Dockerfile and runs the demo in it.

Without Docker the steps run in a bare root, as root. To create one: `debootstrap --variant=minbase
--include=python3,python3-pip,python3-dev,ca-certificates bookworm ROOT`. Both stages share it, with
Debian's Python.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

PROJECT = Path(__file__).parents[1]

NAME = "kafkashark"

ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin",
    "HOME": "/root",
    # Debian's pip requires an option for installing beside Debian's packages; the image's pip does
    # not.
    "PIP_BREAK_SYSTEM_PACKAGES": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
}


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile: name and words."""
    text = (PROJECT / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    pairs = (line.split(maxsplit=1) for line in lines if line.strip())
    return [(name, words) for name, words in pairs]


def context() -> Iterator[str]:
    """Yield the files copied by `COPY . .`."""
    ignored = (PROJECT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    patterns = [line for line in ignored if line and not line.startswith("#")]
    listed = subprocess.run(["git", "ls-files"], cwd=PROJECT, check=True, capture_output=True)
    for name in listed.stdout.decode().splitlines():
        parents = [name, *map(str, Path(name).parents)]
        if not any(fnmatch(each, pattern) for each in parents for pattern in patterns):
            yield name


def has_docker() -> bool:
    """Return whether a Docker daemon is available."""
    docker = shutil.which("docker")
    return (
        docker is not None and not subprocess.run([docker, "info"], capture_output=True).returncode
    )


def build_by_docker() -> bytes:
    """Build the image; return the demo's output."""
    subprocess.run(["docker", "build", "-t", NAME, "."], cwd=PROJECT, check=True)
    demo = ["docker", "run", "--rm", NAME, "demo"]
    return subprocess.run(demo, check=True, capture_output=True).stdout


def build_in(root: Path) -> bytes:
    """Run the steps in a bare root; return the demo's output."""
    place, user, entry = "/", "root", list[str]()
    for name, words in instructions():
        print(name, words, flush=True)
        match name:
            case "WORKDIR":
                place = words
                (root / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
            case "COPY" if words == ". .":
                for file in context():
                    target = root / place.lstrip("/") / file
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(PROJECT / file, target)
            case "RUN":
                _chroot(root, place, user, ["sh", "-c", words])
            case "USER":
                user = words
            case "ENTRYPOINT":
                entry = json.loads(words)
    return _chroot(root, place, user, [*entry, "demo"])


def _chroot(root: Path, place: str, user: str, words: list[str]) -> bytes:
    command = f"cd {shlex.quote(place)} && exec {shlex.join(words)}"
    chroot = ["chroot", f"--userspec={user}", str(root), "sh", "-c", command]
    return subprocess.run(chroot, check=True, env=ENVIRONMENT, stdout=subprocess.PIPE).stdout


def main() -> int:
    """Build and test the image; return 1 if the demo's output is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.image", description="Builds the image and runs the demo in it."
    )
    parser.add_argument("root", nargs="?", type=Path, help="a bare root, where there is no Docker")
    root = parser.parse_args().root
    if has_docker():
        printed = build_by_docker()
    elif root is not None and root.is_dir():
        printed = build_in(root.resolve())
    else:
        print("no Docker here; name a bare root, made by debootstrap", file=sys.stderr)
        return 2
    is_good = b"Per API" in printed and b"$ kafkashark replay" in printed
    print("the image runs the demo" if is_good else printed.decode(errors="replace"))
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
