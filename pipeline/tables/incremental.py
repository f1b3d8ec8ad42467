"""A part that is dissected little by little, as files come: its state is saved between them."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.engine.reading.capture import Window
from dissector.engine.reading.segment_source import FileNames
from pipeline.split.segment_sources import ShardSource
from pipeline.tables.table_builder import Batch, TableBuilder, Wanted

FIRST_PACKETS = "begun"
"""The table of the first packets of connections, as they begin."""

BEGUN_SCHEMA = pa.schema({"connection": pa.int64()})


def first_packet_rows(known: ConnectionTable, since: int = 0) -> Batch:
    """Return the first packets of connections from this number on."""
    firsts = known.first_packets(np.arange(since, len(known)))
    return FIRST_PACKETS, pa.RecordBatch.from_arrays([pa.array(firsts)], schema=BEGUN_SCHEMA)


class IncrementalDissection:
    """
    The connections of one part, from its first parcel to its last.

    Attributes:
        tables: Makes the rows.
    """

    def __init__(self, files: FileNames, wanted: Wanted) -> None:
        """Begin; `files` tell which file holds a packet, also of those to come."""
        self._feed = ShardSource(files)
        self._wanted = wanted
        self.tables = TableBuilder(self._feed, wanted)
        self._begun = 0

    @classmethod
    def load(cls, state: bytes, files: FileNames, wanted: Wanted) -> IncrementalDissection:
        """
        Go on where `save` was called; what is wanted must be the same.

        A state is a pickle: as with any checkpoint of Spark, whoever can write it can run code.
        """
        fold = cls(files, wanted)
        fold.tables.state, fold._feed.state, fold._begun = pickle.loads(state)
        return fold

    def save(self) -> bytes:
        """Return all that is kept until the next parcels come."""
        state = self.tables.state, self._feed.state, self._begun
        return pickle.dumps(state, protocol=5)

    def feed(self, parcels: Iterable[pa.RecordBatch]) -> Iterator[Batch]:
        """Take parcels, in the order of ranges and numbers; yield the rows that they complete."""
        windows = self._feed.segments_of(parcels, self._wanted.window_bytes)
        for window in self.tables.reading.advance(windows):
            yield from self.tables.rows_of(window)
            del window
        yield from self._news()

    def forget(self, idle_since_ns: int, closed_since_ns: int) -> Iterator[Batch]:
        """
        Forget connections, as if the collection had ended for them; yield the rows that end so.

        Args:
            idle_since_ns: Those without a packet since then.
            closed_since_ns: Those that are closed, and without a packet since then.
        """
        reading = self.tables.reading
        streams, talks = reading.streams, reading.correlator
        known = streams.connections.columns()
        closed = (known.ended != 0) & (known.last_ns < closed_since_ns)
        over = closed | (known.last_ns < idle_since_ns)
        numbers = np.flatnonzero(over)
        # Asked also where there are none: who is a broker is told to other parts.
        exchanges = talks.feed(streams.finish(numbers))
        yield from self.tables.rows_of(Window(exchanges, talks.low_watermark()))
        exchanges = talks.finish(numbers)
        yield from self.tables.rows_of(Window(exchanges, talks.low_watermark()))
        if len(numbers):
            yield from self.tables.connections(numbers)
            stay = np.flatnonzero(~over)
            streams.retain(stay)
            talks.retain(stay)
            self._begun = len(stay)

    @property
    def low_watermark(self) -> int:
        """The first packet of which rows may still come; only files from it on are asked for."""
        return self.tables.reading.correlator.low_watermark()

    def finish(self) -> Iterator[Batch]:
        """Yield the rows that end with the collection, and those of connections."""
        for window in self.tables.reading.finish():
            yield from self.tables.rows_of(window)
        yield from self.tables.connections()

    def _news(self) -> Iterator[Batch]:
        """Yield the connections that have begun since the last time."""
        known = self.tables.reading.streams.connections
        if len(known) > self._begun:
            yield first_packet_rows(known, self._begun)
            self._begun = len(known)
