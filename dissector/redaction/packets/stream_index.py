"""The stream of each segment, and its position in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dissector.capture.columns import SYN, Segments
from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.engine.export.flow_filter import connection_hashes, segment_hashes
from dissector.engine.tables.exchange_table import Ints
from dissector.redaction.packets.position_kernels import NO_STREAM, find_offsets


class Positions(NamedTuple):
    """
    Places in streams.

    Attributes:
        stream: `2 * connection + side` of each; `NO_STREAM` for a segment of no connection.
        offset: Begin of the segment in the stream; negative before the first captured byte.
    """

    stream: Ints
    offset: Ints


class StreamIndex:
    """
    The streams of a capture that has been read.

    Where endpoints are used again, a connection has the segments from its first packet on. Sequence
    numbers are counted on beyond 32 bits: segments must come in the order of the capture.
    """

    def __init__(self, table: ConnectionTable) -> None:
        numbers = np.arange(len(table))
        hashes = connection_hashes(table).ravel()
        self._order: Ints = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]
        self._first_packet = np.repeat(table.first_packets(numbers), 2)
        self._network = np.repeat(table.columns(numbers).network, 2)
        self._first = np.ascontiguousarray(table.first_sequences(numbers), np.int64).ravel()
        self._last: Ints = np.zeros(2 * len(table), np.int64)

    def positions(self, segments: Segments, rows: Ints) -> Positions:
        """Return the positions of some segments, in their order."""
        stream = self._streams_of(segments, rows)
        sequence = segments.seq[rows] + (segments.flags[rows] & SYN != 0)
        offset = np.zeros(len(rows), np.int64)
        find_offsets(stream, sequence, self._first, self._last, offset)
        return Positions(stream, offset)

    def _streams_of(self, segments: Segments, rows: Ints) -> Ints:
        hashes, packet = segment_hashes(segments, rows), segments.packet[rows]
        begin, end = (np.searchsorted(self._hashes, hashes, side) for side in ("left", "right"))
        found = np.full(len(rows), NO_STREAM, np.int64)
        is_known = end > begin
        found[is_known] = self._order[begin[is_known]]
        found[is_known] = np.where(
            self._first_packet[found[is_known]] <= packet[is_known], found[is_known], NO_STREAM
        )
        for row in np.flatnonzero(end - begin > 1).tolist():
            streams = self._order[begin[row] : end[row]]
            network = int(segments.network[rows[row]])
            found[row] = self._latest(streams, int(packet[row]), network)
        return found

    def _latest(self, streams: Ints, packet: int, network: int) -> int:
        """Return the stream of a packet, of several with the same endpoints."""
        streams = streams[self._first_packet[streams] <= packet]
        if not len(streams):
            return NO_STREAM
        is_in_network = self._network[streams] == network
        return int(streams[np.lexsort((-self._first_packet[streams], ~is_in_network))[0]])
