"""Finds the headers of a packet, and where they lie, up to the payload of TCP."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from dissector.capture.iana_numbers import ETHERNET, LINUX_SLL, LINUX_SLL2
from dissector.capture.packets.cursor import Cursor, PacketSkipped
from dissector.capture.packets.decode_as import tunnel_ports
from dissector.capture.packets.link_layers import LINK_RULES
from dissector.capture.packets.links import read_link_header
from dissector.capture.packets.tunnels import (
    EXTENSION_HEADER,
    IPV4_HEADER,
    IPV6_HEADER,
    UDP_HEADER,
    Tunnels,
)

_KNOWN_LINKS = (0, ETHERNET, 12, 14, 101, 108, LINUX_SLL, 228, 229, LINUX_SLL2)
_MIN_TCP_BYTES = 14
_MAX_IP_BYTES = 0xFFFF


@dataclass(slots=True)
class Located:
    """
    A TCP packet with located headers.

    Attributes:
        data: Its bytes; of a datagram in fragments, one packet with all of it.
        link_end: End of the link header.
        headers: The headers after it, as read: their form, or None for skipped bytes, and where
            they begin and end.
        tcp_at: Begin of the TCP header.
        end: End of the captured bytes of TCP; padding follows.
        original: Length on the wire.
        is_cut: Whether some of the segment was not captured.
    """

    data: bytearray
    link_end: int
    headers: list[tuple[struct.Struct | None, int, int]]
    tcp_at: int
    end: int
    original: int
    is_cut: bool

    @property
    def payload_at(self) -> int:
        """Begin of the payload."""
        return min(self.tcp_at + (self.data[self.tcp_at + 12] >> 4) * 4, self.end)


@dataclass(slots=True)
class _Recorder(Cursor):
    """A cursor that records the skipped headers."""

    headers: list[tuple[struct.Struct | None, int, int]] = field(default_factory=list)
    outer_headers: int = -1

    def read(self, form: struct.Struct) -> tuple[int, ...]:
        """Read a header of this format and step over it."""
        self._note_datagram()
        at = Cursor.skip(self, form.size)
        self.headers.append((form, at, self.at))
        return form.unpack_from(self.data, at)

    def skip(self, size: int) -> int:
        """Step over `size` bytes; return their offset."""
        self._note_datagram()
        at = Cursor.skip(self, size)
        if size:
            self.headers.append((None, at, self.at))
        return at

    def _note_datagram(self) -> None:
        """Record the headers of the packet and of a reassembled datagram."""
        if self.is_reassembled and self.outer_headers < 0:
            self.outer_headers = len(self.headers)


def in_known_link(data: bytes, link: int, original: int) -> tuple[bytes, int, int] | None:
    """
    Return a packet in a link layer whose names and addresses can be replaced; None without IP.

    Headers of other link layers hold names of processes and interfaces, or addresses at other
    places: Ethernet without addresses takes their place.
    """
    if link in _KNOWN_LINKS:
        return data, link, original
    body, kind, _ = read_link_header(memoryview(data), LINK_RULES, link, 0, len(data))
    if kind < 0:
        return None
    head = bytes(12) + kind.to_bytes(2, "big")
    return head + data[body:], ETHERNET, (original or len(data)) + len(head) - body


class HeaderFinder:
    """Finds headers; it must see all packets of a capture, as fragments may wait for others."""

    def __init__(self, decode_as: Iterable[str] = ()) -> None:
        """Start a capture; `decode_as` as in `tunnel_ports`."""
        self._tunnels = Tunnels(tunnel_ports(decode_as))

    def find(self, data: bytes, link: int, original: int, time_ns: int) -> Located | None:
        """
        Return the headers of a packet; None without a whole TCP header.

        Args:
            data: The captured bytes.
            link: The link type.
            original: Length on the wire; 0 if unknown.
            time_ns: Capture time.
        """
        buffer = memoryview(data)
        link_end, kind, _ = read_link_header(buffer, LINK_RULES, link, 0, len(data))
        if kind < 0:
            return None
        sent_end = original or len(data)
        cursor = _Recorder(buffer, link_end, min(len(data), sent_end), sent_end, "", time_ns)
        try:
            self._tunnels.find_tcp(cursor, kind)
        except PacketSkipped:
            return None
        if cursor.is_reassembled:
            found = _joined(data, link_end, cursor)
        else:
            found = Located(
                bytearray(data),
                link_end,
                cursor.headers,
                cursor.at,
                cursor.end,
                sent_end,
                cursor.end < cursor.sent_end,
            )
        return found if found.tcp_at + _MIN_TCP_BYTES <= found.end else None


def _joined(data: bytes, link_end: int, cursor: _Recorder) -> Located:
    """Return a reassembled datagram as one packet, behind the headers of its last fragment."""
    count = len(cursor.headers) if cursor.outer_headers < 0 else cursor.outer_headers
    outer, inner = cursor.headers[:count], cursor.headers[count:]
    head = outer[-1][2]
    out = bytearray(data[:head]) + bytes(cursor.data)
    _forget_fragment(out, outer)
    more = len(out) - len(data)
    for form, at, _ in outer:
        _lengthen(out, form, at, more)
    headers = outer + [(form, at + head, end + head) for form, at, end in inner]
    missing = cursor.sent_end - cursor.end
    return Located(
        out, link_end, headers, head + cursor.at, head + cursor.end, len(out) + missing, missing > 0
    )


def _forget_fragment(out: bytearray, outer: list[tuple[struct.Struct | None, int, int]]) -> None:
    """Turn the innermost IP header into that of a whole packet."""
    form, at = next(
        (form, at) for form, at, _ in reversed(outer) if form in (IPV4_HEADER, EXTENSION_HEADER)
    )
    if form is IPV4_HEADER:
        out[at + 6 : at + 8] = bytes((out[at + 6] & 0x40, 0))
    else:
        out[at + 2 : at + 4] = bytes(2)


def _lengthen(out: bytearray, form: struct.Struct | None, at: int, more: int) -> None:
    """Add to the length in a header; 0 if it does not fit, as for offloaded packets."""
    place = {IPV4_HEADER: 2, IPV6_HEADER: 4, UDP_HEADER: 4}.get(form) if form is not None else None
    if place is None:
        return
    length = int.from_bytes(out[at + place : at + place + 2], "big") + more
    length = length if length <= _MAX_IP_BYTES else 0
    out[at + place : at + place + 2] = length.to_bytes(2, "big")
