"""The arrays that the correlator's kernel reads and writes, in groups."""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel.arrays import I8, I64, U8, I32Table, I64Table


class ChunkColumns(NamedTuple):
    """The columns of `Chunks`."""

    connection: I64
    side: I8
    kind: I8
    origin: I8
    start: I64
    length: I64
    packet: I64
    time_ns: I64
    barrier: I64Table


class CorrelatorArrays(NamedTuple):
    """
    The state of the correlator, see `state_columns` and `StateTables`.

    Attributes:
        data: The bytes of the window.
        carry_over: Bytes of earlier windows.
        counters: Counters and limits.
        connections: A row for each connection.
        entries: Requests, ready frames and fragments.
        rows: The exchanges of the window.
        copies: Copies to the carry-over buffer that are to be made.
        emitters: Connections that have emitted their first exchange.
        api_limits: See `new_api_limits`.
        frame_head: Room for the first bytes of a fragmented frame.
        suppressed: Rows of suppressed correlation ids.
    """

    data: U8
    carry_over: U8
    counters: I64
    connections: I64Table
    entries: I64Table
    rows: I64Table
    copies: I64Table
    emitters: I64
    api_limits: I64Table
    frame_head: U8
    suppressed: I32Table
