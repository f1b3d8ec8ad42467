"""The state of all TCP connections as rows, and the columns that the kernels read and write."""

from __future__ import annotations

from typing import NamedTuple

from dissector.capture.tcp.waiting_rows import DeadlineRow, Ring, RunRow, WaitingSegment, WaitRow
from dissector.kernel import device_function
from dissector.kernel.arrays import I8, I32, I64, U8, I64Table
from dissector.kernel.named_rows import NamedRow, Rows, Two

NONE = -(1 << 62)
"""Instead of a sequence number: there is none."""

GAPS_REMEMBERED = 64
"""How many gaps a stream remembers."""


class EndRow(NamedRow):
    """
    An endpoint.

    Attributes:
        high: The high 64 bits of its address, signed.
        low: The low 64 bits, signed.
        port: Its port.
    """

    high: int
    low: int
    port: int


class SegmentRow(NamedRow):
    """
    The segment that is being processed: a row of `Segments`.

    Attributes:
        ends: Its source and its target.
        network: As in `Segments`, and so on.
        packet: Its packet.
        time_ns: Capture time of that packet.
        clock_ns: The highest time of all packets so far.
        seq: Its sequence number.
        ack: Its acknowledgement number.
        flags: FIN, SYN, RST and ACK, CLOSED_WINDOW and NO_HEADER.
        start: Offset of its payload in the window.
        length: Length of its payload.
        captured: Number of captured bytes of it.
    """

    ends: Two[EndRow]
    network: int
    packet: int
    time_ns: int
    clock_ns: int
    seq: int
    ack: int
    flags: int
    start: int
    length: int
    captured: int


class StreamRow(NamedRow):
    """
    The data that one side of a connection sends; sequence numbers are unwrapped beyond 2^32.

    Attributes:
        next: The next byte to release; `NONE` while the begin is not known.
        first: The first byte: right after the SYN, if `has_isn`; `NONE` as `next`.
        acked: The other side's last acknowledgement number; `NONE` without any.
        first_acked: The first one.
        acked_ns: The time of that acknowledgement.
        acked_packet: Its packet.
        packets: As in `Side`.
        bytes: As in `Side`.
        data_ns: The time of the newest released data.
        resent: Number of retransmitted segments since that acknowledgement.
        has_isn: Whether its initial sequence number is known.
        fin: The sequence number of its FIN; `NONE` if that was not captured.
        fin_packet: The packet of the FIN.
        fin_ns: The time of that packet.
        finished: Whether all bytes before the FIN were released.
        losses: The row of its loss counters, which few streams need; 0: none.
        timed: The number whose acknowledgement ends a measurement of the RTT; `NONE`: none is under
            way.
        timed_ns: When the bytes before it were sent.
        handshake_ns: The RTT of its SYN; -1: unknown.
        srtt_ns: The smoothed RTT of its bytes; -1: unknown.
        least_ns: The least of its RTTs of late, from the capture to the other side; -1:
            unknown.
        least_at: When that was measured, in units of 2^20 ns.
        resent_ns: When it last sent bytes again; `NONE`: never.
        closed_ns: Since when the side announces a window of zero; `NONE`: it does not.
        first_bytes: Its first bytes, see `COUNT_AT`.
    """

    next: int
    first: int
    acked: int
    first_acked: int
    acked_ns: int
    acked_packet: int
    packets: int
    bytes: int
    data_ns: int
    resent: int
    has_isn: bool
    fin: int
    fin_packet: int
    fin_ns: int
    finished: bool
    losses: int
    timed: int
    timed_ns: int
    handshake_ns: int
    srtt_ns: int
    least_ns: int
    least_at: int
    resent_ns: int
    closed_ns: int
    first_bytes: int


class ConnectionRow(NamedRow):
    """
    A connection.

    Attributes:
        ends: The endpoints of sides 0 and 1.
        network: Index into `Layers.networks`.
        first_packet: Its first packet.
        first_ns: The time of that packet.
        last_ns: The highest time of its packets.
        ended: How it ended, an index into `END_REASONS`.
        oriented: Whether a handshake showed its opener.
        syn_seen: Whether its SYN or SYN/ACK was seen.
        is_checked: Whether `StateArrays.checks` has it.
        woken: How often it was packed while it was open, as it was silent, and then had a row
            again.
        waits: The row of what waits in it: data, a FIN, or a barrier; 0 if nothing does.
        streams: What the two sides send.
    """

    ends: Two[EndRow]
    network: int
    first_packet: int
    first_ns: int
    last_ns: int
    ended: int
    oriented: bool
    syn_seen: bool
    is_checked: bool
    woken: int
    waits: int
    streams: Two[StreamRow]


class LossRow(NamedRow):
    """
    Counters of what a stream lost, repeated or held up, named as in `Side`, and its newest gaps.

    Attributes:
        retransmitted_segments: As in `Side`.
        retransmitted_bytes: As in `Side`.
        gaps: As in `Side`.
        gap_bytes: As in `Side`.
        cut_bytes: As in `Side`.
        late_bytes: As in `Side`.
        zero_window_ns: How long the side announced a window of zero, until it last opened it.
        unacked_gap_bytes: Bytes of gaps that were not acknowledged when these were emitted.
        unacked_end: The number after them.
        newest_gap: The row of the newest gap that it remembers; 0: none.
        remembered: Number of gaps that it remembers, at most `GAPS_REMEMBERED`.
    """

    retransmitted_segments: int
    retransmitted_bytes: int
    gaps: int
    gap_bytes: int
    cut_bytes: int
    late_bytes: int
    zero_window_ns: int
    unacked_gap_bytes: int
    unacked_end: int
    newest_gap: int
    remembered: int


