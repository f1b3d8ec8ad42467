"""
The columns that the stages of reading a capture pass on.

files -> `Packets` -> layers -> `Segments` -> tcp -> `Chunks`. An instance holds one window of the
capture. Columns are numpy arrays of one length, with a row per packet, segment or chunk; no stage
passes on a Python object per row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dissector.errors import Problem

AnyNumber = TypeVar("AnyNumber", bound=np.generic)

Bytes: TypeAlias = NDArray[np.uint8]
Int8s: TypeAlias = NDArray[np.int8]
Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]
UInt64s: TypeAlias = NDArray[np.uint64]

DATA = 0
GAP = 1
END = 2

IN_WINDOW = 0
IN_CARRY_OVER = 1

FIN, SYN, RST, ACK = 1, 2, 4, 16
"""Flags of a TCP header."""

SEQ_MASK = (1 << 32) - 1
"""Sequence numbers have 32 bits."""

CLOSED_WINDOW = 256
"""A flag of `Segments`, above those of the header: the announced window is zero."""

NO_HEADER = 512
"""Another one: there was no header, and the numbers are made up."""

FLAG_BITS = 10
"""The number of bits of these flags and the header's together."""

NEVER = 2**63 - 1
"""Packet number beyond all others: the barrier of a side without waiting data."""

NO_BARRIER = (NEVER, NEVER)
"""The barriers of a connection without waiting data."""


SEVERAL = -1
"""Index of the path of a window with packets of several files, merged by time."""


@dataclass(slots=True, eq=False, repr=False)
class Packets:
    """
    The packets of one window, a row each, in the order of the capture.

    Attributes:
        data: The bytes of the window; packet `i` is `data[start[i] : start[i] + captured[i]]`.
        first: Number of the first packet, from 0, counted over all files of the capture.
        time_ns: Capture time, ns since the epoch.
        start: Offset of the first byte in `data`.
        captured: Number of bytes that were captured.
        original: Length on the wire, bytes.
        link: The LINKTYPE_ value. Source: https://www.tcpdump.org/linktypes.html
        file: Index of the packet's path, in the order in which the paths were given.
        problems: Damage found in the files while this window was read: the file's name, and the
            error with its position in the (decompressed) file.
        path_index: Index of the path of the window, which may have no packets; or SEVERAL.
        base: Offset of `data` in the (decompressed) file; of SEVERAL, see `bases`.
        is_live: Whether the packets come from a pipe, which may deliver more at any time.
        file_bytes: Bytes read so far of all files, as stored (compressed or not).
        tls_secrets: TLS key logs in the files; no output shows their secrets.
        spans: The undamaged parts of `data`: begin, end, and whether they are pcapng.
        break_position: The first byte of the (decompressed) file in the window that is damaged, or
            begins the header of another file in it; None without one.
        bases: Of SEVERAL, for each packet what `base` is for others.
    """

    data: Bytes
    first: int
    time_ns: Int64s
    start: Int64s
    captured: Int64s
    original: Int64s
    link: Int32s
    file: Int32s
    problems: list[tuple[str, Problem]] = field(default_factory=list)
    path_index: int = 0
    base: int = 0
    is_live: bool = False
    file_bytes: int = 0
    tls_secrets: list[bytes] = field(default_factory=list, repr=False)
    spans: list[tuple[int, int, bool]] = field(default_factory=list)
    break_position: int | None = None
    bases: Int64s | None = None

    def __len__(self) -> int:
        return len(self.start)

    def position(self, row: int) -> int:
        """Return the offset of a packet's first byte in its (decompressed) file."""
        base = self.base if self.bases is None else int(self.bases[row])
        return base + int(self.start[row])


