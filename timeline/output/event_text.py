"""Events as text: a headline, followed by the description."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from dissector.view.text.escape import escaped
from timeline.events.event import Event
from timeline.events.words import duration, ranges

_INDENT = 14
MIN_WIDTH, WIDTH = 40, 118
"""Minimum width of the text, and width without a terminal."""


def event_lines(events: Iterable[Event], width: int | None = None) -> Iterator[str]:
    """
    Yield the lines of events; times are seconds since the first one.

    Args:
        events: Events in time order.
        width: Width of the terminal.
    """
    begin_ns: int | None = None
    wrapper = textwrap.TextWrapper(
        width=max(MIN_WIDTH, min(width or WIDTH, WIDTH)),
        initial_indent=" " * _INDENT,
        subsequent_indent=" " * _INDENT,
        break_on_hyphens=False,
    )
    for event in events:
        begin_ns = event.time_ns if begin_ns is None else begin_ns
        yield headline(event, begin_ns)
        yield from wrapper.wrap(escaped(event.text))


def headline(event: Event, begin_ns: int) -> str:
    """Return time, kind, subject, event, cause, duration and packets of an event."""
    cause = f": {event.cause}" if event.cause else ""
    took_ns = event.end_ns - event.time_ns
    took = f", {duration(took_ns)}" if took_ns else ""
    packets = {
        packet
        for each in event.evidence
        for packet in (each.request_packet, each.response_packet)
        if packet is not None
    }
    doubt = "" if event.certain else ", uncertain"
    subject = escaped(f"{event.kind} {event.subject}  {event.event}{cause}")
    seconds = (event.time_ns - begin_ns) / 1e9
    return f"{seconds:12.6f}  {subject}{took}{doubt}  [packets {ranges(packets)}]"
