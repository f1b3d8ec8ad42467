"""
Packets for connections that were encrypted: their plaintext as plain TCP.

Each message becomes segments of its own at the time when it was complete, between a handshake at
the first packet and the ends where the connection had them.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dissector.capture.addresses import IPV4_MAPPED
from dissector.capture.columns import ACK, FIN, RST, SYN
from dissector.capture.iana_numbers import IPV4, IPV6, TCP
from dissector.capture.writing.checksums import internet_checksum, tcp_checksum

_SEGMENT_BYTES = 1400
_FIRST_SEQUENCE = 1000
_PUSH = 8
_WINDOW = 65535
_MACS = bytes((2, 0, 0, 0, 0, 1)), bytes((2, 0, 0, 0, 0, 2))

Endpoint = tuple[int, int, int]
"""The halves of an address as IPv6, and a port."""


def socket_endpoint(address: Sequence[Any]) -> Endpoint:
    """Return the endpoint of a socket address: host, port, and more of IPv6."""
    found = ipaddress.ip_address(str(address[0]).partition("%")[0])
    number = int(found) if found.version == 6 else IPV4_MAPPED | int(found)
    return number >> 64, number & (1 << 64) - 1, int(address[1])


class PlainMessage(NamedTuple):
    """
    A message of a connection that was decrypted.

    Attributes:
        side: Its sender.
        offset: Where it begins in the plaintext.
        length: Its captured bytes.
        size: Its bytes, uncaptured ones included.
    """

    side: int
    offset: int
    length: int
    size: int


@dataclass(slots=True)
class PlainConnection:
    """
    The state of a connection while its packets are made.

    Attributes:
        a: The replaced endpoint that opened it.
        b: The other one.
        sent: How many bytes of the stream each side has sent.
        ends: FIN and RST of each side so far.
        is_open: Whether the handshake was written.
        segment_bytes: Most bytes in a segment.
        first_sequence: The sequence number of both handshakes.
    """

    a: Endpoint
    b: Endpoint
    sent: list[int] = field(default_factory=lambda: [0, 0])
    ends: list[int] = field(default_factory=lambda: [0, 0])
    is_open: bool = False
    segment_bytes: int = _SEGMENT_BYTES
    first_sequence: int = _FIRST_SEQUENCE

    def open(self) -> Iterator[bytes]:
        """Yield the handshake, once."""
        if not self.is_open:
            self.is_open = True
            yield self._packet(0, SYN, -1, b"")
            yield self._packet(1, SYN | ACK, -1, b"")
            yield self._packet(0, ACK, 0, b"")

    def message(self, message: PlainMessage, data: bytes) -> Iterator[bytes]:
        """Yield the segments of a message."""
        for at in range(0, len(data), self.segment_bytes):
            piece = data[at : at + self.segment_bytes]
            yield self._packet(message.side, ACK | _PUSH, message.offset + at, piece)
        self.sent[message.side] = max(self.sent[message.side], message.offset + message.size)

    def end(self, side: int, flags: int) -> Iterator[bytes]:
        """Yield the end of a side: a FIN and a RST at most, as a client may send both."""
        new = flags & (FIN | RST) & ~self.ends[side]
        if new:
            # A FIN takes a sequence number.
            offset = self.sent[side] + bool(self.ends[side] & FIN)
            self.ends[side] |= new
            yield self._packet(side, new | ACK, offset, b"")

    def _packet(self, side: int, flags: int, offset: int, payload: bytes) -> bytes:
        source, target = (self.a, self.b)[:: 1 - 2 * side]
        seq = self.first_sequence + 1 + offset & 0xFFFFFFFF
        is_first = flags & (SYN | ACK) == SYN
        ack = 0 if is_first else self.first_sequence + 1 + self.sent[1 - side] & 0xFFFFFFFF
        ports = source[2], target[2]
        head = struct.pack(">HHIIBBHHH", *ports, seq, ack, 0x50, flags, _WINDOW, 0, 0)
        raw_source, raw_target = _raw(source), _raw(target)
        checksum = tcp_checksum(raw_source, raw_target, head + payload)
        segment = head[:16] + checksum.to_bytes(2, "big") + head[18:] + payload
        ip = _ip_header(raw_source, raw_target, len(segment))
        kind = IPV4 if len(raw_source) == 4 else IPV6
        return b"".join((_MACS[1 - side], _MACS[side], kind.to_bytes(2, "big"), ip, segment))


def _raw(end: Endpoint) -> bytes:
    high, low, _ = end
    if high == 0 and low >> 32 == IPV4_MAPPED >> 32:
        return (low & 0xFFFFFFFF).to_bytes(4, "big")
    return (high << 64 | low).to_bytes(16, "big")


def _ip_header(source: bytes, target: bytes, length: int) -> bytes:
    if len(source) == 16:
        return struct.pack(">IHBB", 6 << 28, length, TCP, 64) + source + target
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + length, 0, 0x4000, 64, TCP, 0) + source + target
    return head[:10] + internet_checksum(head).to_bytes(2, "big") + head[12:]
