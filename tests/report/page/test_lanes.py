"""Lanes of events."""

from __future__ import annotations

from report.page.lanes import MAX_LANES, lanes
from report.page.safe_text import SafeText
from timeline.events.event import Event

SECOND = 1_000_000_000


def event(subject: str, begin_s: int, end_s: int, name: str, *, certain: bool = True) -> Event:
    times = begin_s * SECOND, end_s * SECOND
    return Event(*times, "group", subject, name, "why", "text", (), certain, ())


def test_short_events_are_drawn_above_long_ones() -> None:
    events = [event("g", 12, 12, "fenced"), event("g", 11, 19, "rebalance", certain=False)]
    (lane,), more = lanes(events, 10 * SECOND, SafeText())
    assert more == 0
    assert [(mark.begin_s, mark.end_s, mark.css_class) for mark in lane.marks] == [
        (1, 9, "unsure"),
        (2, 2, "bad"),
    ]
    assert lane.marks[1].title == "fenced (why): text"


def test_subjects_with_most_events_have_lanes() -> None:
    events = [event(f"g{number}", 1, 1, "joined") for number in range(MAX_LANES + 5)]
    found, more = lanes([*events, event("g34", 2, 2, "left")], 0, SafeText())
    assert (len(found), more) == (MAX_LANES, 5)
    assert found[0].subject == "g34"


def test_hourly_sums_have_no_marks() -> None:
    events = [event("shop", 9, 9, "produces"), event("shop", 3, 3, "retried")]
    (lane,), more = lanes([*events, event("quiet", 9, 9, "produces")], 0, SafeText())
    assert (lane.subject, more) == ("shop", 0)
    assert [mark.title for mark in lane.marks] == ["retried (why): text"]
