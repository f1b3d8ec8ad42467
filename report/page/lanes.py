"""Lanes: the events of groups, transactions and producers on the axis of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from report.page.safe_text import SafeText
from timeline.events.event import Event

MAX_LANES = 30
"""Subjects of a kind with a lane: those with the most events."""

_BAD = frozenset(
    {
        *("aborted", "fenced", "refused", "commit refused", "left open", "failed"),
        *("coordinator lost", "batch too large", "sequence gap", "producer id unknown"),
        *("leader changed", "flapping"),
    }
)
_GOOD = frozenset({"committed"})
_HOURLY = frozenset({"produces"})
"""Sums of an hour, which are known at its end: no marks of what happened then."""


@dataclass(frozen=True, slots=True)
class Mark:
    """
    An event on a lane.

    Attributes:
        begin_s: When it began, in seconds since the begin of the plots.
        end_s: When it ended.
        css_class: How it is drawn.
        title: Its description.
    """

    begin_s: float
    end_s: float
    css_class: str
    title: str


@dataclass(frozen=True, slots=True)
class Lane:
    """
    The events of one subject.

    Attributes:
        subject: Its name.
        marks: Its events, short ones last so that none is hidden.
    """

    subject: str
    marks: list[Mark] = field(default_factory=list)


def lanes(events: Sequence[Event], begin_ns: int, safe: SafeText) -> tuple[list[Lane], int]:
    """Return the lanes of events of one kind, and the number of subjects without a lane."""
    events = [each for each in events if each.event not in _HOURLY]
    counts = Counter(each.subject for each in events)
    subjects = [subject for subject, _ in counts.most_common(MAX_LANES)]
    found = {subject: Lane(safe.text(subject)) for subject in subjects}
    for event in sorted(events, key=lambda each: each.time_ns - each.end_ns):
        lane = found.get(event.subject)
        if lane is not None:
            lane.marks.append(_mark(event, begin_ns, safe))
    return list(found.values()), len(counts) - len(found)


def css_class(event: Event) -> str:
    """Return how an event is marked: `bad`, `good`, `unsure`."""
    kind = "bad" if event.event in _BAD else "good" if event.event in _GOOD else ""
    return " ".join(filter(None, (kind, "" if event.certain else "unsure")))


def _mark(event: Event, begin_ns: int, safe: SafeText) -> Mark:
    cause = f" ({event.cause})" if event.cause else ""
    return Mark(
        round((event.time_ns - begin_ns) / 1e9, 6),
        round((event.end_ns - begin_ns) / 1e9, 6),
        css_class(event),
        safe.text(f"{event.event}{cause}: {event.text}"),
    )
