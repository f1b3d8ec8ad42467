"""Examples, filters and figures of README."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conform.docs_page import rules_page
from dissector.cli import main
from dissector.filter import parse
from dissector.protocol.apis import all_apis
from serve.recording.recording_reader import read_recording
from tools.record import manifest
from tools.record.coverage import captures_in

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = [
    line
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
]
COMMANDS = [line.removeprefix("$ ") for line in LINES if line.startswith("$ kafkashark ")]


def printed(command: str) -> list[str]:
    """Return the lines below a command in README."""
    below = LINES[LINES.index(f"$ {command}") + 1 :]
    end = next((at for at, line in enumerate(below) if line.startswith("$ ")), len(below))
    return [line.rstrip() for line in below[:end] if line.strip()]


@pytest.mark.parametrize("command", [each for each in COMMANDS if printed(each)])
def test_a_command_prints_the_output_in_readme(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines are in the order of README; `...` stands for any number of others."""
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(command)[1:]) == 0
    out = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    shown, at, skips = printed(command), 0, True
    for line in shown:
        if line.strip() == "...":
            skips = True
            continue
        assert line in out[at:], f"no longer printed: {line}"
        assert skips or out[at] == line, f"unexpected line before it: {out[at]}"
        at += out[at:].index(line) + 1
        skips = False
    assert skips or at == len(out), "further lines without ..."


def test_readme_has_commands_with_output() -> None:
    assert sum(1 for each in COMMANDS if printed(each)) >= 2


@pytest.mark.parametrize("command", [each for each in COMMANDS if " -Y " in each])
def test_filters_in_readme_are_valid(command: str) -> None:
    words = shlex.split(command)
    parse(words[words.index("-Y") + 1], records=words[1] == "records")


CAPTURES = ROOT / "captures"
ENTRIES = manifest.read(CAPTURES).values()


def figure(pattern: str) -> str:
    """Return the group of a pattern in README, with joined lines."""
    found = re.search(pattern, " ".join(README.split()))
    assert found is not None, f"README lacks {pattern!r}"
    return found[1]


def test_count_of_apis_and_versions_in_readme() -> None:
    assert int(figure(r"\[all (\d+) APIs\]")) == len(all_apis())
    versions = sum(len(list(each.request.versions)) for each in all_apis())
    assert int(figure(r"at all (\d+) versions")) == versions


def test_count_of_captures_in_readme() -> None:
    assert int(figure(r"\[(\d+) captures\]")) == len(ENTRIES) == len(captures_in(CAPTURES))


def test_clients_in_readme() -> None:
    text = " ".join(each.client for each in ENTRIES)
    text = re.sub(r"\(.*?\)|a client of our own, \S+|and tools of the broker's release", "", text)
    clients = set(re.findall(r"Java clients|[a-z][a-z-]+", text))
    named = figure(r"\d+ captures\]\S+ of (.*?) with Apache Kafka")
    assert set(re.split(r", | and ", named)) == clients


def test_releases_of_kafka_in_readme() -> None:
    found = {re.search(r"Apache Kafka (\d+\.\d+)", each.broker) for each in ENTRIES}
    releases = sorted(each[1] for each in found if each is not None)
    assert figure(r"with Apache Kafka (\S+ to \S+),") == f"{releases[0]} to {releases[-1]}"


def test_count_of_rules_in_readme() -> None:
    assert int(figure(r"some (\d+) rules")) == round(
        int(rules_page().split(" rules.")[0].split()[-1]), -1
    )


def test_the_example_of_a_test_runs(tmp_path: Path) -> None:
    block = README.split("### Share and serve\n")[1].split("```python\n")[1].split("```")[0]
    (tmp_path / "test_readme_example.py").write_text(block)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "serve.pytest_plugin", tmp_path],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-c /dev/null"},
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_redacted_capture_can_be_served(tmp_path: Path) -> None:
    shared = tmp_path / "shared.pcapng"
    commands = [each for each in COMMANDS if " --redact " in each]
    (words,) = (shlex.split(each)[1:] for each in commands)
    words[1], words[-1] = str(ROOT / words[1]), str(shared)
    assert main(words) == 0
    recording = read_recording(shared)
    assert sorted(recording.cluster.brokers) == [1, 2, 3]
    recording.close()


def test_readme_is_under_250_lines() -> None:
    assert len(README.splitlines()) < 250
