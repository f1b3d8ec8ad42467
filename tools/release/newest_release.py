"""Check of Maven for a Kafka release newer than the tested one."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.broker.artifacts import LINES

_POM = Path(__file__).with_name("pom.xml")
_KNOWN = LINES["4.x"]
_PATIENCE_S = 120


def news(known: str = _KNOWN) -> str:
    """Return a line for CI: a newer release, none, or the reason why that is unknown."""
    if shutil.which("mvn") is None:
        return "tools.release: mvn is not installed, so nobody looked for a newer Kafka"
    with tempfile.TemporaryDirectory(prefix="kafkashark-newest-") as folder:
        command = ["mvn", "-B", "-q", "-U", "-f", str(_POM), f"-Dknown.version={known}"]
        command += ["dependency:copy-dependencies", "-DexcludeTransitive"]
        command += [f"-DoutputDirectory={folder}"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"tools.release: Maven took more than {_PATIENCE_S} s to look for a newer Kafka"
        jars = [path.name for path in Path(folder).glob("kafka-clients-*.jar")]
    if done.returncode or not jars:
        return f"tools.release: Maven can't look for a newer Kafka: {_reason(done.stdout)}"
    newest = jars[0].removeprefix("kafka-clients-").removesuffix(".jar")
    if newest == known:
        return f"Kafka {known} is the newest release"
    return (
        f"Kafka {newest} is released, newer than {known}: "
        "python -m tools.release --write JAR... takes over what is new"
    )


def _reason(output: str) -> str:
    """Return the first line that Maven marks as an error."""
    found = re.search(r"\[ERROR\]\S* (.+)", output)
    return found[1][:200] if found else "no reason given"
