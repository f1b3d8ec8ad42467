"""Packets become TCP segments: the second stage of reading a capture."""

from __future__ import annotations

import numpy as np

from dissector.capture.columns import Bytes, Int32s, Int64s, Packets, Segments
from dissector.capture.formats.window_buffers import BufferPool
from dissector.capture.hashing import SECRET
from dissector.capture.packets import header_kernel
from dissector.capture.packets.cursor import (
    INCOMPLETE_FRAGMENT,
    MALFORMED,
    NOT_TCP,
    Cursor,
    PacketSkipped,
)
from dissector.capture.packets.header_kernel import compact_rows, read_headers, read_tcp_header
from dissector.capture.packets.networks import Networks, vlan_name
from dissector.capture.packets.tunnels import Tunnels

_STEPS_A_PACKET = 3


class Layers:
    """
    Finds the TCP segments in packets, through link layers, VLANs, tunnels and IP.

    What is common is read by one loop over the packets of a window; the rest packet by packet
    (`Tunnels`). Lengths are those of the IP headers, whatever the frame's is. Checksums are never
    looked at: a host that leaves them to its network card captures them wrong.

    Two directions of which only one is tagged with a VLAN are in two networks, and so in two
    connections.

    Attributes:
        networks: Names of the networks that were met: `vlan 5`, `vlan 5.7`, `vni 100`,
            `vlan 5 vni 100`; the first is empty, for packets in none.
        passed_over: How many packets gave no segment, by reason.
        clock_ns: The latest time of a segment so far.
    """

    def __init__(self, clock_ns: int = 0) -> None:
        self.passed_over: dict[str, int] = {}
        self.clock_ns = clock_ns
        self._networks = Networks()
        self.networks = self._networks.names
        self._tunnels = Tunnels()
        self._buffers = BufferPool()

    def segments(self, packets: Packets) -> Segments:
        """Return the TCP segments of the next window of the capture."""
        table = _Table(self._buffers, len(packets))
        self._read_headers(packets, table)
        data = packets.data
        if len(table.listed):
            joined = self._unwrap(packets, table)
            if joined:
                data = np.concatenate([data, np.frombuffer(joined, dtype=np.uint8)])
        return self.with_clock(table.segments(data))

    def with_clock(self, segments: Segments) -> Segments:
        """Let the segments of the next window know the clock."""
        if len(segments):
            clock = segments.clock_ns = np.maximum.accumulate(segments.time_ns)
            np.maximum(clock, self.clock_ns, out=clock)
            self.clock_ns = int(clock[-1])
        return segments

    @property
    def incomplete_packets(self) -> list[int]:
        """The packets of which others would make whole datagrams, in order."""
        return self._tunnels.fragments.packets

    @property
    def evicted(self) -> int:
        """How often an incomplete datagram was given up for a new one."""
        return self._tunnels.fragments.evicted

    def network_number(self, name: str) -> int:
        """Return the number of a network by its name; it may be new."""
        return self._networks.number_of(name)

    def finish(self) -> None:
        """Count what can't be completed any more: the capture has ended."""
        fragments = self._tunnels.fragments
        self._count("IP datagrams of which fragments are missing", fragments.incomplete)

    def _count(self, reason: str, number: int) -> None:
        if number:
            self.passed_over[reason] = self.passed_over.get(reason, 0) + number

    def _read_headers(self, packets: Packets, table: _Table) -> None:
        """Fill the table; VLAN tags that are new get their networks when they are met."""
        state = np.zeros(header_kernel.STATE, np.int64)
        while True:
            read_headers(
                packets.data,
                packets.first,
                packets.time_ns,
                packets.start,
                packets.captured,
                packets.original,
                packets.link,
                self._networks.by_tags,
                SECRET,
                table.wide,
                table.narrow,
                table.addresses,
                table.rare,
                state,
                work=_STEPS_A_PACKET * len(packets),
            )
            if not state[header_kernel.NEW_TAGS]:
                break
            self._networks.add_tags(int(state[header_kernel.NEW_TAGS]))
        table.rows = int(state[header_kernel.ROWS])
        table.listed = table.rare[: state[header_kernel.DEFERRED_COUNT]]
        self._count(MALFORMED, int(state[header_kernel.MALFORMED_COUNT]))
        self._count("not IP", int(state[header_kernel.NOT_IP_COUNT]))
        self._count(NOT_TCP, int(state[header_kernel.NOT_TCP_COUNT]))

    def _unwrap(self, packets: Packets, table: _Table) -> bytearray:
        """
        Take the slow way, packet by packet, in order: fragments meet across packets.

        Returns:
            The bytes of reassembled datagrams, that belong behind those of the window.
        """
        data = packets.data.data
        joined = bytearray()
        given_up = self._tunnels.fragments.abandoned
        for packet, row, at, kind, tags in table.listed.tolist():
            start = int(packets.start[packet])
            end = start + int(packets.captured[packet])
            sent_end = start + int(packets.original[packet]) if packets.original[packet] else end
            time_ns = int(packets.time_ns[packet])
            place = at, min(end, sent_end), sent_end
            number = packets.first + packet
            cursor = Cursor(data, *place, vlan_name(tags), time_ns, number)
            try:
                self._tunnels.find_tcp(cursor, kind)
                table.take(row, cursor)
            except PacketSkipped as reason:
                table.drop(row)
                if str(reason) != INCOMPLETE_FRAGMENT:
                    self._count(str(reason), 1)
                continue
            if cursor.is_reassembled:
                table.wide[header_kernel.START, row] += len(data) + len(joined)
                joined += cursor.data
            table.wide[header_kernel.PACKET, row] = number
            table.wide[header_kernel.TIME, row] = time_ns
            table.narrow[header_kernel.NETWORK, row] = self._networks.number_of(cursor.network)
        table.close_up()
        given_up = self._tunnels.fragments.abandoned - given_up
        self._count("IP datagrams of which fragments are missing", given_up)
        return joined


