"""The second stage of reading a capture: packets to TCP segments."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dissector.capture.columns import Bytes, Int32s, Int64s, Packets, Segments
from dissector.capture.formats.window_buffers import BufferPool
from dissector.capture.hashing import SECRET
from dissector.capture.packets import header_kernel
from dissector.capture.packets.cursor import (
    INCOMPLETE_FRAGMENT,
    MALFORMED,
    Cursor,
    PacketSkipped,
)
from dissector.capture.packets.decode_as import tunnel_ports
from dissector.capture.packets.exported_pdus import PduNumbers
from dissector.capture.packets.header_kernel import compact_rows, read_headers, read_tcp_header
from dissector.capture.packets.link_layers import LINK_TABLE, link_name
from dissector.capture.packets.networks import Networks, vlan_name
from dissector.capture.packets.segment_columns import DeferredPacket, SegmentTable
from dissector.capture.packets.skip_reasons import CODES, LINK_UNREAD, REASONS
from dissector.kernel.named_rows import RowArray, dtype_of

if TYPE_CHECKING:
    from dissector.capture.packets.tunnels import Tunnels


class Layers:
    """
    Finds the TCP segments in packets, through link layers, tags, tunnels and IP.

    A kernel reads the common headers of a window's packets; the others are read packet by packet
    (`Tunnels`). Lengths come from the IP headers, independent of the frame's length. Checksums are
    never verified: a host that offloads them to its network card captures wrong ones.

    If only one direction of a connection is tagged with a VLAN, its directions are in two networks,
    and so in two connections.

    Attributes:
        networks: Names of the networks so far: `vlan 5`, `vlan 5.7`, `vni 100`, `vlan 5 vni 100`;
            the first is empty, for packets in none.
        passed_over: Number of packets without a segment, by reason.
        unread_links: Number of packets of each link type that is not read.
        clock_ns: The latest time of a segment so far.
    """

    def __init__(self, clock_ns: int = 0, decode_as: Iterable[str] = ()) -> None:
        """
        Start a capture.

        Args:
            clock_ns: The latest time of a segment before it.
            decode_as: Tunnels on other ports; see `tunnel_ports`.

        Raises:
            UsageError: A rule of these is invalid.
        """
        self.passed_over: dict[str, int] = {}
        self.unread_links: dict[int, int] = {}
        self._ports = tunnel_ports(decode_as)
        self._is_tunnel_port = np.zeros(1 << 16, np.uint8)
        self._is_tunnel_port[list(self._ports)] = 1
        self._pdus = PduNumbers()
        self.clock_ns = clock_ns
        self._networks = Networks()
        self.networks = self._networks.names
        self._buffers = BufferPool()

    @cached_property
    def _tunnels(self) -> Tunnels:
        # Most captures have no packet that needs it.
        from dissector.capture.packets.tunnels import Tunnels

        return Tunnels(self._ports)

    @property
    def _has_tunnels(self) -> bool:
        return "_tunnels" in vars(self)

    def segments(self, packets: Packets) -> Segments:
        """Return the TCP segments of the next window of the capture."""
        table = _SegmentTable(self._buffers, len(packets))
        self._read_headers(packets, table)
        data = packets.data
        if table.deferred_count:
            reassembled = self._read_deferred(packets, table)
            if reassembled:
                data = np.concatenate([data, np.frombuffer(reassembled, dtype=np.uint8)])
        segments = table.segments(data)
        self._pdus.number(segments)
        return self.with_clock(segments)

    def with_clock(self, segments: Segments) -> Segments:
        """Set `clock_ns` of the next window's segments, and return these."""
        if len(segments):
            clock = segments.clock_ns = np.maximum.accumulate(segments.time_ns)
            np.maximum(clock, self.clock_ns, out=clock)
            self.clock_ns = int(clock[-1])
        return segments

    @property
    def incomplete_packets(self) -> list[int]:
        """The packets with fragments of incomplete datagrams, in order."""
        return self._tunnels.fragments.packets if self._has_tunnels else []

    @property
    def evicted(self) -> int:
        """Number of incomplete datagrams dropped for new ones."""
        return self._tunnels.fragments.evicted if self._has_tunnels else 0

    def network_number(self, name: str) -> int:
        """Return the number of a network; add it if it is new."""
        return self._networks.number_of(name)

    def finish(self) -> None:
        """Count the datagrams that are still incomplete at the end of the capture."""
        if self._has_tunnels:
            incomplete = self._tunnels.fragments.incomplete
            self._count_skipped("IP datagrams of which fragments are missing", incomplete)

    def _count_skipped(self, reason: str, number: int) -> None:
        if number:
            self.passed_over[reason] = self.passed_over.get(reason, 0) + number

    def _read_headers(self, packets: Packets, table: _SegmentTable) -> None:
        """Fill the table; networks of new VLAN tags are created on the way."""
        state = np.zeros((), dtype_of(header_kernel.HeaderState))
        arrays = header_kernel.PacketArrays
        columns = arrays._make(getattr(packets, name) for name in arrays._fields)
        unread, skipped = np.zeros(1 << 16, np.int64), np.zeros(CODES, np.int64)
        encapsulations = LINK_TABLE, self._is_tunnel_port, unread, skipped
        known = header_kernel.Encapsulations._make(encapsulations)
        while True:
            networks = self._networks.by_tags
            read_headers(columns, packets.first, known, networks, SECRET, table.columns, state)
            if not state["new_tags"]:
                break
            self._networks.add_tags(int(state["new_tags"]))
        table.rows, table.deferred_count = int(state["rows"]), int(state["deferred"])
        for code, reason in REASONS.items():
            self._count_skipped(reason, int(skipped[-code]))
        if skipped[-LINK_UNREAD]:
            self._count_unread(unread)

    def _count_unread(self, unread: Int64s) -> None:
        for link in np.flatnonzero(unread).tolist():
            count = int(unread[link])
            self.unread_links[link] = self.unread_links.get(link, 0) + count
            self._count_skipped(f"link type {link_name(link)} is not read", count)

    def _read_deferred(self, packets: Packets, table: _SegmentTable) -> bytearray:
        """
        Read the deferred packets one by one, in order, because fragments span packets.

        Returns:
            The bytes of reassembled datagrams, to append to the window's.
        """
        data = packets.data.data
        reassembled = bytearray()
        abandoned_before = self._tunnels.fragments.abandoned
        for packet, row, at, kind, tags in table.deferred():
            start = int(packets.start[packet])
            end = start + int(packets.captured[packet])
            sent_end = start + int(packets.original[packet]) if packets.original[packet] else end
            time_ns = int(packets.time_ns[packet])
            bounds = at, min(end, sent_end), sent_end
            number = packets.first + packet
            cursor = Cursor(data, *bounds, vlan_name(tags), time_ns, number)
            try:
                self._tunnels.find_tcp(cursor, kind)
                table.fill_row(row, cursor)
            except PacketSkipped as reason:
                table.drop_row(row)
                if str(reason) != INCOMPLETE_FRAGMENT:
                    self._count_skipped(str(reason), 1)
                continue
            if cursor.is_reassembled:
                table.columns.start[row] += len(data) + len(reassembled)
                reassembled += cursor.data
            table.columns.packet[row] = number
            table.columns.time_ns[row] = time_ns
            table.columns.network[row] = self._networks.number_of(cursor.network)
        table.compact()
        abandoned = self._tunnels.fragments.abandoned - abandoned_before
        self._count_skipped("IP datagrams of which fragments are missing", abandoned)
        return reassembled


