"""A place in one packet, while its wrappings are taken off one by one."""

from __future__ import annotations

import struct
from dataclasses import dataclass


class PacketSkipped(Exception):
    """This packet gives no TCP segment; the text says why. Never leaves this package."""


NOT_TCP, MALFORMED, INCOMPLETE_FRAGMENT = "not TCP", "malformed", "fragment"


@dataclass(slots=True)
class Cursor:
    """
    A place in a packet, and what was learnt on the way there.

    Attributes:
        data: The window, or a reassembled datagram.
        at: Offset of the next header.
        end: Offset behind the last captured byte that belongs to it.
        sent_end: Offset behind the last byte that was sent.
        network: Names of the VLANs and VNIs so far.
        time_ns: When the packet was captured.
        packet: Its number.
        source: The innermost IP source address, high and low.
        target: The innermost IP target address.
        is_reassembled: Whether `data` is a reassembled datagram.
        is_bounded: Whether `sent_end` was told by a header; the frame's own length may be wrong.
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
        """Read a header of this form and step over it."""
        at = self.skip(form.size)
        return form.unpack_from(self.data, at)

    def skip(self, size: int) -> int:
        """Step over `size` bytes; return where they were."""
        if self.at + size > self.end:
            raise PacketSkipped(MALFORMED)
        self.at += size
        return self.at - size

    def enter_network(self, name: str) -> None:
        """Go into a network inside the one we are in."""
        self.network = f"{self.network} {name}".strip()

    def limit(self, sent_end: int) -> None:
        """Let the sent bytes end here, if no header around it says less; behind is padding."""
        self.sent_end = min(sent_end, self.sent_end) if self.is_bounded else sent_end
        self.is_bounded = True
        self.end = min(self.end, sent_end)
