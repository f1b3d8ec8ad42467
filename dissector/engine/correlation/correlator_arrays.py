"""The groups of arrays that the kernels of the correlator take."""

from __future__ import annotations

from typing import NamedTuple

from dissector.engine.correlation.correlator_rows import (
    ConnectionRow,
    Counts,
    Entry,
    FirstSteps,
    PacketEnd,
    Piece,
    StreamBreak,
)
from dissector.engine.tape.tape_arrays import ProgramArrays, TapeRows
from dissector.kernel.arrays import I8, I64, U8, I32Table, I64Table
from dissector.kernel.named_rows import Rows


class ApiLimits(NamedTuple):
    """
    What the kernel knows of APIs; see `known_apis`.

    Attributes:
        newest: By API key, the newest plausible version.
        before_acks: By version of Produce, the fields before the acks.
        steps: By API key and version, the programs.
    """

    newest: I64
    before_acks: I64
    steps: Rows[FirstSteps]


class FrameColumns(NamedTuple):
    """Frames of exchanges, as in `Frames`."""

    start: I64
    captured_bytes: I64
    size: I64
    packet: I64
    time_ns: I64
    offset: I64


class ExchangeColumns(NamedTuple):
    """The exchanges of a window, as in `Exchanges`."""

    connection: I64
    status: I8
    client: I8
    token: U8
    answers_acks_0: U8
    broken_off: I8
    api_key: I64
    api_version: I64
    correlation_id: I64
    server_ns: I64
    request: FrameColumns
    response: FrameColumns


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
    rtt_ns: I64
    resent_ns: I64
    barrier: I64Table


class CorrelatorState(NamedTuple):
    """
    The state of the correlator, see `StateTables`.

    Attributes:
        data: The bytes of the window.
        carry_over: Bytes of earlier windows, and held ones.
        counts: Counters and limits.
        piece: The piece that is added.
        stream_break: The break that is behind the available bytes.
        connections: By number.
        entries: Requests, ready frames, fragments, and other kept bytes.
        ends: Ends of packets of held bytes.
        buckets: The first request of each hash of connection and correlation id; -1 without one.
        secret: The key of the hash.
        exchanges: The exchanges of the window.
        emitters: Connections that have emitted their first exchange.
        doubtful: Connections that have ended in doubt.
        api_limits: What is known of APIs.
        program: Programs of messages.
        rows: No room for rows, as programs only show whether bytes fit.
        frame_head: Room for the first bytes of a fragmented frame.
        padded: Room for an unfinished request with zeros behind, and zeros.
        seen: Marks for the bytes before a response; zeros.
        suppressed: Rows of suppressed correlation ids.
        next_ring: Of an unused row of these, the next one.
    """

    data: U8
    carry_over: U8
    counts: Counts
    piece: Piece
    stream_break: StreamBreak
    connections: Rows[ConnectionRow]
    entries: Rows[Entry]
    ends: Rows[PacketEnd]
    buckets: I64
    secret: I64
    exchanges: ExchangeColumns
    emitters: I64
    doubtful: I64
    api_limits: ApiLimits
    program: ProgramArrays
    rows: TapeRows
    frame_head: U8
    padded: U8
    seen: U8
    suppressed: I32Table
    next_ring: I64
