"""
Writes packets as pcapng: link types, times, lengths and bytes only.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html
"""

from __future__ import annotations

import struct
from typing import BinaryIO

from dissector.capture.formats.block_comments import block_of, with_section_comment
from dissector.capture.formats.pcapng import ENHANCED, INTERFACE, SECTION

_SECTION = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
_TIME_RESOLUTION_NS = struct.pack("<HHB3xI", 9, 1, 9, 0)
"""The options of an interface with ticks of 1 ns, and their end."""


class CaptureWriter:
    """
    Writes sections of packets.

    Args:
        file: Gets them.
        comment: A comment for each section, or none.

    Attributes:
        packets: Number of written packets.
    """

    def __init__(self, file: BinaryIO, comment: str = "") -> None:
        self.packets = 0
        self._file = file
        self._comment = comment
        self._interfaces: dict[int, int] = {}

    def start_section(self) -> None:
        """Begin a section, with separate interfaces."""
        self._interfaces = {}
        self._file.write(with_section_comment("<", block_of("<", SECTION, _SECTION), self._comment))

    def write(self, time_ns: int, link: int, data: bytes, original: int) -> None:
        """Write a packet."""
        interface = self._interfaces.get(link)
        if interface is None:
            interface = self._interfaces[link] = len(self._interfaces)
            described = struct.pack("<HHI", link, 0, 0) + _TIME_RESOLUTION_NS
            self._file.write(block_of("<", INTERFACE, described))
        high, low = time_ns >> 32 & 0xFFFFFFFF, time_ns & 0xFFFFFFFF
        head = struct.pack("<5I", interface, high, low, len(data), original)
        self._file.write(block_of("<", ENHANCED, head + data))
        self.packets += 1
