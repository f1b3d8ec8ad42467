"""
pcapng: sections of any byte order, interfaces each with its link type and clock, packet blocks.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html (block types, options)
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dissector.capture.columns import Bytes
from dissector.capture.formats.packet_rows import (
    MAX_RECORD_BYTES,
    TIME_MAX,
    TIME_MIN,
    PacketColumns,
    PacketRows,
    RecordForm,
    ScanState,
)
from dissector.capture.formats.start_search import FILE, begins_file
from dissector.capture.integers import u32_of
from dissector.kernel import Kernel
from dissector.kernel.arrays import U8
from dissector.kernel.named_rows import NamedRow, RowArray, Rows, dtype_of, table_of

MAGIC = b"\x0a\x0d\x0d\x0a"

SECTION, INTERFACE, OBSOLETE, SIMPLE, ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6
"""Types of blocks."""

SECRETS, TLS_KEY_LOG = 10, 0x544C534B
BYTE_ORDERS = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
BLOCK_MIN_BYTES = 12
PACKET_HEAD_BYTES = 28
"""Bytes of a packet's block before the packet, if it has a time of its own."""
_MAX_KNOWN_BLOCK = 11
_END_OF_OPTIONS, _TIME_RESOLUTION, _TIME_OFFSET = 0, 9, 14
_NS = 1_000_000_000

# Reasons to stop scanning: a block is incomplete, needs the slow path, or has no room in the
# columns.
_INCOMPLETE, _OTHER, _FULL = range(3)


@dataclass(slots=True)
class Clock(NamedRow):
    """
    The clock of a capturing interface, and what packets have from it.

    Attributes:
        link: The link type.
        numerator: A tick is this number of ns,
        denominator: divided by this.
        offset_ns: Time of tick 0.
        max_ticks: The largest tick count that fits the sums of the kernel.
    """

    link: int
    numerator: int
    denominator: int
    offset_ns: int
    max_ticks: int


