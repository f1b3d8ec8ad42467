"""The connection of each segment, and its position in the stream."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dissector.capture.columns import SYN, Segments
from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.engine.tables.exchange_table import Ints

_SEQ_BITS = 32
_SEQ_HALF, _SEQ_MASK = 1 << _SEQ_BITS - 1, (1 << _SEQ_BITS) - 1

_Flow = tuple[int, int, int, int, int, int]


class Position(NamedTuple):
    """
    A place in a stream.

    Attributes:
        connection: Number of the connection.
        side: The sending side.
        offset: Begin of the segment in the stream; negative before the first captured byte.
    """

    connection: int
    side: int
    offset: int


class _Stream(NamedTuple):
    first_packet: int
    network: int
    connection: int
    side: int
    first_sequence: int


class StreamIndex:
    """
    The streams of a capture that has been read.

    Where endpoints are used again, a connection has the segments from its first packet on. Sequence
    numbers are counted on beyond 32 bits: segments must come in the order of the capture.
    """

    def __init__(self, table: ConnectionTable) -> None:
        numbers = np.arange(len(table))
        columns = table.columns(numbers)
        self._streams: dict[_Flow, list[_Stream]] = {}
        self._last: dict[tuple[int, int], int] = {}
        rows = zip(
            columns.address.tolist(),
            columns.port.tolist(),
            columns.network.tolist(),
            table.first_packets(numbers).tolist(),
            table.first_sequences(numbers).tolist(),
            strict=True,
        )
        for number, (ends, ports, network, packet, firsts) in enumerate(rows):
            for side in (0, 1):
                flow = (*ends[side], ports[side], *ends[1 - side], ports[1 - side])
                stream = _Stream(packet, network, number, side, firsts[side])
                self._streams.setdefault(flow, []).append(stream)

    def positions(self, segments: Segments, rows: Ints) -> list[Position | None]:
        """Return the positions of some segments, in their order; None for one of no connection."""
        columns = (
            *(segments.source[rows].tolist(), segments.source_port[rows].tolist()),
            *(segments.target[rows].tolist(), segments.target_port[rows].tolist()),
            *(segments.packet[rows].tolist(), segments.network[rows].tolist()),
            (segments.seq[rows] + (segments.flags[rows] & SYN != 0)).tolist(),
        )
        return [
            self._position((*source, port, *target, other), packet, network, seq)
            for source, port, target, other, packet, network, seq in zip(*columns, strict=True)
        ]

    def _position(self, flow: _Flow, packet: int, network: int, seq: int) -> Position | None:
        streams = self._streams.get(flow, ())
        if len(streams) != 1 or streams[0].first_packet > packet:
            streams = [each for each in streams if each.first_packet <= packet]
            if not streams:
                return None
        stream = streams[0]
        if len(streams) > 1:
            stream = max(streams, key=lambda each: (each.network == network, each.first_packet))
        key = stream.connection, stream.side
        last = self._last.get(key, 0)
        away = (seq - stream.first_sequence - last) & _SEQ_MASK
        offset = last + away - (away >= _SEQ_HALF) * (_SEQ_MASK + 1)
        self._last[key] = max(offset, 0)
        return Position(*key, offset)
