"""Kafka's jars, resolved by Maven into a cache folder outside the repository."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")
LINES = {"4.x": "4.4.0", "3.9.x": "3.9.2"}
"""Release line, which the pom has a profile for -> its newest release."""

_OLDER_TOOLS = {"4.4.0": "4.3.1"}
"""Release without tools, Streams and Connect on Maven -> the newest one before it that has them."""

AGENT = "extract-tls-secrets-4.0.0.jar"
"""The Java agent that writes key logs."""

_MAVEN_PATIENCE_S = 600


class MissingError(Exception):
    """Java, Maven or the artifacts are unavailable; the message names the missing one."""


@dataclass(frozen=True)
class Jars:
    """One release of Kafka, ready to run."""

    version: str
    folder: Path

    @property
    def classpath(self) -> str:
        """The class path for `java -cp`."""
        return f"{self.folder}{os.sep}*"

    @property
    def tools(self) -> Jars:
        """The jars with the tools, Streams and Connect; of an older release if this has none."""
        older = _OLDER_TOOLS.get(self.version)
        return jars(older) if older else self

    def java(self, main: str, *arguments: str, heap_mb: int = 512) -> list[str]:
        """Return the command line for a class of these jars."""
        logging = Path(__file__).parent
        return [
            "java",
            f"-Xmx{heap_mb}m",
            # Brokers of tests run for seconds and share few cores.
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            f"-Dlog4j2.configurationFile={logging / 'log4j2.properties'}",
            f"-Dlog4j.configuration=file:{logging / 'log4j.properties'}",
            "-cp",
            self.classpath,
            main,
            *arguments,
        ]


def cache_folder() -> Path:
    """Return the folder for downloads: `$KAFKASHARK_CACHE`, or `~/.cache/kafkashark`."""
    named = os.environ.get("KAFKASHARK_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "kafkashark"


def jars(version: str = "4.x") -> Jars:
    """
    Find the jars of a release; Maven downloads them the first time.

    Args:
        version: A release line of the pom (`4.x`, `3.9.x`) or one release (`4.1.1`).

    Raises:
        MissingError: No Java, no Maven, or Maven could not get them.
    """
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise MissingError(f"{tool} is not installed")
    release = LINES.get(version, version)
    pom = hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    folder = cache_folder() / "broker" / f"{release}-{pom}"
    if not folder.exists():
        _resolve(release, folder)
    broker = next(folder.glob("kafka_2.13-*.jar"))
    found = re.search(r"-([\d.]+)\.jar$", broker.name)
    assert found is not None
    return Jars(found[1], folder)


def _resolve(release: str, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = tempfile.mkdtemp(prefix="resolving-", dir=folder.parent)
    profiles = ["3.9.x" if release.startswith("3.") else "4.x"]
    profiles += [] if release in _OLDER_TOOLS else ["tools"]
    command = ["mvn", "-B", "-q", "-f", str(POM), "-P", ",".join(profiles)]
    command += [f"-Dkafka.version={release}"]
    command += ["dependency:copy-dependencies", f"-DoutputDirectory={unfinished}"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_MAVEN_PATIENCE_S, check=False
        )
        if done.returncode:
            raise MissingError(f"Maven can not get Kafka {release}:\n{done.stdout[-2000:]}")
        if not folder.exists():  # another process may have created it
            Path(unfinished).rename(folder)
    except subprocess.TimeoutExpired:
        raise MissingError(f"Maven took more than {_MAVEN_PATIENCE_S} s") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def key_log_agent() -> Path:
    """
    Find the Java agent that writes key logs; Maven downloads it the first time.

    Raises:
        MissingError: No Maven, or it could not get the agent.
    """
    folder = cache_folder() / "agent"
    if (folder / AGENT).exists():
        return folder / AGENT
    artifact = f"name.neykov:{AGENT.removesuffix('.jar').replace('-4', ':4')}"
    command = ["mvn", "-B", "-q", "dependency:copy", f"-Dartifact={artifact}"]
    try:
        subprocess.run(
            [*command, f"-DoutputDirectory={folder}"],
            check=True,
            capture_output=True,
            timeout=_MAVEN_PATIENCE_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise MissingError(f"Maven can not get {AGENT}: {error}") from None
    return folder / AGENT