class OwnedFlows(NamedRow):
    """
    The flows that a connection at rest owns.

    Attributes:
        sides: The sides that send those in its network, as bits.
        joined: One more than the other network in which it owns a flow; 0: none.
        joined_side: The side that sends there.
    """

    sides: int
    joined: int
    joined_side: int


class RestingRow(NamedRow):
    """
    A connection in which nothing may happen but by another segment of its flows.

    Attributes:
        connection: Its row; the rows of losses in it are not meant.
        losses: The loss counters of its streams; the rows of gaps in them are not meant.
        flows: Its flows.
    """

    connection: ConnectionRow
    losses: Two[LossRow]
    flows: OwnedFlows


class GapRow(NamedRow):
    """
    A gap that a stream remembers.

    Attributes:
        start: Its first sequence number.
        end: The sequence number after it.
        following: The next newer gap of the stream; of the newest, the oldest. Of a free row, the
            next free one; 0: none.
    """

    start: int
    end: int
    following: int


class Counts(NamedRow):
    """
    Counters and limits.

    The first rows of waits, runs, waiting segments, gaps and loss counters are never used, so that
    0 means none.

    Attributes:
        packet: The packet that is being processed.
        rows: Rows of `Chunks` that are written.
        needed_rows: Rows of `Chunks` that the kernel needs to go on.
        needed_segments: Rows of waiting segments that it needs.
        needed_bytes: Bytes of the carry-over buffer that it needs.
        connections: Number of connections, without those at rest.
        flows: Number of their flows.
        carried_bytes: Bytes in the carry-over buffer of `Chunks`.
        waiting_carried_bytes: Bytes of waiting segments of earlier windows.
        free_wait: The first free row of waits; 0: none.
        waits_used: Rows of waits that are, or have been, used.
        free_run: The first free row of runs; 0: none.
        runs_used: Rows of runs that are, or have been, used.
        free_segment: The first free row of waiting segments; 0: none.
        segments_used: Rows of waiting segments that are, or have been, used.
        segments_live: Number of waiting segments.
        total_bytes: Bytes that wait on all connections together.
        forced_gaps: Number of holes that became gaps early, because of the limit.
        loss_rows: Number of rows of loss counters.
        free_gap: The first free row of gaps; 0: none.
        gap_rows: Rows of gaps that are, or have been, used.
        max_total_bytes: The limit of `total_bytes`.
        rings: The use of `StateArrays.deadlines`, and of `StateArrays.checks`.
    """

    packet: int
    rows: int
    needed_rows: int
    needed_segments: int
    needed_bytes: int
    connections: int
    flows: int
    carried_bytes: int
    waiting_carried_bytes: int
    free_wait: int
    waits_used: int
    free_run: int
    runs_used: int
    free_segment: int
    segments_used: int
    segments_live: int
    total_bytes: int
    forced_gaps: int
    loss_rows: int
    free_gap: int
    gap_rows: int
    max_total_bytes: int
    rings: Two[Ring]


class SegmentArrays(NamedTuple):
    """The columns of `Segments` that matter; addresses are signed."""

    network: I32
    source: I64Table
    source_port: I32
    target: I64Table
    target_port: I32
    packet: I64
    time_ns: I64
    clock_ns: I64
    seq: I64
    ack: I64
    flags: I32
    start: I64
    length: I64
    captured: I64


class FlowArrays(NamedTuple):
    """
    The hash table of flows, see `FlowTable`.

    Attributes:
        owner: Twice the number of each flow's connection, plus the side that sends.
        network: The network of each flow.
        slots: A flow's number plus one at the slot of its hash or the next free one; 0 if free.
        secret: The secret of the hash.
    """

    owner: I32
    network: I32
    slots: I32
    secret: I64


class StateArrays(NamedTuple):
    """
    The state of all connections.

    Attributes:
        connections: All but those at rest.
        losses: Loss counters of streams.
        gaps: Recent gaps of streams.
        waits: What waits in connections.
        runs: The runs of waiting segments.
        waiting: The waiting segments.
        deadlines: `WAIT_NS` after each segment of a connection in which something waits, by time.
        checks: The next checks of connections without acknowledgements in which something waits,
            by time: one for each.
        carried: Bytes of segments of earlier windows.
        secret: The secret of hashes.
        segment: The segment that is being processed.
        counts: The counters of all.
    """

    connections: Rows[ConnectionRow]
    losses: Rows[LossRow]
    gaps: Rows[GapRow]
    waits: Rows[WaitRow]
    runs: Rows[RunRow]
    waiting: Rows[WaitingSegment]
    deadlines: Rows[DeadlineRow]
    checks: Rows[DeadlineRow]
    carried: U8
    secret: I64
    segment: SegmentRow
    counts: Counts


class ChunkArrays(NamedTuple):
    """The columns of `Chunks` that are written; there is room for more rows, and more bytes."""

    connection: I64
    start: I64
    length: I64
    packet: I64
    time_ns: I64
    release: I64
    rtt_ns: I64
    resent_ns: I64
    side: I8
    kind: I8
    origin: I8
    barrier: I64Table
    carry_over: U8


@device_function
def clear_stream(stream: StreamRow) -> None:
    """Initialise the row of a stream."""
    stream.next = stream.first = stream.acked = stream.first_acked = stream.fin = NONE
    stream.acked_ns = stream.acked_packet = stream.packets = stream.bytes = 0
    stream.fin_ns = stream.fin_packet = 0
    stream.data_ns = stream.resent = stream.losses = stream.first_bytes = 0
    stream.has_isn = stream.finished = False
    stream.timed = stream.closed_ns = stream.resent_ns = NONE
    stream.timed_ns = stream.least_at = 0
    stream.handshake_ns = stream.srtt_ns = stream.least_ns = -1
