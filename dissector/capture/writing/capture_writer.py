"""
Writes packets as pcapng: link types, times, lengths and bytes only.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html
"""

from __future__ import annotations

import struct
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from dissector.capture.formats.block_comments import block_of, with_section_comment
from dissector.capture.formats.pcapng import ENHANCED, INTERFACE, SECTION

_SECTION = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
_TIME_RESOLUTION_NS = struct.pack("<HHB3xI", 9, 1, 9, 0)
"""The options of an interface with ticks of 1 ns, and their end."""

_INTERFACE_AT = 8
"""Where a block of a packet has the number of its interface."""


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
        interface = self._interface(link)
        high, low = time_ns >> 32 & 0xFFFFFFFF, time_ns & 0xFFFFFFFF
        head = struct.pack("<5I", interface, high, low, len(data), original)
        self._file.write(block_of("<", ENHANCED, head + data))
        self.packets += 1

    def write_blocks(self, link: int, blocks: NDArray[np.uint8], at: NDArray[np.int64]) -> None:
        """
        Write blocks of packets.

        Args:
            link: Their link type.
            blocks: The blocks; the number of their interface is set.
            at: Where each one begins.
        """
        places = at[:, None] + np.arange(_INTERFACE_AT, _INTERFACE_AT + 4)
        blocks[places] = np.frombuffer(struct.pack("<I", self._interface(link)), np.uint8)
        self._file.write(blocks.data)
        self.packets += len(at)

    def _interface(self, link: int) -> int:
        """Return the interface of a link type, which is written before its first packet."""
        interface = self._interfaces.get(link)
        if interface is None:
            interface = self._interfaces[link] = len(self._interfaces)
            described = struct.pack("<HHI", link, 0, 0) + _TIME_RESOLUTION_NS
            self._file.write(block_of("<", INTERFACE, described))
        return interface
