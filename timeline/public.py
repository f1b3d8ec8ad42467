"""Timelines of captures: the function behind `kafkashark timeline`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from dissector.engine.reading.capture import Capture
from dissector.protocol.context import iterate_under
from dissector.public import open_capture
from timeline.events.event import KINDS, Event
from timeline.timeline import Timeline


def timeline(
    *captures: str | Path | Capture, kinds: Iterable[str] = KINDS, ports: Iterable[int] = ()
) -> Iterator[Event]:
    """
    Yield the events of a capture in time order, as `kafkashark timeline` does.

    Args:
        captures: Files in any order that form one capture, or one `Capture` of `open_capture`.
        kinds: The kinds of events.
        ports: Treat connections on these ports as Kafka, and ignore all others.

    Raises:
        CaptureError: A file can't be opened, or is not a capture.
    """
    first = captures[0] if captures else None
    if isinstance(first, Capture):
        capture = first
    else:
        paths = [each for each in captures if not isinstance(each, Capture)]
        capture = open_capture(*paths, ports=ports)
    events = Timeline(capture, kinds).events(capture.windows(gleaning=True))
    return iterate_under(capture.options.schemas, events)
