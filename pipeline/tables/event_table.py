"""The events of a collection, as `timeline` finds them."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from dissector.engine.reading.capture import Capture, Reading, Window
from dissector.engine.reading.packet_files import FileNames
from dissector.protocol.context import iterate_under
from pipeline.split.segment_sources import ShardSource
from pipeline.tables.incremental import have_ended
from pipeline.tables.table_builder import Batch, TableOptions
from pipeline.tables.table_schemas import EVENTS, SCHEMAS
from timeline.events.event import Event
from timeline.timeline import Timeline

BATCH_ROWS = 10_000


class EventMaker:
    """Makes the events; a `WholeMaker`."""

    def __init__(self, capture: Capture, options: TableOptions) -> None:
        self._timeline = Timeline(capture, show_secrets=options.show_secrets)

    def add(self, window: Window) -> Iterator[Batch]:
        """Read a window; yield completed events."""
        return _batches(self._timeline.advance(window))

    def finish(self) -> Iterator[Batch]:
        """Yield the events that the end of the collection completes."""
        return _batches(self._timeline.finish())


class IncrementalEvents:
    """Finds the events of all connections in steps, as `IncrementalDissection` makes rows."""

    def __init__(self, files: FileNames, options: TableOptions) -> None:
        """Start; `files` holds the file of each packet, and may grow."""
        self._source = ShardSource(files)
        self._options = options
        self._capture = Capture([], options.reading)
        self._capture.names.mark_complete()
        self._reading = self._capture.reading = Reading([], options.reading, source=self._source)
        self._timeline = Timeline(self._capture, show_secrets=options.show_secrets)

    @classmethod
    def load(cls, state: bytes, files: FileNames, options: TableOptions) -> IncrementalEvents:
        """Continue where `save` was called; the options must be the same."""
        found = cls(files, options)
        reading, names = found._reading, found._capture.names
        streams, decryption, correlator, names.by_id, source, timeline = pickle.loads(state)
        reading.resume(streams, decryption, correlator)
        found._source.state, found._timeline.state = source, timeline
        return found

    def save(self) -> bytes:
        """Return the state between two calls of `feed`."""
        reading, names = self._reading, self._capture.names
        of_reading = reading.streams, reading.decryption, reading.correlator, names.by_id
        state = (*of_reading, self._source.state, self._timeline.state)
        return pickle.dumps(state, protocol=5)

    def feed(self, shards: Iterable[pa.RecordBatch], packets: int) -> Iterator[Batch]:
        """
        Process the shards of a file; yield completed events.

        Args:
            shards: In the order of ranges and numbers.
            packets: Number of packets up to the end of the file.
        """
        self._source.packets = packets
        windows = self._source.segments_of(shards, self._options.window_bytes)
        yield from self._found(self._reading.advance(windows))

    def forget(self, idle_since_ns: int, closed_since_ns: int) -> Iterator[Batch]:
        """
        End connections as `IncrementalDissection.forget` does.

        Where none are left, all states end too, as if the collection had ended.
        """
        reading = self._reading
        ended = have_ended(reading, idle_since_ns, closed_since_ns)
        if ended.any():
            yield from self._found(reading.end_connections(np.flatnonzero(ended)))
            stay = np.flatnonzero(~ended)
            if not len(stay):
                yield from _batches(self._under_schemas(self._timeline.finish()))
            self._timeline.retain(reading, stay)
            reading.retain(stay)

    @property
    def logs(self) -> dict[str, Any]:
        """The request logs by their names, to which more may be added."""
        return self._source.found_logs

    @property
    def low_watermark(self) -> int:
        """The first packet of future events."""
        return self._reading.low_watermark()

    def finish(self) -> Iterator[Batch]:
        """Yield the events that the end of the collection completes."""
        yield from self._found(self._reading.finish())
        yield from _batches(self._under_schemas(self._timeline.finish()))

    def _found(self, windows: Iterable[Window]) -> Iterator[Batch]:
        events = (event for window in windows for event in self._timeline.advance(window))
        return _batches(self._under_schemas(events))

    def _under_schemas(self, events: Iterator[Event]) -> Iterator[Event]:
        return iterate_under(self._options.schemas, events)


def _batches(events: Iterable[Event]) -> Iterator[Batch]:
    """Yield events as rows."""
    rows = (event.row() for event in events)
    while part := list(islice(rows, BATCH_ROWS)):
        yield EVENTS, pa.RecordBatch.from_pylist(part, schema=SCHEMAS[EVENTS])
