"""docs/timeline.md documents all events of all kinds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.corpus import FOLDER
from timeline.events.event import KINDS, RECORD
from timeline.public import timeline

PAGE = (Path(__file__).parents[2] / "docs" / "timeline.md").read_text(encoding="utf-8")
SECTIONS = dict(part.split("\n", 1) for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:])


def documented(kind: str) -> set[str]:
    """Return the events in the first column of the tables of a kind."""
    rows = re.findall(r"^\| (`.*?) \|", SECTIONS[kind], re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(.*?)`", row)}


def test_each_kind_has_a_section() -> None:
    assert {*KINDS, RECORD} <= SECTIONS.keys()


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "name",
    [
        "demo.pcap",
        "kafka39-java-admin.pcap",
        "kafka4-errors.pcap",
        "kafka4-leader-change.pcap",
        "kafka4-librdkafka-fenced.pcap",
        "kafka4-librdkafka-sasl.pcap",
        "kafka4-quorum.pcap",
        "kafka4-static-members.pcap",
        "kafka4-streams-group.pcap",
        "kafka4-sweep-admin.pcap",
        "kafka4-sweep-groups.pcap",
    ],
)
def test_events_are_documented(name: str) -> None:
    for each in timeline(FOLDER / name):
        assert each.event in documented(each.kind)
