"""TCP connections as results: their endpoints, times, counters and ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.capture.addresses import endpoint_text
from dissector.capture.columns import Int8s, Int64s, UInt64s

Endpoint: TypeAlias = tuple[int, int, int]
"""Address, high and low 64 bits, and port."""

END_REASONS = ("", "fin", "rst", "reused")
"""How a connection may have ended; empty if it has not."""


@dataclass(slots=True)
class Side:
    """
    The data of one side of a connection.

    Attributes:
        packets: Number of its segments, including those without payload.
        bytes: Payload delivered, each byte once.
        retransmitted_segments: Segments with repeated bytes.
        retransmitted_bytes: Number of such bytes.
        gaps: Number of places where bytes were sent that are not in the capture.
        gap_bytes: Number of such bytes.
        cut_bytes: Bytes that the capture cut off their packets (its snapshot length).
        late_bytes: Bytes that came after their place was emitted as a gap, or lay before the first
            byte emitted.
        acked_not_captured: Bytes in no captured packet that the other side acknowledged.
        zero_window_ns: How long it announced a window of zero.
        handshake_ns: RTT of its SYN, from the place of the capture to the other side and back; None
            where it was not measured.
        srtt_ns: Smoothed RTT of its bytes, likewise.
    """

    packets: int = 0
    bytes: int = 0
    retransmitted_segments: int = 0
    retransmitted_bytes: int = 0
    gaps: int = 0
    gap_bytes: int = 0
    cut_bytes: int = 0
    late_bytes: int = 0
    acked_not_captured: int = 0
    zero_window_ns: int = 0
    handshake_ns: int | None = None
    srtt_ns: int | None = None


@dataclass(slots=True)
class Connection:
    """
    One TCP connection: two endpoints in a network, from its first packet to its end.

    Attributes:
        id: Its number, from 0 by first packet.
        network: Index into `Layers.networks`.
        a: The endpoint that opened it, as far as the handshake shows, else the first to send.
        b: The other endpoint.
        first_ns: Capture time of its first packet.
        last_ns: Capture time of its last packet.
        sides: Data sent by `a`, and by `b`.
        syn_seen: Whether its opening SYN or SYN/ACK is in the capture.
        ended: `fin`, `rst`, `reused` (the ports were reused for another connection) or empty.
    """

    id: int
    network: int
    a: Endpoint
    b: Endpoint
    first_ns: int
    last_ns: int
    sides: tuple[Side, Side]
    syn_seen: bool
    ended: str

    @property
    def rtt_ns(self) -> int | None:
        """The RTT of the handshake: from the SYN to the acknowledgement of the SYN/ACK."""
        first, second = (side.handshake_ns for side in self.sides)
        return None if first is None or second is None else first + second

    @property
    def a_text(self) -> str:
        """Endpoint `a` as text: `10.0.0.1:50000`."""
        return endpoint_text(*self.a)

    @property
    def b_text(self) -> str:
        """Endpoint `b` as text."""
        return endpoint_text(*self.b)


@dataclass(slots=True)
class ConnectionColumns:
    """
    Many connections, a row each; the columns have the meaning of the attributes of `Connection`.

    Attributes:
        number: `Connection.id`.
        network: Index into `Layers.networks`.
        address: [n, 2, 2] for `a` and `b`: high and low 64 bits.
        port: [n, 2] for `a` and `b`.
        first_ns: Capture time of the first packet.
        last_ns: Capture time of the last packet.
        syn_seen: Whether the opening SYN or SYN/ACK is in the capture.
        both_syns: Whether the SYNs of both sides are known: no earlier data exists.
        ended: Index into `END_REASONS`.
        missing_side: The side without a packet whose data the other acknowledged meanwhile; -1.
        packets: [n, 2] as in `Side`.
        bytes: [n, 2] as in `Side`.
    """

    number: Int64s
    network: Int64s
    address: UInt64s
    port: Int64s
    first_ns: Int64s
    last_ns: Int64s
    syn_seen: NDArray[np.bool_]
    both_syns: NDArray[np.bool_]
    ended: Int8s
    missing_side: Int8s
    packets: Int64s
    bytes: Int64s

    def __len__(self) -> int:
        return len(self.number)


@dataclass(slots=True)
class Deliveries:
    """
    How far the data of connections was delivered; each column is [n, 2] for `a` and `b`.

    Attributes:
        sent: Bytes sent by the side, with missing ones and a FIN.
        acked: How many of them the other side has acknowledged; -1 if no acknowledgement, or not
            the begin of the stream, is in the capture.
        resent: Segments retransmitted since the newest acknowledgement.
    """

    sent: Int64s
    acked: Int64s
    resent: Int64s
