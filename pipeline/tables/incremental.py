"""Dissection of a part in steps, as files arrive; its state is saved between them."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.engine.reading.capture import Reading
from dissector.engine.reading.packet_files import FileNames
from pipeline.split.segment_sources import ShardSource
from pipeline.tables.table_builder import Batch, TableBuilder, TableOptions

FIRST_PACKETS = "begun"
"""The table of first packets of connections, in the order of connections."""

FIRST_PACKETS_SCHEMA = pa.schema({"connection": pa.int64()})


def first_packet_rows(connections: ConnectionTable, since: int = 0) -> Batch:
    """Return the first packets of connections from this number on."""
    first_packets = connections.first_packets(np.arange(since, len(connections)))
    return FIRST_PACKETS, pa.RecordBatch.from_arrays(
        [pa.array(first_packets)], schema=FIRST_PACKETS_SCHEMA
    )


def have_ended(reading: Reading, idle_since_ns: int, closed_since_ns: int) -> NDArray[np.bool_]:
    """Return which connections count as ended; see `IncrementalDissection.forget`."""
    columns = reading.streams.connections.columns()
    is_closed: NDArray[np.bool_] = (columns.ended != 0) & (columns.last_ns < closed_since_ns)
    return is_closed | (columns.last_ns < idle_since_ns)


class IncrementalDissection:
    """
    Dissects the connections of one part, from its first shard to its last.

    Attributes:
        tables: Makes the rows.
    """

    def __init__(self, files: FileNames, options: TableOptions) -> None:
        """Start; `files` holds the file of each packet, and may grow."""
        self._source = ShardSource(files)
        self._options = options
        self.tables = TableBuilder(self._source, options)
        self._reported = 0

    @classmethod
    def load(cls, state: bytes, files: FileNames, options: TableOptions) -> IncrementalDissection:
        """
        Continue where `save` was called; the options must be the same.

        A state is a pickle: as with any checkpoint of Spark, write access allows running code.
        """
        dissection = cls(files, options)
        dissection.tables.state, dissection._source.state, dissection._reported = pickle.loads(
            state
        )
        return dissection

    def save(self) -> bytes:
        """Return the state between two calls of `feed`."""
        state = self.tables.state, self._source.state, self._reported
        return pickle.dumps(state, protocol=5)

    def feed(self, shards: Iterable[pa.RecordBatch], packets: int = 0) -> Iterator[Batch]:
        """
        Dissect shards; yield the rows that they complete.

        Args:
            shards: In the order of ranges and numbers.
            packets: Number of packets of the collection so far; no row depends on it.
        """
        windows = self._source.segments_of(shards, self._options.window_bytes)
        for window in self.tables.reading.advance(windows):
            yield from self.tables.rows_of(window)
            del window
        yield from self._new_connections()

    def forget(self, idle_since_ns: int, closed_since_ns: int) -> Iterator[Batch]:
        """
        End connections as if the collection had ended for them; yield the rows that this completes.

        Args:
            idle_since_ns: Ends connections without a packet since then.
            closed_since_ns: Ends closed connections without a packet since then.
        """
        reading = self.tables.reading
        ended = have_ended(reading, idle_since_ns, closed_since_ns)
        numbers = np.flatnonzero(ended)
        # Also called without any: this publishes the endpoints of brokers to other parts.
        for window in reading.end_connections(numbers):
            yield from self.tables.rows_of(window)
        if len(numbers):
            yield from self.tables.connections(numbers)
            stay = np.flatnonzero(~ended)
            reading.retain(stay)
            self._reported = len(stay)

    @property
    def logs(self) -> dict[str, Any]:
        """The request logs by their names, to which more may be added."""
        return self._source.found_logs

    @property
    def low_watermark(self) -> int:
        """The first packet of future rows; only files from it on are needed."""
        return self.tables.reading.low_watermark()

    def finish(self) -> Iterator[Batch]:
        """Yield the rows that the end of the collection completes, and the rows of connections."""
        for window in self.tables.reading.finish():
            yield from self.tables.rows_of(window)
        yield from self.tables.connections()

    def _new_connections(self) -> Iterator[Batch]:
        """Yield the connections that have begun since the last call."""
        connections = self.tables.reading.streams.connections
        if len(connections) > self._reported:
            yield first_packet_rows(connections, self._reported)
            self._reported = len(connections)
