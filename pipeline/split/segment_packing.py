"""The kernel that packs segments into rows for shards."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dissector.capture.columns import Bytes, Int64s, Segments
from dissector.capture.hashing import SECRET, hash_endpoints
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I32, I64, U8, I64Table
from dissector.kernel.memcpy import copy_bytes

NETWORK, SOURCE_PORT, TARGET_PORT, SOURCE, TARGET = 0, 1, 2, 3, 5
"""Columns of the table of endpoint pairs: network, ports and addresses (high and low, signed)."""

ENDPOINT_COLUMNS = 7

PACKET, TIME, FLAGS, SEQ, ACK, LENGTHS, CLOCK = range(7)
"""
Columns of rows, a row for each segment.

FLAGS also holds the number of the endpoint pair, 8 bits higher; LENGTHS is the length on the wire,
32 bits higher, and the captured length.
"""

ROW_COLUMNS = 7


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

    ends: I64Table
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

    positions: I64Table
    rows: I64Table
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
        number: int = slots[slot] - 1
        if (
            ends[number, SOURCE + 1] == low
            and ends[number, TARGET + 1] == to_low
            and ends[number, SOURCE_PORT] == source_port
            and ends[number, TARGET_PORT] == target_port
            and ends[number, NETWORK] == network
            and ends[number, SOURCE] == high
            and ends[number, TARGET] == to_high
        ):
            return number
        slot = (slot + 1) & last
    slots[slot] = count + 1
    ends[count, NETWORK] = network
    ends[count, SOURCE_PORT], ends[count, TARGET_PORT] = source_port, target_port
    ends[count, SOURCE], ends[count, SOURCE + 1] = high, low
    ends[count, TARGET], ends[count, TARGET + 1] = to_high, to_low
    return count


@Kernel
def _pack(segments: _SegmentArrays, pairs: _PairArrays, packed: _PackedArrays, state: I64) -> int:
    """
    Append a row and the payload of each segment to those of its part.

    Args:
        segments: The segments.
        pairs: The endpoint pairs.
        packed: Receives the rows.
        state: The number of pairs, and the segment to begin with.

    Returns:
        The first segment with an endpoint pair that does not fit, or the number of segments.
    """
    positions, rows, captured = packed.positions, packed.rows, segments.captured
    count = state[0]
    i: int = state[1]
    while i < len(segments.into) and count < len(pairs.ends):
        part = segments.into[i]
        if part >= 0:
            pair = _endpoints_of(pairs, count, segments, i)
            if pair == count:
                count += 1
            row = positions[part, 0]
            rows[row, PACKET] = segments.packet[i]
            rows[row, TIME] = segments.time_ns[i]
            rows[row, FLAGS] = pair * 256 + segments.flags[i]
            rows[row, SEQ] = segments.seq[i]
            rows[row, ACK] = segments.ack[i]
            rows[row, LENGTHS] = segments.length[i] * 0x100000000 + captured[i]
            rows[row, CLOCK] = segments.clock_ns[i]
            positions[part, 0] += 1
            if captured[i] > 0:
                at = positions[part, 1]
                copy_bytes(packed.payload, at, segments.data, segments.start[i], captured[i])
                positions[part, 1] += captured[i]
        i += 1
    state[0], state[1] = count, i
    return i


class EndpointTable:
    """
    Endpoint pairs of segments, each once, by number.

    Attributes:
        rows: The table, with free rows.
    """

    def __init__(self) -> None:
        self.rows: Int64s = np.zeros((256, ENDPOINT_COLUMNS), np.int64)
        self._slots = np.zeros(1024, np.int64)
        self._count = 0

    def pack(self, segments: Segments, into: Int64s, sums: Int64s) -> tuple[Int64s, Bytes]:
        """
        Return the rows and payloads of segments with a part, ordered by part.

        Args:
            segments: The segments.
            into: The part of each, or -1.
            sums: Number of segments and bytes of each part.
        """
        total = sums.sum(axis=0)
        rows = np.empty((int(total[0]), ROW_COLUMNS), np.int64)
        payload = np.empty(int(total[1]), np.uint8)
        positions = np.ascontiguousarray(np.cumsum(sums, axis=0) - sums)
        arrays = into, segments.data, *_columns(segments)
        columns = _SegmentArrays._make(arrays)
        tables = positions, rows, payload
        packed = _PackedArrays._make(tables)
        state = np.array([self._count, 0], np.int64)
        while True:
            pairs = self.rows, self._slots, SECRET
            at: int = _pack(columns, _PairArrays._make(pairs), packed, state)
            self._count = int(state[0])
            if at == len(into):
                return rows, payload
            self._grow()

    def _grow(self) -> None:
        rows = np.zeros((2 * len(self.rows), ENDPOINT_COLUMNS), np.int64)
        rows[: self._count] = self.rows
        self._slots = np.zeros(2 * len(self._slots), np.int64)
        self.rows = rows
        _rehash(rows, self._slots, SECRET, self._count)


@Kernel
def _rehash(ends: I64Table, slots: I64, secret: I64, count: int) -> None:
    """Fill empty slots."""
    last = len(slots) - 1
    for row in range(count):
        slot = last & hash_endpoints(
            secret,
            ends[row, NETWORK],
            ends[row, SOURCE],
            ends[row, SOURCE + 1],
            ends[row, SOURCE_PORT],
            ends[row, TARGET],
            ends[row, TARGET + 1],
            ends[row, TARGET_PORT],
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
