"""Timelines of captures: the function behind `kafkashark timeline`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from dissector.engine.reading.capture import Capture
from dissector.protocol.context import iterate_under
from dissector.public import open_capture
from timeline.events.event import Event, kinds_of
from timeline.timeline import Timeline


def timeline(
    *captures: str | Path | Capture,
    kinds: Iterable[str] | None = None,
    ports: Iterable[int] = (),
    records: str | None = None,
) -> Iterator[Event]:
    """
    Yield the events of a capture in time order, as `kafkashark timeline` does.

    Args:
        captures: Files in any order that form one capture, or one `Capture` of `open_capture`.
        kinds: The kinds of events; by default all, or with `records` those of records.
        ports: Treat connections on these ports as Kafka, and ignore all others.
        records: A filter of records, such as `key.id == 7`: when those that pass were produced,
            fetched, replicated and committed, as events of the kind `record`.

    Raises:
        CaptureError: A file can't be opened, or is not a capture.
        FilterError: The filter does not parse.
    """
    first = captures[0] if captures else None
    if isinstance(first, Capture):
        capture = first
    else:
        paths = [each for each in captures if not isinstance(each, Capture)]
        capture = open_capture(*paths, ports=ports)
    found = Timeline(capture, kinds_of(kinds, records), records=records)
    events = found.events(capture.windows(gleaning=True))
    return iterate_under(capture.options.schemas, events)
