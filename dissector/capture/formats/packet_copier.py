"""
Writes selected packets of captures to one pcapng file, with a section for each capture.

Blocks of pcapng are copied unchanged, with times, interfaces, comments and secrets. From the first
packet on where captures overlap in time, there is one section for all, with packets in time order.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import SEVERAL, Bytes, Packets
from dissector.capture.formats import pcapng
from dissector.capture.formats.capture_reader import read_file_head
from dissector.capture.formats.inputs import Inputs
from dissector.capture.formats.packet_copy_kernel import (
    ENHANCED_EXTRA_BYTES,
    ENHANCED_HEAD_BYTES,
    CopyState,
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

_ANY_LENGTH = b"\xff" * 8
_TIME_RESOLUTION_NS = struct.pack("<HHB3xI", 9, 1, 9, 0)
"""The options of an interface with ticks of 1 ns, and their end."""


class PacketCopier:
    """
    Copies packets window by window.

    Attributes:
        copied: Number of copied packets.
    """

    def __init__(self, paths: Sequence[str], file: BinaryIO, inputs: Inputs | None = None) -> None:
        """Start to write into a file; `paths` are the captures in order, some of them `inputs`."""
        self.copied = 0
        self._paths = paths
        self._file = file
        self._inputs = inputs
        self._started: list[int] = []
        self._is_merged = False
        self._own: _OwnSection | None = None
        self._order = "<"
        self._interfaces: list[Interface] = []

    def write(self, packets: Packets, keep: NDArray[np.bool_]) -> None:
        """Write the chosen packets of a window, and the blocks that describe them."""
        self.copied += int(keep.sum())
        if packets.path_index == SEVERAL and not self._is_merged:
            self._is_merged, self._own = True, _OwnSection(self._file)
        if self._is_merged:
            self._own_section().write_secrets(packets.tls_secrets)
            self._own_section().write(packets, keep, slice(None))
            return
        if packets.path_index not in self._started:
            self._start_file(packets.path_index)
        for begin, end, is_pcapng in packets.spans:
            rows = slice(*np.searchsorted(packets.start, (begin, end)).tolist())
            if is_pcapng:
                self._copy_blocks(packets.data[:end], _table(packets, keep, rows), begin)
            elif keep[rows].any():
                self._own_section().write(packets, keep, rows)

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
            self._own = _OwnSection(self._file)
        return self._own

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
        """Copy a block other than an enhanced packet; return its length, 0 at the end."""
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
            self._file.write(b"".join((data[at : at + 16], _ANY_LENGTH, data[at + 24 : end])))
        elif kind in (pcapng.SIMPLE, pcapng.OBSOLETE):
            head_bytes = 12 if kind == pcapng.SIMPLE else ENHANCED_HEAD_BYTES
            if packet < len(table.start) and table.start[packet] == at + head_bytes:
                if table.keep[packet]:
                    is_timed = kind == pcapng.OBSOLETE
                    self._file.write(data[at:end] if is_timed else self._timed(data, table, packet))
                state.packet += 1
        elif kind not in _LEFT_OUT:
            if kind == pcapng.INTERFACE and length >= pcapng.BLOCK_MIN_BYTES + 8:
                block = data[at : end - 4]
                self._interfaces.append(read_interface(self._order, block, 8, lambda *_: None))
            self._file.write(data[at:end])
        return int(end - at)

    def _timed(self, data: memoryview, table: PacketTable, packet: int) -> bytes:
        """Return a simple packet, which has the time of the previous packet, with its own time."""
        start, captured = int(table.start[packet]), int(table.captured[packet])
        ticks = self._interfaces[0].ticks(int(table.time_ns[packet]))
        head = (0, ticks >> 32, ticks & 0xFFFFFFFF, captured, int(table.original[packet]))
        body = struct.pack(f"{self._order}5I", *head) + bytes(data[start : start + captured])
        return _block(self._order, pcapng.ENHANCED, body)


class _OwnSection:
    """A section with an interface for each link type, and times in ns."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._links: dict[int, int] = {}
        file.write(_block("<", pcapng.SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))

    def interface(self, link: int, snap_bytes: int = 0) -> int:
        """Describe an interface of a link type, unless there is one; return its number."""
        if link not in self._links:
            self._links[link] = len(self._links)
            body = struct.pack("<HHI", link, 0, snap_bytes) + _TIME_RESOLUTION_NS
            self._file.write(_block("<", pcapng.INTERFACE, body))
        return self._links[link]

    def write_secrets(self, logs: Sequence[bytes]) -> None:
        """Write TLS key logs."""
        for secrets in logs:
            head = struct.pack("<II", pcapng.TLS_KEY_LOG, len(secrets))
            self._file.write(_block("<", pcapng.SECRETS, head + secrets))

    def write(self, packets: Packets, keep: NDArray[np.bool_], rows: slice) -> None:
        """Write the chosen ones of some packets of a window as blocks of their own."""
        chosen, links = keep[rows], packets.link[rows]
        numbers = np.zeros(len(chosen), np.int64)
        for link in np.unique(links[chosen]).tolist():
            numbers[links == link] = self.interface(link)
        table = _table(packets, keep, rows)
        room = int(packets.captured[rows][chosen].sum())
        out = np.empty(room + ENHANCED_EXTRA_BYTES * int(chosen.sum()), np.uint8)
        self._file.write(out[: write_packets(packets.data, table, numbers, out)].data)


def _table(packets: Packets, keep: NDArray[np.bool_], rows: slice) -> PacketTable:
    columns = (packets.time_ns, packets.start, packets.captured, packets.original, keep)
    return PacketTable._make(np.ascontiguousarray(each[rows]) for each in columns)


def _block(order: str, kind: int, body: bytes) -> bytes:
    """Return a block with its padding."""
    length = pcapng.BLOCK_MIN_BYTES + len(body) + -len(body) % 4
    size = struct.pack(f"{order}I", length)
    return struct.pack(f"{order}I", kind) + size + body + bytes(-len(body) % 4) + size
