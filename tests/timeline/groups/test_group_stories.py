"""
The events of groups in some captures, in full: times, causes, certainty, evidence and words.

`pytest tests/timeline/groups/test_group_stories.py --update-golden` rewrites `group_stories.txt`:
review the difference before the commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.timeline.events_of import corpus_events
from timeline.events.event import Event

CAPTURES = (
    "kafka4-librdkafka-group.pcap",
    "kafka4-static-members.pcap",
    "kafka4-connect.pcap",
    "kafka4-leader-change.pcap",
    "kafka4-librdkafka-group-848.pcap",
    "kafka4-java-share-group.pcap",
    "kafka44-java-streams-group.pcap",
)
STORIES = Path(__file__).with_name("group_stories.txt")


def test_the_stories_of_groups(request: pytest.FixtureRequest) -> None:
    lines = [line for name in CAPTURES for line in (f"[{name}]", *story(name), "")]
    text = "".join(f"{line}\n" for line in lines)
    if request.config.getoption("--update-golden"):
        STORIES.write_text(text, encoding="utf-8")
    assert text.split("\n") == STORIES.read_text(encoding="utf-8").split("\n")


def story(name: str) -> Iterator[str]:
    """Yield the events of a capture, with seconds since the first one."""
    events = corpus_events(name, "group")
    begin_ns = events[0].time_ns
    for each in events:
        yield f"{(each.time_ns - begin_ns) / 1e9:.6f} {' | '.join(words(each))}"


def words(event: Event) -> Iterator[str]:
    """Yield the words of an event."""
    yield event.event
    yield f"{(event.end_ns - event.time_ns) / 1e9:.6f} s"
    yield event.cause or "no cause"
    yield "certain" if event.certain else "uncertain"
    yield ", ".join(str(each.request_packet or each.response_packet) for each in event.evidence)
    yield f"{event.count} times"
    yield event.text
