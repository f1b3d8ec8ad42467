"""Selection of exported segments by endpoints and sequence numbers."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import FIN, RST, SYN, Segments, unique
from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.engine.export.stream_ranges import StreamRanges
from dissector.engine.tables.exchange_table import Ints

Bools = NDArray[np.bool_]
Hashes = NDArray[np.uint64]

_SEQ_BITS = 32
_SEQ_END = 1 << _SEQ_BITS
_FLOW_AT = 34
"""Bit position of the flow in a key, above any end of a range."""

_FACTORS = np.array([secrets.randbits(64) | 1 for _ in range(6)], np.uint64)
"""Secret, so that no capture can contain many flows of one hash on purpose."""

_HALF = np.uint64(32)


def flow_hashes(source: Hashes, target: Hashes, ports: Ints) -> Hashes:
    """
    Return a hash of each direction; the network is left out.

    Args:
        source: Addresses as [high, low], [n, 2].
        target: In the same form.
        ports: Both ports, the source's in the upper 16 bits.
    """
    mixed = source[:, 0] * _FACTORS[0] + source[:, 1] * _FACTORS[1]
    mixed += target[:, 0] * _FACTORS[2] + target[:, 1] * _FACTORS[3]
    mixed += ports.astype(np.uint64) * _FACTORS[4]
    hashes: Hashes = (mixed ^ mixed >> _HALF) * _FACTORS[5]
    return hashes


def connection_hashes(table: ConnectionTable) -> Hashes:
    """Return the hashes of both directions of each connection, [n, 2]."""
    columns = table.columns()
    a, b = columns.address[:, 0], columns.address[:, 1]
    ports = columns.port
    return np.stack(
        (
            flow_hashes(a, b, ports[:, 0] << 16 | ports[:, 1]),
            flow_hashes(b, a, ports[:, 1] << 16 | ports[:, 0]),
        ),
        axis=1,
    )


def segment_hashes(segments: Segments, rows: slice | Ints = slice(None)) -> Hashes:
    """Return the hashes of the directions of some segments."""
    ports = segments.source_port[rows].astype(np.int64) << 16 | segments.target_port[rows]
    return flow_hashes(segments.source[rows], segments.target[rows], ports)


@dataclass(slots=True)
class FlowFilter:
    """
    Flows to export, both directions of each connection.

    Attributes:
        hashes: Their hashes, sorted.
        reverse: The index of the flow in the other direction.
        starts: Flow and sequence number of each range's beginning; sorted.
        ends: Sequence numbers of their ends, at most `_SEQ_END`.
    """

    hashes: Hashes
    reverse: Ints
    starts: Ints
    ends: Ints

    @classmethod
    def of(cls, ranges: StreamRanges, table: ConnectionTable, whole: Bools) -> FlowFilter:
        """
        Return the filter for ranges of streams.

        Args:
            ranges: The exported exchanges.
            table: The connections.
            whole: Of each connection, whether all of it is exported.
        """
        hashes = connection_hashes(table)
        connection, side, start, end = ranges.columns()
        numbers = unique(np.concatenate((connection, np.flatnonzero(whole))))
        sorted_hashes, index = np.unique(hashes[numbers].ravel(), return_inverse=True)
        index = index.reshape(-1, 2)
        reverse = np.zeros(len(sorted_hashes), np.int64)
        reverse[index[:, 0]], reverse[index[:, 1]] = index[:, 1], index[:, 0]
        row = np.searchsorted(numbers, connection)
        first = table.first_sequences(numbers)
        parts = [
            (index[row, side], first[row, side] + start, np.minimum(end - start, _SEQ_END)),
            _control_ranges(index, first, table.fin_sequences(numbers)),
            _whole_ranges(index[whole[numbers]].ravel()),
        ]
        flow, begin, length = (np.concatenate(each) for each in zip(*parts, strict=True))
        return cls(sorted_hashes, reverse, *_merged(flow, begin % _SEQ_END, length))

    def passing(self, segments: Segments) -> Bools:
        """
        Return the mask of exported segments.

        The packets with bytes of a range, retransmissions included; acknowledgements of them; and
        the handshakes and ends of their connections.
        """
        if not len(self.hashes):
            return np.zeros(len(segments), np.bool_)
        hashes = segment_hashes(segments)
        flow = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        rows = np.flatnonzero(self.hashes[flow] == hashes)
        flow = flow[rows]
        flags, length = segments.flags[rows], segments.length[rows]
        chosen = flags & (SYN | FIN | RST) != 0
        seq = segments.seq[rows] + (flags & SYN != 0)
        chosen |= (length > 0) & self._overlaps(flow, seq, length)
        acked = (segments.ack[rows] - 1) % _SEQ_END
        chosen |= (length == 0) & self._overlaps(self.reverse[flow], acked, np.ones_like(acked))
        passing = np.zeros(len(segments), np.bool_)
        passing[rows[chosen]] = True
        return passing

    def _overlaps(self, flow: Ints, seq: Ints, length: Ints) -> Bools:
        """Return the mask of segments that overlap a range of their flow."""
        end = seq + length
        wrapped = np.maximum(end - _SEQ_END, 0)
        return self._overlaps_plain(flow, seq, np.minimum(end, _SEQ_END)) | self._overlaps_plain(
            flow, np.zeros_like(seq), wrapped
        )

    def _overlaps_plain(self, flow: Ints, begin: Ints, end: Ints) -> Bools:
        if not len(self.starts):
            return np.zeros(len(flow), np.bool_)
        at = np.searchsorted(self.starts, flow << _FLOW_AT | end) - 1
        found = np.maximum(at, 0)
        is_there = (at >= 0) & (self.starts[found] >> _FLOW_AT == flow) & (end > begin)
        overlaps: Bools = is_there & (self.ends[found] > begin)
        return overlaps


def _control_ranges(flow: Ints, first: Ints, fin: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the SYN and FIN of each flow; their sequence numbers are acknowledged like bytes."""
    has_fin = fin != -1
    flows = np.append(flow.ravel(), flow[has_fin])
    begin = np.append(first.ravel() - 1, fin[has_fin])
    return flows, begin, np.ones_like(begin)


def _whole_ranges(flow: Ints) -> tuple[Ints, Ints, Ints]:
    return flow, np.zeros_like(flow), np.full_like(flow, _SEQ_END)


def _merged(flow: Ints, begin: Ints, length: Ints) -> tuple[Ints, Ints]:
    """Return the keys of starts, and the ends, of disjoint ranges, sorted; none wraps around."""
    end = begin + length
    wraps = end > _SEQ_END
    flow = np.append(flow, flow[wraps])
    begin = np.append(begin, begin[wraps] * 0)
    end = np.append(np.minimum(end, _SEQ_END), end[wraps] - _SEQ_END)
    order = np.lexsort((begin, flow))
    keys, ends = (flow << _FLOW_AT | begin)[order], (flow << _FLOW_AT | end)[order]
    if not len(keys):
        return keys, ends
    furthest = np.maximum.accumulate(ends)
    is_first = np.append(True, keys[1:] > furthest[:-1])
    last = np.append(np.flatnonzero(is_first)[1:], len(keys)) - 1
    return keys[is_first], furthest[last] & ((1 << _FLOW_AT) - 1)
