"""Figures of README; its examples are in `test_docs`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from conform.docs_page import rules_page
from dissector.cli import main
from dissector.protocol.apis import all_apis
from serve.recording.recording_reader import read_recording
from tools.record import manifest
from tools.record.coverage import captures_in

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (kafkashark .*)", README, re.MULTILINE)


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


@pytest.mark.long
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
