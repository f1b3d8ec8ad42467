"""The kernel that packs segments into rows for shards."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dissector.capture.columns import FLAG_BITS, Bytes, Int64s, Segments
from dissector.capture.hashing import SECRET, hash_endpoints
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I32, I64, U8, I64Table
from dissector.kernel.memcpy import copy_bytes
from dissector.kernel.named_rows import NamedRow, RowArray, Rows, Two, dtype_of


class EndpointPair(NamedRow):
    """
    The two endpoints of segments.

    Attributes:
        network: Number of their network.
        source_port: Port of the sender.
        target_port: Port of the receiver.
        source: Address of the sender: high and low half, signed.
        target: Address of the receiver.
    """

    network: int
    source_port: int
    target_port: int
    source: Two[int]
    target: Two[int]


class PackedSegment(NamedRow):
    """
    A segment; see `Segments`.

    Attributes:
        packet: Number of its packet.
        time_ns: Its time.
        flags: Its flags, and `FLAG_BITS` higher the number of the endpoint pair.
        seq: Its sequence number.
        ack: Its acknowledgement.
        lengths: The captured length, and 32 bits higher the length on the wire.
        clock_ns: The latest time so far.
    """

    packet: int
    time_ns: int
    flags: int
    seq: int
    ack: int
    lengths: int
    clock_ns: int


class PackState(NamedRow):
    """
    How far the kernel came.

    Attributes:
        pairs: The number of endpoint pairs.
        segment: The next segment.
    """

    pairs: int
    segment: int


class PackPosition(NamedRow):
    """
    Where the next segment of a part goes.

    Attributes:
        row: Its row.
        byte: Its first byte of payload.
    """

    row: int
    byte: int


class _SegmentArrays(NamedTuple):
    """The segments, as in `Segments`, and the part of each, or -1; addresses are signed."""

    into: I64
    data: U8
    packet: I64
    time_ns: I64
    network: I32
    source: I64Table
    target: I64Table
    source_port: I32
    target_port: I32
    seq: I64
    ack: I64
    flags: I32
    start: I64
    length: I64
    captured: I64
    clock_ns: I64


class _PairArrays(NamedTuple):
    """The table of endpoint pairs: its rows, a hash table of these, and the secret of its hash."""

    ends: Rows[EndpointPair]
    slots: I64
    secret: I64


class _PackedArrays(NamedTuple):
    """
    Receives the rows.

    Attributes:
        positions: The next row and byte of each part.
        rows: The rows of all parts.
        payload: Their bytes.
    """

    positions: Rows[PackPosition]
    rows: Rows[PackedSegment]
    payload: U8


@device_function
def _endpoints_of(pairs: _PairArrays, count: int, segments: _SegmentArrays, i: int) -> int:
    """Return the number of the endpoint pair of segment `i`; a new pair gets the number `count`."""
    ends, slots, secret = pairs.ends, pairs.slots, pairs.secret
    source, target, network = segments.source, segments.target, segments.network[i]
    source_port, target_port = segments.source_port[i], segments.target_port[i]
    last = len(slots) - 1
    high, low, to_high, to_low = source[i, 0], source[i, 1], target[i, 0], target[i, 1]
    slot = last & hash_endpoints(
        secret, network, high, low, source_port, to_high, to_low, target_port
    )
    while slots[slot] != 0:
        known = ends[slots[slot] - 1]
        if (
            known.source[1] == low
            and known.target[1] == to_low
            and known.source_port == source_port
            and known.target_port == target_port
            and known.network == network
            and known.source[0] == high
            and known.target[0] == to_high
        ):
            return slots[slot] - 1
        slot = (slot + 1) & last
    slots[slot] = count + 1
    new = ends[count]
    new.network = network
    new.source_port, new.target_port = source_port, target_port
    new.source[0], new.source[1] = high, low
    new.target[0], new.target[1] = to_high, to_low
    return count


@Kernel
def _pack(
    segments: _SegmentArrays, pairs: _PairArrays, packed: _PackedArrays, state: PackState
) -> None:
    """
    Append a row and the payload of each segment to those of its part.

    It stops at a segment with an endpoint pair that does not fit.

    Args:
        segments: The segments.
        pairs: The endpoint pairs.
        packed: Receives the rows.
        state: The segment to begin with.
    """
    captured, count, i = segments.captured, state.pairs, state.segment
    while i < len(segments.into) and count < len(pairs.ends):
        part = segments.into[i]
        if part >= 0:
            pair = _endpoints_of(pairs, count, segments, i)
            if pair == count:
                count += 1
            to = packed.positions[part]
            row = packed.rows[to.row]
            row.packet = segments.packet[i]
            row.time_ns = segments.time_ns[i]
            row.flags = pair << FLAG_BITS | segments.flags[i]
            row.seq = segments.seq[i]
            row.ack = segments.ack[i]
            row.lengths = segments.length[i] * 0x100000000 + captured[i]
            row.clock_ns = segments.clock_ns[i]
            to.row += 1
            if captured[i] > 0:
                copy_bytes(packed.payload, to.byte, segments.data, segments.start[i], captured[i])
                to.byte += captured[i]
        i += 1
    state.pairs, state.segment = count, i


class EndpointTable:
    """
    Endpoint pairs of segments, each once, by number.

    Attributes:
        rows: The table, with free rows.
    """

    def __init__(self) -> None:
        self.rows: RowArray = np.zeros(256, dtype_of(EndpointPair))
        self._slots = np.zeros(1024, np.int64)
        self._count = 0

    def pack(self, segments: Segments, into: Int64s, sums: RowArray) -> tuple[RowArray, Bytes]:
        """
        Return the rows and payloads of segments with a part, ordered by part.

        Args:
            segments: The segments.
            into: The part of each, or -1.
            sums: The `Traffic` of each part.
        """
        rows = np.empty(int(sums["segments"].sum()), dtype_of(PackedSegment))
        payload = np.empty(int(sums["bytes"].sum()), np.uint8)
        positions = np.empty(len(sums), dtype_of(PackPosition))
        positions["row"] = np.cumsum(sums["segments"]) - sums["segments"]
        positions["byte"] = np.cumsum(sums["bytes"]) - sums["bytes"]
        arrays = into, segments.data, *_columns(segments)
        columns = _SegmentArrays._make(arrays)
        tables = positions, rows, payload
        packed = _PackedArrays._make(tables)
        state = np.array((self._count, 0), dtype_of(PackState))
        while True:
            pairs = self.rows, self._slots, SECRET
            _pack(columns, _PairArrays._make(pairs), packed, state)
            self._count = int(state["pairs"])
            if int(state["segment"]) == len(into):
                return rows, payload
            self._grow()

    def _grow(self) -> None:
        rows = np.zeros(2 * len(self.rows), dtype_of(EndpointPair))
        rows[: self._count] = self.rows
        self._slots = np.zeros(2 * len(self._slots), np.int64)
        self.rows = rows
        _rehash(rows, self._slots, SECRET, self._count)


@Kernel
def _rehash(ends: Rows[EndpointPair], slots: I64, secret: I64, count: int) -> None:
    """Fill empty slots."""
    last = len(slots) - 1
    for row in range(count):
        each = ends[row]
        slot = last & hash_endpoints(
            secret,
            each.network,
            each.source[0],
            each.source[1],
            each.source_port,
            each.target[0],
            each.target[1],
            each.target_port,
        )
        while slots[slot] != 0:
            slot = (slot + 1) & last
        slots[slot] = row + 1


def _columns(segments: Segments) -> tuple[Any, ...]:
    """Return the columns in the order of `_SegmentArrays`."""
    addresses = (
        np.ascontiguousarray(column).view(np.int64) for column in (segments.source, segments.target)
    )
    source, target = addresses
    columns = (
        segments.packet,
        segments.time_ns,
        segments.network,
        source,
        target,
        segments.source_port,
        segments.target_port,
        segments.seq,
        segments.ack,
        segments.flags,
        segments.start,
        segments.length,
        segments.captured,
        segments.clock_ns,
    )
    return tuple(np.ascontiguousarray(column) for column in columns)
