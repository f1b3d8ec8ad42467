"""Events are counted, and the first of each name is kept."""

from __future__ import annotations

from dataclasses import replace

from report.gather.event_digest import EventDigest
from timeline.events.event import Event


def event(number: int, name: str = "joined", kind: str = "group") -> Event:
    return Event(number, number, kind, "g", name, "", "", (), True, ())


def test_the_first_events_are_kept() -> None:
    digest = EventDigest(most=2)
    for number in (3, 1, 2):
        digest.add(event(number))
    digest.add(event(0, "left"))
    digest.add(event(9, "connected", "connection"))
    assert [each.time_ns for each in digest.retained("group")] == [0, 1, 3]
    assert digest.total("group") == 4
    assert digest.counts["group", "joined", ""] == 3
    assert digest.retained("cluster") == []


def test_equal_events_count_each() -> None:
    digest = EventDigest()
    digest.add(replace(event(1, "connected", "connection"), count=1640))
    digest.add(event(2, "connected", "connection"))
    assert digest.counts["connection", "connected", ""] == 1641
    assert digest.total("connection") == 2
