"""
Native traces for ui.perfetto.dev and trace_processor.

Each client and broker is a process with its exchanges and counters. Events of groups, transactions,
producers, consumers, connections and the cluster have tracks. Packets may be out of time order;
readers sort them.

Source: https://perfetto.dev/docs/reference/synthetic-track-event
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from dissector.engine.reading.capture import Capture, Window
from dissector.engine.records.record_locator import find_field_batches, locate_records
from dissector.engine.tables.exchange_table import Ints
from dissector.protocol.context import using
from timeline.events.capture_progress import CaptureProgress
from timeline.events.event import Event
from timeline.events.words import mask_of, ranges
from timeline.output.perfetto.exchange_slices import ExchangeSlices
from timeline.output.perfetto.flows import FlowFinder
from timeline.output.perfetto.packets import BEGIN, END, INSTANT, clock_packet, event_packet
from timeline.output.perfetto.slots import Slots
from timeline.output.perfetto.trace_counters import Counters
from timeline.output.perfetto.tracks import Tracks
from timeline.output.perfetto.window_exchanges import window_exchanges

_TITLES = {
    "group": "groups",
    "producer": "producers",
    "transaction": "transactions",
    "consumer": "consumers",
    "connection": "connections",
    "cluster": "cluster",
    "record": "records",
}
"""Track of each kind of event."""


class Trace:
    """Writes a trace, window by window and event by event."""

    def __init__(
        self,
        capture: Capture,
        write: Callable[[bytes], object],
        chosen: Callable[[Window], Ints | None] = lambda window: None,
        *,
        show_secrets: bool = False,
    ) -> None:
        """
        Start a trace.

        Args:
            capture: The capture.
            write: Receives the encoded packets.
            chosen: Selects rows of exchanges in a window; None for all.
            show_secrets: Show credentials in names instead of masks.
        """
        mask = mask_of(capture, show_secrets)
        self._capture, self._write, self._chosen, self._mask = capture, write, chosen, mask
        self._tracks = Tracks(write)
        self._slices = ExchangeSlices(self._tracks, write, mask)
        self._counters = Counters(capture, self._tracks, write, mask)
        self._flows = FlowFinder(capture.names.name)
        self._progress = CaptureProgress()
        self._event_slots = Slots()
        self._subjects: dict[int, int] = {}
        self._has_clock = False

    def write(
        self, windows: Iterable[Window], events_of: Callable[[Iterable[Window]], Iterable[Event]]
    ) -> None:
        """Write the trace; `events_of` yields events while it reads the windows."""
        for event in events_of(self._shown(windows)):
            self._add_event(event)
        self._counters.finish()

    def _shown(self, windows: Iterable[Window]) -> Iterator[Window]:
        """Write the exchanges of each window before its events."""
        for window in windows:
            with using(self._capture.options.schemas):
                self._add_window(window)
            yield window
            del window  # frees its memory before the next window is read

    def _add_window(self, window: Window) -> None:
        reading = self._capture.reading
        assert reading is not None
        complete_ns = self._progress.advance(window, reading.packets)
        if not len(window.exchanges):
            return
        rows = self._chosen(window)
        exchanges = window_exchanges(self._capture, window, rows, self._tracks, self._mask)
        if len(exchanges) and not self._has_clock:
            self._has_clock = True
            self._begin(reading.source.begin_ns)
        self._counters.add_group_lags(window, rows)
        if not len(exchanges):
            return
        table = exchanges.table
        fields = locate_records(table)
        found = find_field_batches(table, fields)
        self._slices.add(exchanges, self._flows.find(table, fields, found))
        self._counters.add(exchanges, complete_ns)
        self._counters.add_positions(exchanges, fields, found)

    def _begin(self, time_ns: int) -> None:
        """Let the trace begin with the capture, whatever is selected of it."""
        self._write(clock_packet(time_ns))
        track = self._tracks.child(0, "capture")
        self._write(event_packet(INSTANT, track, time_ns, "first packet"))

    def _add_event(self, event: Event) -> None:
        """Write an event to the track of its subject."""
        kind = self._tracks.child(0, _TITLES[event.kind])
        subject = event.subject if self._tracks.has_room(kind, event.subject) else "others"
        parent = self._tracks.child(kind, subject)
        group = self._subjects.setdefault(parent, len(self._subjects))
        columns = (np.array([each]) for each in (group, event.time_ns, event.end_ns))
        slot = int(self._event_slots.assign(*columns)[0])
        # Concurrent events get child tracks.
        track = self._tracks.child(parent, f"{subject} #{slot + 1}") if slot else parent
        annotations = {
            "cause": event.cause,
            "count": str(event.count),
            "text": event.text,
            "certain": "true" if event.certain else "false",
            "packets": ranges(each.first_packet for each in event.evidence),
        }
        kind_of_packet = BEGIN if event.end_ns > event.time_ns else INSTANT
        self._write(event_packet(kind_of_packet, track, event.time_ns, event.title, annotations))
        if kind_of_packet == BEGIN:
            self._write(event_packet(END, track, event.end_ns))
