"""The arrays that the kernels of TCP read and write, in groups."""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel.arrays import I32, I64, U8, I8Table, I32Table, I64Table


class SegmentArrays(NamedTuple):
    """The columns of `Segments` that matter; addresses are signed."""

    network: I32
    source: I64Table
    source_port: I32
    target: I64Table
    target_port: I32
    packet: I64
    time_ns: I64
    seq: I64
    ack: I64
    flags: I32
    start: I64
    length: I64
    captured: I64


class FlowArrays(NamedTuple):
    """The hash table of flows, see `flow_table`, and the secret of its hash."""

    rows: I32Table
    slots: I32
    secret: I64


class StateArrays(NamedTuple):
    """
    The state of all connections.

    Attributes:
        connections: See `connection_columns`.
        losses: Loss counters, one per stream.
        gaps: Recent gaps of streams.
        waits: Waiting data of each connection, see `waiting_columns`.
        waiting: The waiting segments, see `waiting_columns`.
        carried: Bytes of segments of earlier windows.
        counts: Counters, see `waiting_columns`.
    """

    connections: I64Table
    losses: I64Table
    gaps: I64Table
    waits: I64Table
    waiting: I64Table
    carried: U8
    counts: I64


class ChunkArrays(NamedTuple):
    """The columns of `Chunks` that are written, see `chunk_columns`, and its carry-over buffer."""

    wide: I64Table
    narrow: I8Table
    barrier: I64Table
    carry_over: U8
