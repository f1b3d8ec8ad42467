"""
pcapng: sections of any byte order, interfaces each with its link type and clock, packet blocks.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html (block types, options)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from dissector.capture.records import MAX_RECORD_BYTES, Rows

MAGIC = b"\x0a\x0d\x0d\x0a"

_SECTION, _INTERFACE, _OBSOLETE, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6
_BYTE_ORDERS = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
_BLOCK_MIN_BYTES = 12
_END_OF_OPTIONS, _TIME_RESOLUTION, _TIME_OFFSET = 0, 9, 14
_NS = 1_000_000_000


@dataclass(slots=True)
class _Interface:
    """Where packets were captured; a tick of its clock is `numerator / denominator` ns."""

    link: int
    snap_bytes: int
    numerator: int = 1000
    denominator: int = 1
    offset_ns: int = 0


class PcapngReader:
    """Reads pcapng; see `Reader`. State: the byte order and interfaces of the section it is in."""

    def __init__(self) -> None:
        self._order = "<"
        self._interfaces: list[_Interface] = []
        self._time_ns = 0
        self.need = _BLOCK_MIN_BYTES
        self.stopped = False

    def scan(self, window: memoryview, base: int, rows: Rows) -> int:
        """Read the whole blocks in the window; see `Reader.scan`."""
        at, filled = 0, len(window)
        self.need = _BLOCK_MIN_BYTES
        while at + _BLOCK_MIN_BYTES <= filled and not self.stopped:
            if window[at : at + 4] == MAGIC:
                self._enter_section(window, at, base, rows)
            kind, length = struct.unpack_from(f"{self._order}II", window, at)
            if not _BLOCK_MIN_BYTES <= length <= MAX_RECORD_BYTES:
                rows.report(f"a block of {length:,} bytes is none: reading stops", base + at)
                self.stopped = True
            if self.stopped:
                break
            length += -length % 4
            if at + length > filled:
                self.need = length
                break
            self._read_block(kind, window[: at + length - 4], at + 8, base, rows)
            (again,) = struct.unpack_from(f"{self._order}I", window, at + length - 4)
            if again + -again % 4 != length:
                rows.report("a block's two lengths differ", base + at)
            at += length
        return at

    def _enter_section(self, window: memoryview, at: int, base: int, rows: Rows) -> None:
        order = _BYTE_ORDERS.get(bytes(window[at + 8 : at + 12]))
        if order is None:
            rows.report("a section without byte order: reading stops", base + at)
            self.stopped = True
        else:
            self._order = order
            self._interfaces = []

    def _read_block(self, kind: int, block: memoryview, at: int, base: int, rows: Rows) -> None:
        """Read a block whose body is `block[at:]`; kinds that carry no packets are passed over."""
        room = len(block) - at
        if kind == _INTERFACE and room >= 8:
            self._interfaces.append(self._interface(block, at, base, rows))
        elif kind == _ENHANCED and room >= 20:
            number, high, low, captured, original = struct.unpack_from(
                f"{self._order}IIIII", block, at
            )
            ticks = high << 32 | low
            self._packet(number, ticks, captured, original, len(block), at + 20, base, rows)
        elif kind == _OBSOLETE and room >= 20:
            number, _, high, low, captured, original = struct.unpack_from(
                f"{self._order}HHIIII", block, at
            )
            ticks = high << 32 | low
            self._packet(number, ticks, captured, original, len(block), at + 20, base, rows)
        elif kind == _SIMPLE and room >= 4:
            (original,) = struct.unpack_from(f"{self._order}I", block, at)
            captured = min(original, room - 4)
            if self._interfaces and self._interfaces[0].snap_bytes:
                captured = min(captured, self._interfaces[0].snap_bytes)
            self._packet(0, None, captured, original, len(block), at + 4, base, rows)
        elif kind in (_INTERFACE, _ENHANCED, _OBSOLETE, _SIMPLE):
            rows.report("a block too short for its kind", base + at - 8)

    def _packet(
        self,
        number: int,
        ticks: int | None,
        captured: int,
        original: int,
        end: int,
        start: int,
        base: int,
        rows: Rows,
    ) -> None:
        """Add a packet; one that has no time (simple packet block) gets that of the one before."""
        if number >= len(self._interfaces):
            rows.report("a packet of an interface that was not described", base + start)
            return
        if start + captured > end:
            rows.report(f"a packet of {captured:,} bytes in a shorter block", base + start)
            captured = end - start
        interface = self._interfaces[number]
        if ticks is not None:
            passed_ns = ticks * interface.numerator // interface.denominator
            self._time_ns = passed_ns + interface.offset_ns
        rows.add(self._time_ns, start, captured, original, interface.link)

    def _interface(self, block: memoryview, at: int, base: int, rows: Rows) -> _Interface:
        link, _, snap_bytes = struct.unpack_from(f"{self._order}HHI", block, at)
        interface = _Interface(link, snap_bytes)
        at += 8
        while at + 4 <= len(block):
            code, length = struct.unpack_from(f"{self._order}HH", block, at)
            at += 4
            if code == _END_OF_OPTIONS:
                break
            if at + length > len(block):
                rows.report("an option longer than its block", base + at - 4)
                break
            if code == _TIME_RESOLUTION and length >= 1:
                _set_resolution(interface, block[at])
            elif code == _TIME_OFFSET and length >= 8:
                (seconds,) = struct.unpack_from(f"{self._order}q", block, at)
                interface.offset_ns = seconds * _NS
            at += length + -length % 4
        return interface


def _set_resolution(interface: _Interface, value: int) -> None:
    """A tick is 10^-value s, or 2^-value s where the highest bit is set."""
    if value & 0x80:
        interface.numerator, interface.denominator = _NS, 1 << (value & 0x7F)
    elif value <= 9:
        interface.numerator, interface.denominator = 10 ** (9 - value), 1
    else:
        interface.numerator, interface.denominator = 1, 10 ** (value - 9)