class _SegmentTable:
    """
    The columns of `Segments` during filling.

    Attributes:
        columns: The columns, as kernels take them.
        rows: Number of filled rows.
        deferred_count: Number of packets that the kernel has deferred.
    """

    def __init__(self, buffers: BufferPool, packets: int) -> None:
        wide: Int64s = buffers.acquire("i8", _WIDE, packets)
        narrow: Int32s = buffers.acquire("i4", _NARROW, packets)
        self._addresses: Int64s = buffers.acquire("i8", 2, packets, 2)
        self._deferred: RowArray = buffers.acquire(dtype_of(DeferredPacket), packets)
        self.columns = SegmentTable._make((*wide, *narrow, self._addresses, self._deferred))
        self.rows = self.deferred_count = 0
        self._dropped: int | None = None

    def deferred(self) -> list[tuple[int, ...]]:
        """Return the deferred packets, each with a reserved row; see `DeferredPacket`."""
        deferred: list[tuple[int, ...]] = self._deferred[: self.deferred_count].tolist()
        return deferred

    @cached_property
    def _memory(self) -> SegmentTable:
        """The columns, as kernels that run as Python take them."""
        columns: Any = self.columns
        return SegmentTable._make(each.data for each in columns)

    def fill_row(self, row: int, cursor: Cursor) -> None:
        """
        Fill a row from the TCP header at the cursor.

        Raises:
            PacketSkipped: The TCP header is invalid.
        """
        bounds = cursor.at, cursor.end, cursor.sent_end
        if not read_tcp_header(cursor.data, *bounds, self._memory, row):
            raise PacketSkipped(MALFORMED)
        self._addresses.view(np.uint64)[:, row] = cursor.source, cursor.target

    def drop_row(self, row: int) -> None:
        """Mark a row for removal by `compact`."""
        self.columns.packet[row] = -1
        if self._dropped is None:
            self._dropped = row

    def compact(self) -> None:
        """Remove the marked rows."""
        if self._dropped is not None:
            self.rows = compact_rows(self.columns, self._dropped, self.rows)

    def segments(self, data: Bytes) -> Segments:
        """Return the columns of the filled rows."""
        columns: dict[str, Any] = self.columns._asdict()
        of_segments = {name: columns[name][: self.rows] for name in SegmentTable._fields[:-2]}
        source, target = self._addresses.view(np.uint64)[:, : self.rows]
        clock_ns = of_segments["time_ns"]
        return Segments(data=data, source=source, target=target, clock_ns=clock_ns, **of_segments)


_WIDE, _NARROW = 7, 4
"""Columns of 64 bits and of 32 bits of `SegmentTable`, in this order."""