class _Table:
    """
    The columns of `Segments` while they are filled; see `headers`.

    Attributes:
        rows: How many are filled.
        listed: What the loop has left; a row is kept free for each.
    """

    def __init__(self, buffers: BufferPool, packets: int) -> None:
        self.wide: Int64s = buffers.acquire("i8", header_kernel.WIDE, packets)
        self.narrow: Int32s = buffers.acquire("i4", header_kernel.NARROW, packets)
        self.addresses: Int64s = buffers.acquire("i8", 2, packets, 2)
        self.rare: Int64s = buffers.acquire("i8", packets, header_kernel.RARE)
        self.rows = 0
        self.listed = self.rare[:0]
        self._dropped: int | None = None

    def take(self, row: int, cursor: Cursor) -> None:
        """
        Fill a row with the TCP header at the cursor.

        Raises:
            PassedOver: There is none.
        """
        place = cursor.at, cursor.end, cursor.sent_end
        if not read_tcp_header(cursor.data, *place, self.wide.data, self.narrow.data, row):
            raise PacketSkipped(MALFORMED)
        self.addresses.view(np.uint64)[:, row] = cursor.source, cursor.target

    def drop(self, row: int) -> None:
        """Leave a row out, once all are filled."""
        self.wide[header_kernel.PACKET, row] = -1
        if self._dropped is None:
            self._dropped = row

    def close_up(self) -> None:
        """Move the rows together where some are left out."""
        if self._dropped is not None:
            self.rows = compact_rows(
                self.wide,
                self.narrow,
                self.addresses,
                self._dropped,
                self.rows,
                work=self.rows - self._dropped,
            )

    def segments(self, data: Bytes) -> Segments:
        """Return the columns."""
        wide, narrow = self.wide[:, : self.rows], self.narrow[:, : self.rows]
        source, target = self.addresses.view(np.uint64)[:, : self.rows]
        return Segments(
            data=data,
            packet=wide[header_kernel.PACKET],
            time_ns=wide[header_kernel.TIME],
            network=narrow[header_kernel.NETWORK],
            source=source,
            target=target,
            source_port=narrow[header_kernel.SOURCE_PORT],
            target_port=narrow[header_kernel.TARGET_PORT],
            seq=wide[header_kernel.SEQ],
            ack=wide[header_kernel.ACK],
            flags=narrow[header_kernel.FLAGS],
            start=wide[header_kernel.START],
            length=wide[header_kernel.LENGTH],
            captured=wide[header_kernel.CAPTURED],
            clock_ns=wide[header_kernel.TIME],
        )
