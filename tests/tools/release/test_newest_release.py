"""The check of CI for a newer release, which never fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.artifacts import LINES
from tools.release.__main__ import main

KNOWN = LINES["4.x"]


def maven(folder: Path, script: str) -> None:
    """Write a substitute for Maven into a folder; `$to` is the destination of its copy."""
    path = folder / "mvn"
    path.write_text(f"""#!/bin/sh
for each in "$@"; do
  case $each in -DoutputDirectory=*) to=${{each#*=}};; esac
done
{script}
""")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (f": > $to/kafka-clients-{KNOWN}.jar", f"Kafka {KNOWN} is the newest release"),
        (
            ": > $to/kafka-clients-99.0.1.jar",
            f"Kafka 99.0.1 is released, newer than {KNOWN}: "
            "python -m tools.release --write JAR... takes over what is new",
        ),
        (
            "echo '[ERROR] Network is unreachable'; exit 1",
            "tools.release: Maven can't look for a newer Kafka: Network is unreachable",
        ),
        ("exit 0", "tools.release: Maven can't look for a newer Kafka: no reason given"),
    ],
    ids=["known", "newer", "offline", "nothing"],
)
def test_the_newest_release_on_maven_is_reported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    script: str,
    said: str,
) -> None:
    maven(tmp_path, script)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert main(["--newest"]) == 0
    assert capsys.readouterr().out == f"{said}\n"


def test_missing_maven_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["--newest"]) == 0
    assert "mvn is not installed" in capsys.readouterr().out