@dataclass(slots=True, eq=False, repr=False)
class Interface:
    """A capturing interface; a tick of its clock is `numerator / denominator` ns."""

    link: int
    snap_bytes: int
    numerator: int = 1000
    denominator: int = 1
    offset_ns: int = 0

    def clock(self) -> Clock:
        """Return its clock, for the kernel."""
        if max(self.denominator * self.numerator, abs(self.offset_ns)) > TIME_MAX // 2:
            return Clock(self.link, 0, 1, 0, -1)
        most_ns = TIME_MAX - abs(self.offset_ns) - self.numerator
        most_ticks = min(most_ns // self.numerator * self.denominator, TIME_MAX)
        return Clock(self.link, self.numerator, self.denominator, self.offset_ns, most_ticks)

    def ticks(self, time_ns: int) -> int:
        """Return the first tick of a time."""
        return max(0, -(-(time_ns - self.offset_ns) * self.denominator // self.numerator))


class PcapngReader:
    """
    Reader of pcapng; see `FormatReader`. Its state is the byte order and interfaces of the section.

    Valid enhanced packet blocks are read by a kernel, which also skips blocks without packets; all
    other blocks are read here.
    """

    is_pcapng = True

    def __init__(self) -> None:
        self._order = "<"
        self._interfaces: list[Interface] = []
        self._clocks = np.zeros(1, dtype_of(Clock))
        self._time_ns = 0
        self.needed_bytes = BLOCK_MIN_BYTES
        self.damage = ""
        self.at_new_file = False

    @property
    def form(self) -> RowArray:
        """The form of blocks in the present section."""
        return RecordForm(is_pcapng=True, is_big=self._order == ">").to_array()

    def scan(
        self, window: Bytes, at: int, base: int, rows: PacketRows, *, is_last: bool = False
    ) -> int:
        """Read the complete blocks in the window; see `FormatReader.scan`."""
        self.needed_bytes = BLOCK_MIN_BYTES
        self.damage, self.at_new_file = "", False
        state = np.zeros((), dtype_of(ScanState))
        while True:
            state[()] = at, rows.count, 0, self._time_ns
            status = _scan(
                window,
                int(self._order == ">"),
                self._clocks,
                len(self._interfaces),
                rows.columns,
                state,
            )
            at, rows.count, _, self._time_ns = state.tolist()
            if status == _FULL:
                rows.grow()
                continue
            length = self._read_any_block(window.data, at, base, rows, is_last)
            if not length:
                break
            at += length
        return at

    def _read_any_block(
        self, window: memoryview, at: int, base: int, rows: PacketRows, is_last: bool
    ) -> int:
        """Read a block of any type; return its length, 0 if it is incomplete or not valid."""
        if at + BLOCK_MIN_BYTES > len(window):
            return 0
        if window[at : at + 4] == MAGIC:
            self._start_section(window, at)
        elif begins_file(window, at, 1) == FILE:
            self.at_new_file = True
        kind, length = struct.unpack_from(f"{self._order}II", window, at)
        if not (BLOCK_MIN_BYTES <= length <= MAX_RECORD_BYTES or self.damage or self.at_new_file):
            self.damage = f"invalid block length {length:,}"
        if self.damage or self.at_new_file:
            return 0
        length += -length % 4
        if at + length > len(window):
            self.needed_bytes = length
            return 0
        (trailing_length,) = struct.unpack_from(f"{self._order}I", window, at + length - 4)
        if trailing_length + -trailing_length % 4 != length:
            following = at + length
            if not is_last and following + 2 * BLOCK_MIN_BYTES > len(window):
                self.needed_bytes = length + 2 * BLOCK_MIN_BYTES
                return 0
            if not self._is_next_block(window, following):
                self.damage = "the two lengths of a block differ"
                return 0
            rows.report("the two lengths of a block differ", base + at)
        self._read_block(kind, window[: at + length - 4], at + 8, base, rows)
        return int(length)

    def _is_next_block(self, window: memoryview, at: int) -> bool:
        """Return whether a block may begin here, as a check of the length before it."""
        if at + BLOCK_MIN_BYTES > len(window):
            return True
        if window[at : at + 4] == MAGIC or begins_file(window, at, 1) == FILE:
            return True
        kind, length = struct.unpack_from(f"{self._order}II", window, at)
        is_known = 0 < kind <= _MAX_KNOWN_BLOCK or kind >> 28
        return bool(is_known) and BLOCK_MIN_BYTES <= length <= MAX_RECORD_BYTES and not length % 4

    def _start_section(self, window: memoryview, at: int) -> None:
        order = BYTE_ORDERS.get(bytes(window[at + 8 : at + 12]))
        if order is None:
            self.damage = "section header with an invalid byte-order magic"
        else:
            self._order = order
            self._interfaces = []

    def _read_block(
        self, kind: int, block: memoryview, at: int, base: int, rows: PacketRows
    ) -> None:
        """Read a block with its body at `block[at:]`; block types without packets are skipped."""
        room = len(block) - at
        if kind == INTERFACE and room >= 8:
            self._add_interface(
                read_interface(
                    self._order, block, at, lambda text, place: rows.report(text, base + place)
                )
            )
        elif kind == ENHANCED and room >= 20:
            number, high, low, captured, original = struct.unpack_from(
                f"{self._order}IIIII", block, at
            )
            ticks = high << 32 | low
            self._add_packet(number, ticks, captured, original, len(block), at + 20, base, rows)
        elif kind == OBSOLETE and room >= 20:
            number, _, high, low, captured, original = struct.unpack_from(
                f"{self._order}HHIIII", block, at
            )
            ticks = high << 32 | low
            self._add_packet(number, ticks, captured, original, len(block), at + 20, base, rows)
        elif kind == SIMPLE and room >= 4:
            (original,) = struct.unpack_from(f"{self._order}I", block, at)
            captured = min(original, room - 4)
            if self._interfaces and self._interfaces[0].snap_bytes:
                captured = min(captured, self._interfaces[0].snap_bytes)
            self._add_packet(0, None, captured, original, len(block), at + 4, base, rows)
        elif kind == SECRETS and room >= 8:
            self._add_secrets(block, at, base, rows)
        elif kind in (INTERFACE, ENHANCED, OBSOLETE, SIMPLE, SECRETS):
            rows.report("block too short for its type", base + at - 8)

    def _add_secrets(self, block: memoryview, at: int, base: int, rows: PacketRows) -> None:
        """Keep the content of a Decryption Secrets Block if it is a TLS key log."""
        kind, length = struct.unpack_from(f"{self._order}II", block, at)
        if kind != TLS_KEY_LOG:
            return
        if at + 8 + length > len(block):
            rows.report("secrets longer than their block", base + at)
        rows.tls_secrets.append(bytes(block[at + 8 : at + 8 + length]))

    def _add_interface(self, interface: Interface) -> None:
        number = len(self._interfaces)
        self._interfaces.append(interface)
        if number == len(self._clocks):
            self._clocks = np.concatenate([self._clocks, self._clocks])
        self._clocks[number : number + 1] = table_of([interface.clock()], Clock)

    def _add_packet(
        self,
        number: int,
        ticks: int | None,
        captured: int,
        original: int,
        end: int,
        start: int,
        base: int,
        rows: PacketRows,
    ) -> None:
        """
        Add a packet; without a time (simple packet block), the time of the previous packet.

        A time outside the supported range becomes the nearest supported one.
        """
        if number >= len(self._interfaces):
            rows.report("packet of an undescribed interface", base + start)
            return
        if start + captured > end:
            rows.report(f"packet of {captured:,} bytes in a shorter block", base + start)
            captured = end - start
        interface = self._interfaces[number]
        if ticks is not None:
            elapsed_ns = ticks * interface.numerator // interface.denominator
            time_ns = elapsed_ns + interface.offset_ns
            self._time_ns = min(max(time_ns, TIME_MIN), TIME_MAX)
        rows.add(self._time_ns, start, captured, original, interface.link)


def read_interface(
    order: str, block: memoryview, at: int, report: Callable[[str, int], None]
) -> Interface:
    """Return the properties in an interface description; its body is `block[at:]`."""
    link, _, snap_bytes = struct.unpack_from(f"{order}HHI", block, at)
    interface = Interface(link, snap_bytes)
    at += 8
    while at + 4 <= len(block):
        code, length = struct.unpack_from(f"{order}HH", block, at)
        at += 4
        if code == _END_OF_OPTIONS:
            break
        if at + length > len(block):
            report("option longer than its block", at - 4)
            break
        if code == _TIME_RESOLUTION and length >= 1:
            _set_resolution(interface, block[at])
        elif code == _TIME_OFFSET and length >= 8:
            (seconds,) = struct.unpack_from(f"{order}q", block, at)
            interface.offset_ns = seconds * _NS
        at += length + -length % 4
    return interface


def _set_resolution(interface: Interface, value: int) -> None:
    """Set an interface's clock: a tick is 10^-value s, or 2^-value s if the highest bit is set."""
    if value & 0x80:
        interface.numerator, interface.denominator = _NS, 1 << (value & 0x7F)
    elif value <= 9:
        interface.numerator, interface.denominator = 10 ** (9 - value), 1
    else:
        interface.numerator, interface.denominator = 1, 10 ** (value - 9)


@Kernel
def _scan(
    data: U8,
    big: int,
    clocks: Rows[Clock],
    interfaces: int,
    columns: PacketColumns,
    state: ScanState,
) -> int:
    """
    Write a row for each packet in valid enhanced packet blocks; return the stop reason.

    Args:
        data: The window.
        big: Whether integers are big-endian.
        clocks: The clock of each interface.
        interfaces: Number of interfaces.
        columns: Receives the columns.
        state: Where the scan begins and stops.
    """
    at, count = state.at, state.count
    status = _INCOMPLETE
    while at + BLOCK_MIN_BYTES <= len(data):
        kind = u32_of(data, at, big)
        length = u32_of(data, at + 4, big)
        end = at + (length + 3) // 4 * 4
        if length > MAX_RECORD_BYTES or end > len(data):
            break
        status = _OTHER
        if length < BLOCK_MIN_BYTES or u32_of(data, end - 4, big) != length:
            break
        if kind == ENHANCED:
            start = at + 28
            if start + 4 > end:
                break
            number = u32_of(data, at + 8, big)
            high = u32_of(data, at + 12, big)
            captured = u32_of(data, at + 20, big)
            if number >= interfaces or high >> 31 or start + captured + 4 > end:
                break
            ticks = high << 32 | u32_of(data, at + 16, big)
            clock = clocks[number]
            if ticks > clock.max_ticks:
                break
            if count == len(columns.link):
                status = _FULL
                break
            numerator, denominator = clock.numerator, clock.denominator
            if denominator == 1:
                time_ns = ticks * numerator
            else:
                remainder = ticks % denominator
                time_ns = ticks // denominator * numerator + remainder * numerator // denominator
            time_ns += clock.offset_ns
            columns.time_ns[count] = time_ns
            columns.start[count] = start
            columns.captured[count] = captured
            columns.original[count] = u32_of(data, at + 24, big)
            columns.link[count] = clock.link
            state.time_ns = time_ns
            count += 1
        elif kind in (SECTION, INTERFACE, OBSOLETE, SIMPLE, SECRETS):
            break
        at = end
        status = _INCOMPLETE
    state.at, state.count = at, count
    return status
