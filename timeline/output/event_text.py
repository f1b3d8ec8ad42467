"""Events as text: a headline, followed by the description."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator

from dissector.view.text.escape import escaped
from timeline.events.event import Event
from timeline.events.words import MAX_LISTED, duration, ranges

_INDENT = 14
MIN_WIDTH, WIDTH = 40, 118
"""Minimum width of the text, and width without a terminal."""


def event_lines(
    events: Iterable[Event],
    time: Callable[[int], str],
    width: int | None = None,
    places: Callable[[Iterable[int]], str] = lambda packets: "",
) -> Iterator[str]:
    """
    Yield the lines of events.

    Args:
        events: Events in time order.
        time: Returns a time as text.
        width: Width of the terminal.
        places: Returns the files of packets, with their numbers there; empty for one file.
    """
    wrapper = textwrap.TextWrapper(
        width=max(MIN_WIDTH, width or WIDTH),
        initial_indent=" " * _INDENT,
        subsequent_indent=" " * _INDENT,
        break_on_hyphens=False,
    )
    for event in events:
        yield headline(event, time(event.time_ns), places)
        yield from wrapper.wrap(escaped(event.text))


def headline(event: Event, time: str, places: Callable[[Iterable[int]], str]) -> str:
    """Return time, kind, subject, event, cause, count, duration and packets of an event."""
    took_ns = event.end_ns - event.time_ns
    took = f", {duration(took_ns)}" if took_ns else ""
    files = f" ({escaped(found)})" if (found := places(event.packets)) else ""
    packets = ranges(event.packets, MAX_LISTED)
    doubt = "" if event.certain else ", uncertain"
    subject = escaped(f"{event.kind} {event.subject}  {event.title}")
    return f"{time:>12}  {subject}{took}{doubt}  [packets {packets}{files}]"
