"""Timelines of captures: the function behind `kafkashark timeline`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

from dissector.engine.reading.capture import Capture
from dissector.protocol.context import iterate_under
from dissector.public import open_capture
from timeline.events.event import Event, kinds_of
from timeline.timeline import Timeline


class Events(Iterator[Event]):
    """
    The events of a capture in time order, read while they are iterated over.

    Attributes:
        counts: Kind -> number of events so far.
        is_complete: Whether all were read.
    """

    def __init__(self, events: Iterator[Event]) -> None:
        self.counts: Counter[str] = Counter()
        self.is_complete = False
        self._events = events

    def __next__(self) -> Event:
        """Return the next event."""
        try:
            event = next(self._events)
        except StopIteration:
            self.is_complete = True
            raise
        self.counts[event.kind] += 1
        return event

    def __repr__(self) -> str:
        number = self.counts.total()
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.counts.most_common())
        state = "" if self.is_complete else " so far"
        return f"<Events, {number:,}{state}{': ' if kinds else ''}{kinds}>"

    def _repr_html_(self) -> str:
        """Return the number of events by kind, without reading more."""
        rows = "".join(
            f"<tr><td>{escape(kind)}</td><td>{count:,}</td></tr>"
            for kind, count in self.counts.most_common()
        )
        title = repr(self).strip("<>").partition(":")[0]
        return f"<div><b>{escape(title)}</b><table>{rows}</table></div>"


def timeline(
    *captures: str | Path | Capture,
    kinds: Iterable[str] | None = None,
    ports: Iterable[int] = (),
    records: str | None = None,
) -> Events:
    """
    Return the events of a capture in time order, as `kafkashark timeline` prints them.

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
    events = found.events(capture.windows(gleaning=True, checking=False))
    return Events(iterate_under(capture.options.schemas, events))
