"""
Writes selected packets of captures to one pcapng file, with a section for each capture.

Blocks of pcapng are copied unchanged, with times, interfaces, comments and secrets, unless packets
are given other comments, and the file secrets. From the first packet on where captures overlap in
time, there is one section for all, with packets in time order.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import SEVERAL, Bytes, Packets, unique
from dissector.capture.formats import pcapng
from dissector.capture.formats.block_comments import block_of, with_comments, with_section_comment
from dissector.capture.formats.capture_reader import read_file_head
from dissector.capture.formats.inputs import Inputs
from dissector.capture.formats.packet_copy_kernel import (
    ENHANCED_EXTRA_BYTES,
    CopyState,
    Keep,
    PacketTable,
    copy_blocks,
    write_packets,
)
from dissector.capture.formats.packet_rows import MAX_RECORD_BYTES
from dissector.capture.formats.pcap import file_header
from dissector.capture.formats.pcapng import Interface, read_interface
from dissector.kernel.named_rows import dtype_of, row_of

_STATISTICS, _CUSTOM_NOT_COPIED = 5, 0x40000BAD
_LEFT_OUT = (_STATISTICS, _CUSTOM_NOT_COPIED)
"""Blocks that do not apply to a part of the packets, or must not be copied."""
_PACKETS = (pcapng.ENHANCED, pcapng.SIMPLE, pcapng.OBSOLETE)

_ANY_LENGTH = b"\xff" * 8
_TIME_RESOLUTION_NS = struct.pack("<HHB3xI", 9, 1, 9, 0)
"""The options of an interface with ticks of 1 ns, and their end."""


class PacketCopier:
    """
    Copies packets window by window.

    Attributes:
        copied: Number of copied packets.
    """

    def __init__(
        self,
        paths: Sequence[str],
        file: BinaryIO,
        inputs: Inputs | None = None,
        comments: Mapping[int, Sequence[str]] | None = None,
        section_comment: str = "",
        secrets: Sequence[bytes] = (),
    ) -> None:
        """
        Start to write into a file.

        Args:
            paths: The captures in order.
            file: Receives the packets.
            inputs: Streams to read in place of files of some names.
            comments: All comments of some packets, by number, in place of those in the captures.
            section_comment: A comment that sections are given, beside their own; or none.
            secrets: TLS key logs that the file is given, beside those of the captures.
        """
        self.copied = 0
        self._paths = paths
        self._file = file
        self._inputs = inputs
        self._comments = comments or {}
        self._section_comment = section_comment
        self._secrets = secrets
        self._started: list[int] = []
        self._is_merged = False
        self._own: _OwnSection | None = None
        self._order = "<"
        self._first = 0  # number of the first packet that is being copied
        self._interfaces: list[Interface] = []

    def write(self, packets: Packets, keep: NDArray[np.bool_]) -> None:
        """Write the chosen packets of a window, and the blocks that describe them."""
        self.copied += int(keep.sum())
        kept = self._kept(packets, keep)
        if packets.path_index == SEVERAL and not self._is_merged:
            self._is_merged, self._own = True, None
        if self._is_merged:
            self._own_section().write_secrets(packets.tls_secrets)
            self._own_section().write(packets, kept, slice(0, len(packets)), self._comments)
            return
        if packets.path_index not in self._started:
            self._start_file(packets.path_index)
        for begin, end, is_pcapng in packets.spans:
            rows = slice(*np.searchsorted(packets.start, (begin, end)).tolist())
            if is_pcapng:
                self._first = packets.first + rows.start
                self._copy_blocks(packets.data[:end], _table(packets, kept, rows), begin)
            elif kept[rows].any():
                self._own_section().write(packets, kept, rows, self._comments)

    def _kept(self, packets: Packets, keep: NDArray[np.bool_]) -> Bytes:
        """Return what is done with each packet of a window."""
        kept = keep.astype(np.uint8)
        rows = np.fromiter(self._comments, np.int64) - packets.first
        rows = rows[(rows >= 0) & (rows < len(packets))]
        kept[rows[keep[rows]]] = Keep.WITH_COMMENTS
        return kept

    def finish(self) -> None:
        """Write the sections of captures without packets."""
        for index in range(0 if self._is_merged else len(self._paths)):
            if index not in self._started:
                self._start_file(index)

    def _start_file(self, index: int) -> None:
        self._started.append(index)
        self._own = None
        head = read_file_head(self._paths[index], self._inputs)
        if not head.startswith(pcapng.MAGIC):
            self._own_section().interface(*file_header(head))

    def _own_section(self) -> _OwnSection:
        """Return the section for packets of pcap; behind blocks of pcapng it is a new one."""
        if self._own is None:
            self._own = _OwnSection(self._file, self._section_comment)
            self._write_secrets("<")
        return self._own

    def _write_secrets(self, order: str) -> None:
        """Write the secrets of the file behind the head of its first section."""
        for each in self._secrets:
            self._file.write(_secrets_block(order, each))
        self._secrets = ()

    def _copy_blocks(self, data: Bytes, table: PacketTable, begin: int) -> None:
        self._own = None
        table_state = np.zeros((), dtype_of(CopyState))
        state = row_of(table_state, CopyState)
        state.at = begin
        out = np.empty(len(data) - begin, np.uint8)
        while True:
            state.filled = 0
            copy_blocks(data, int(self._order == ">"), table, out, table_state)
            self._file.write(out[: state.filled].data)
            length = self._copy_other_block(data.data, table, state)
            if not length:
                return
            state.at += length

    def _copy_other_block(self, data: memoryview, table: PacketTable, state: CopyState) -> int:
        """Copy a block that the kernel does not; return its length, 0 at the end."""
        at, packet = state.at, state.packet
        if at + pcapng.BLOCK_MIN_BYTES > len(data):
            return 0
        if data[at : at + 4] == pcapng.MAGIC:
            order = pcapng.BYTE_ORDERS.get(bytes(data[at + 8 : at + 12]))
            if order is None:
                return 0
            self._order, self._interfaces = order, []
        kind, length = struct.unpack_from(f"{self._order}II", data, at)
        end = at + length + -length % 4
        if not pcapng.BLOCK_MIN_BYTES <= length <= MAX_RECORD_BYTES or end > len(data):
            return 0
        if kind == pcapng.SECTION and end - at >= 28:
            # Its length would no longer be correct.
            section = b"".join((data[at : at + 16], _ANY_LENGTH, data[at + 24 : end]))
            self._file.write(with_section_comment(self._order, section, self._section_comment))
            self._write_secrets(self._order)
        elif kind in _PACKETS:
            head_bytes = 12 if kind == pcapng.SIMPLE else pcapng.PACKET_HEAD_BYTES
            if packet < len(table.start) and table.start[packet] == at + head_bytes:
                if table.keep[packet]:
                    is_timed = kind != pcapng.SIMPLE
                    block = data[at:end] if is_timed else self._timed(data, table, packet)
                    self._file.write(self._commented(block, table, packet))
                state.packet += 1
        elif kind not in _LEFT_OUT:
            if kind == pcapng.INTERFACE and length >= pcapng.BLOCK_MIN_BYTES + 8:
                block = data[at : end - 4]
                self._interfaces.append(read_interface(self._order, block, 8, lambda *_: None))
            self._file.write(data[at:end])
        return int(end - at)

    def _commented(
        self, block: bytes | memoryview, table: PacketTable, packet: int
    ) -> bytes | memoryview:
        """Return the block of a packet with its new comments, if it has such."""
        if table.keep[packet] != Keep.WITH_COMMENTS:
            return block
        comments = self._comments[self._first + packet]
        return with_comments(self._order, bytes(block), int(table.captured[packet]), comments)

    def _timed(self, data: memoryview, table: PacketTable, packet: int) -> bytes:
        """Return a simple packet, which has the time of the previous packet, with its own time."""
        start, captured = int(table.start[packet]), int(table.captured[packet])
        ticks = self._interfaces[0].ticks(int(table.time_ns[packet]))
        head = (0, ticks >> 32, ticks & 0xFFFFFFFF, captured, int(table.original[packet]))
        body = struct.pack(f"{self._order}5I", *head) + bytes(data[start : start + captured])
        return block_of(self._order, pcapng.ENHANCED, body)


class _OwnSection:
    """A section with an interface for each link type, and times in ns."""

    def __init__(self, file: BinaryIO, comment: str = "") -> None:
        self._file = file
        self._links: dict[int, int] = {}
        section = block_of("<", pcapng.SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
        file.write(with_section_comment("<", section, comment))

    def interface(self, link: int, snap_bytes: int = 0) -> int:
        """Describe an interface of a link type, unless there is one; return its number."""
        if link not in self._links:
            self._links[link] = len(self._links)
            body = struct.pack("<HHI", link, 0, snap_bytes) + _TIME_RESOLUTION_NS
            self._file.write(block_of("<", pcapng.INTERFACE, body))
        return self._links[link]

    def write_secrets(self, logs: Sequence[bytes]) -> None:
        """Write TLS key logs."""
        for secrets in logs:
            self._file.write(_secrets_block("<", secrets))

    def write(
        self, packets: Packets, keep: Bytes, rows: slice, comments: Mapping[int, Sequence[str]]
    ) -> None:
        """Write the chosen ones of some packets of a window as blocks of their own."""
        begin = rows.start
        for row in (begin + np.flatnonzero(keep[rows] == Keep.WITH_COMMENTS)).tolist():
            self._file.write(self._blocks(packets, keep, slice(begin, row)))
            block = bytes(self._blocks(packets, keep, slice(row, row + 1)))
            captured, texts = int(packets.captured[row]), comments[packets.first + row]
            self._file.write(with_comments("<", block, captured, texts))
            begin = row + 1
        self._file.write(self._blocks(packets, keep, slice(begin, rows.stop)))

    def _blocks(self, packets: Packets, keep: Bytes, rows: slice) -> memoryview:
        """Return the blocks of the chosen ones of some packets, without comments."""
        chosen, links = keep[rows] != Keep.NO, packets.link[rows]
        numbers = np.zeros(len(chosen), np.int64)
        for link in unique(links[chosen]).tolist():
            numbers[links == link] = self.interface(link)
        table = _table(packets, keep, rows)
        room = int(packets.captured[rows][chosen].sum())
        out = np.empty(room + ENHANCED_EXTRA_BYTES * int(chosen.sum()), np.uint8)
        return out[: write_packets(packets.data, table, numbers, out)].data


def _secrets_block(order: str, secrets: bytes) -> bytes:
    head = struct.pack(f"{order}II", pcapng.TLS_KEY_LOG, len(secrets))
    return block_of(order, pcapng.SECRETS, head + secrets)


def _table(packets: Packets, keep: Bytes, rows: slice) -> PacketTable:
    columns = (packets.time_ns, packets.start, packets.captured, packets.original, keep)
    return PacketTable._make(np.ascontiguousarray(each[rows]) for each in columns)
