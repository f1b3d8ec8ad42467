"""Lanes: events of groups, transactions and producers on the time axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from report.page.safe_text import SafeText
from timeline.events.event import Event
from timeline.events.words import duration

MAX_LANES = 30
"""Maximum number of lanes per kind; subjects with the most events are chosen."""

_BAD = frozenset(
    {
        *("aborted", "fenced", "refused", "commit refused", "left open", "failed"),
        *("coordinator lost", "batch too large", "sequence gap", "producer id unknown"),
        *("leader changed", "flapping", "denied", "login failed", "unanswered", "connect failed"),
    }
)
_LABELLED_NS = 10_000_000
_GOOD = frozenset({"committed"})
_HOURLY = frozenset({"produces"})
"""Hourly sums, which have no mark: it would be as long as the lane."""


@dataclass(frozen=True, slots=True)
class Mark:
    """
    An event on a lane.

    Attributes:
        begin_s: Begin in seconds since the begin of the plots.
        end_s: End in the same unit.
        css_class: CSS class of the mark.
        title: Description of the event.
        label: Its name, and how long it took if it took long.
    """

    begin_s: float
    end_s: float
    css_class: str
    title: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """
    The events of one subject.

    Attributes:
        subject: Name of the subject.
        marks: Events; short ones last, so that none is hidden.
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
    """Return the CSS class of an event: `bad`, `good`, `unsure`."""
    kind = "bad" if event.event in _BAD else "good" if event.event in _GOOD else ""
    return " ".join(filter(None, (kind, "" if event.certain else "unsure")))


def _mark(event: Event, begin_ns: int, safe: SafeText) -> Mark:
    cause = f" ({event.cause})" if event.cause else ""
    cause += f" x {event.count:,}" if event.count > 1 else ""
    return Mark(
        round((event.time_ns - begin_ns) / 1e9, 6),
        round((event.end_ns - begin_ns) / 1e9, 6),
        css_class(event),
        safe.text(f"{event.event}{cause}: {event.text}"),
        safe.text(_label(event)),
    )


def _label(event: Event) -> str:
    took_ns = event.end_ns - event.time_ns
    return f"{event.event} {duration(took_ns)}" if took_ns >= _LABELLED_NS else event.event