@dataclass(slots=True, eq=False, repr=False)
class Segments:
    """
    The TCP segments of one window, a row each, in packet order.

    Attributes:
        data: The bytes of the window, followed by reassembled datagrams.
        packet: Number of the packet in the capture (of the last fragment, where there are several).
        time_ns: Capture time of that packet.
        network: Index into `Layers.networks`.
        source: Address as [high, low] 64 bits of an IPv6 address; IPv4 as `::ffff:a.b.c.d`.
        target: In the same form.
        source_port: 0 to 65535.
        target_port: 0 to 65535.
        seq: The sequence number as sent, 32 bits.
        ack: The acknowledgement number as sent, 32 bits; valid if flag ACK is set.
        flags: The TCP flags, FIN lowest, 8 bits; and above, CLOSED_WINDOW and NO_HEADER.
        start: Offset of the payload in `data`.
        length: Length of the payload on the wire, from the length in the IP header.
        captured: Bytes of payload that were captured, at most `length`.
        clock_ns: The latest time of all segments of the capture up to this one.
        is_live: As in `Packets`.
    """

    data: Bytes
    packet: Int64s
    time_ns: Int64s
    network: Int32s
    source: UInt64s
    target: UInt64s
    source_port: Int32s
    target_port: Int32s
    seq: Int64s
    ack: Int64s
    flags: Int32s
    start: Int64s
    length: Int64s
    captured: Int64s
    clock_ns: Int64s
    is_live: bool = False

    def __len__(self) -> int:
        return len(self.packet)


@dataclass(slots=True, eq=False, repr=False)
class Chunks:
    """
    Stream bytes in order, gaps and ends, one row each, in the order of their release.

    The rows of one stream are its bytes in order, without overlap: each DATA or GAP row starts at
    the end of the previous one. The rows never depend on where the windows of the capture are cut.

    A stream with a hole waits while the other stream of its connection continues. The correlator of
    the two needs them in the order of the capture, so each row has reordering barriers: bytes of
    side `s` that were completed by packets `< barrier[1 - s]` of the connection's newest row can't
    be preceded by anything still to come. A DATA row of length 0 only raises a barrier.

    Attributes:
        data: The bytes of the window.
        carry_over: Bytes kept from earlier windows.
        connection: Number of the connection: index into `Streams.connections`.
        side: 0 for sent by endpoint `a`, 1 for sent by `b`; of END, the side that caused it.
        kind: DATA, GAP (bytes that were sent and not captured) or END (the connection was closed or
            reset; stray bytes may still follow).
        origin: The array that holds the bytes: IN_WINDOW or IN_CARRY_OVER.
        start: Their offset there; of GAP, the time of the data before it in its stream (0: none);
            0 for END.
        length: Number of bytes; of GAP, the number of missing bytes; 0 for END.
        packet: The packet that carried the bytes, or revealed a gap.
        time_ns: Capture time of that packet.
        release: The packet that released this row by its arrival; never decreases.
        rtt_ns: From the place of the capture to the sender and back, as known at this row: the
            least time of late; -1: unknown.
        resent_ns: When the other side last sent bytes again; lower than all times: it has not.
        barrier: [n, 2] for side 0 and 1: after this row, the lowest number of packets of that side
            with bytes waiting after a hole; NEVER if none do.
    """

    data: Bytes
    carry_over: Bytes
    connection: Int64s
    side: Int8s
    kind: Int8s
    origin: Int8s
    start: Int64s
    length: Int64s
    packet: Int64s
    time_ns: Int64s
    release: Int64s
    rtt_ns: Int64s
    resent_ns: Int64s
    barrier: Int64s

    def __len__(self) -> int:
        return len(self.connection)

    def pieces(self, without: Collection[int] = ()) -> Iterator[tuple[int, int, bytes | None, int]]:
        """
        Yield connection, side, bytes and their number of each row; None for those of a gap.

        Args:
            without: Connections whose rows are left out.
        """
        arrays = self.data.data, self.carry_over.data
        names = "connection", "side", "kind", "origin", "start", "length"
        left_out = np.fromiter(without, np.int64, len(without))
        rows = np.flatnonzero(~np.isin(self.connection, left_out))
        columns = (getattr(self, name)[rows].tolist() for name in names)
        for connection, side, kind, origin, start, length in zip(*columns, strict=True):
            if kind == DATA:
                yield connection, side, arrays[origin][start : start + length].tobytes(), length
            elif kind == GAP:
                yield connection, side, None, length


def unique(numbers: NDArray[AnyNumber]) -> NDArray[AnyNumber]:
    """Return the distinct numbers in order, as `np.unique`, which imports numpy.ma (20 ms)."""
    ordered = np.sort(numbers, axis=None)
    is_new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]
