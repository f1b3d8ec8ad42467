"""
Writes packets as pcapng: link types, times, lengths and bytes only.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html
"""

from __future__ import annotations

import struct
from typing import BinaryIO

from dissector.capture.formats.pcapng import ENHANCED, INTERFACE, SECTION

_SECTION = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
_TIME_RESOLUTION_NS = struct.pack("<HHB3xI", 9, 1, 9, 0)
"""The options of an interface with ticks of 1 ns, and their end."""


class CaptureWriter:
    """
    Writes sections of packets.

    Attributes:
        packets: Number of written packets.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.packets = 0
        self._file = file
        self._interfaces: dict[int, int] = {}

    def start_section(self) -> None:
        """Begin a section, with separate interfaces."""
        self._interfaces = {}
        self._block(SECTION, _SECTION)

    def write(self, time_ns: int, link: int, data: bytes, original: int) -> None:
        """Write a packet."""
        interface = self._interfaces.get(link)
        if interface is None:
            interface = self._interfaces[link] = len(self._interfaces)
            self._block(INTERFACE, struct.pack("<HHI", link, 0, 0) + _TIME_RESOLUTION_NS)
        high, low = time_ns >> 32 & 0xFFFFFFFF, time_ns & 0xFFFFFFFF
        head = struct.pack("<5I", interface, high, low, len(data), original)
        self._block(ENHANCED, head + data)
        self.packets += 1

    def _block(self, kind: int, body: bytes) -> None:
        padding = bytes(-len(body) % 4)
        size = struct.pack("<I", 12 + len(body) + len(padding))
        self._file.write(b"".join((struct.pack("<I", kind), size, body, padding, size)))
