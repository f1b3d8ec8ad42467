"""Old releases of clients, from PyPI and Maven, in a cache folder outside the repository."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from tests.broker.artifacts import MissingError, cache_folder

RELEASES = {
    ("librdkafka", "old"): "confluent-kafka==2.3.0",
    ("kafka-python", "old"): "kafka-python==2.2.15",
    ("java", "old"): "org.apache.kafka:kafka-clients:2.8.2",
    ("java", "oldest"): "org.apache.kafka:kafka-clients:0.10.2.2",
}
"""The others speak as their oldest releases did by a setting."""


def old_release(client: str, release: str) -> Path | None:
    """
    Return the folder, or for Java the file, that has to come first in the path of modules.

    Raises:
        MissingError: It can't be fetched.
    """
    wanted = RELEASES.get((client, release))
    if wanted is None:
        return None
    folder = cache_folder() / "old-releases" / wanted.replace(":", "-").replace("==", "-")
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as name:
            made = Path(name) / folder.name
            _fetch(wanted, made)
            with suppress(OSError):  # another process was faster
                made.rename(folder)
    return next(folder.glob("*.jar")) if client == "java" else folder


def _fetch(wanted: str, folder: Path) -> None:
    if "==" in wanted:
        beside = Path(sys.executable).with_name("uv")
        uv = str(beside) if beside.exists() else "uv"
        command = [uv, "pip", "install", "--quiet", "--no-deps", "--python", sys.executable]
        command += ["--target", str(folder), wanted]
    else:
        command = ["mvn", "-B", "-q", "dependency:copy", f"-Dartifact={wanted}"]
        command += [f"-DoutputDirectory={folder}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise MissingError(f"can't get {wanted}: {(done.stdout + done.stderr)[-2000:]}")
