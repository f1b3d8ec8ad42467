"""A position in one packet, while its encapsulations are removed one by one."""

from __future__ import annotations

import struct
from dataclasses import dataclass


class PacketSkipped(Exception):
    """The packet yields no TCP segment; the text is the reason. Never leaves this package."""


NOT_TCP, MALFORMED, INCOMPLETE_FRAGMENT = "not TCP", "malformed", "fragment"


@dataclass(slots=True, eq=False, repr=False)
class Cursor:
    """
    A position in a packet, and values of the headers before it.

    Attributes:
        data: The window, or a reassembled datagram.
        at: Offset of the next header.
        end: Offset behind the last captured byte of the current layer.
        sent_end: Offset behind its last byte on the wire.
        network: Names of the VLANs and VNIs so far.
        time_ns: Capture time of the packet.
        packet: The packet's number.
        source: The innermost IP source address, high and low.
        target: The innermost IP destination address.
        is_reassembled: Whether `data` is a reassembled datagram.
        is_bounded: Whether a header determines `sent_end`; the frame's own length may be wrong.
    """

    data: memoryview
    at: int
    end: int
    sent_end: int
    network: str
    time_ns: int
    packet: int = 0
    source: tuple[int, int] = (0, 0)
    target: tuple[int, int] = (0, 0)
    is_reassembled: bool = False
    is_bounded: bool = False

    def read(self, form: struct.Struct) -> tuple[int, ...]:
        """Read a header of this format and step over it."""
        at = self.skip(form.size)
        return form.unpack_from(self.data, at)

    def skip(self, size: int) -> int:
        """Step over `size` bytes; return their offset."""
        if self.at + size > self.end:
            raise PacketSkipped(MALFORMED)
        self.at += size
        return self.at - size

    def enter_network(self, name: str) -> None:
        """Descend into a network inside the current one."""
        self.network = f"{self.network} {name}".strip()

    def limit(self, sent_end: int) -> None:
        """End the layer here, unless an outer header ends it earlier; later bytes are padding."""
        self.sent_end = min(sent_end, self.sent_end) if self.is_bounded else sent_end
        self.is_bounded = True
        self.end = min(self.end, sent_end)
