"""
A packet with another payload, other addresses and right checksums.

Known fields of the headers stay; options are replaced by padding, except TCP options about the
connection only. Bytes after the segment become zeros.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from dissector.capture.iana_numbers import (
    AUTHENTICATION,
    ETHERNET,
    FRAGMENT,
    JUMBO_PAYLOAD_OPTION,
    LINUX_SLL,
    LINUX_SLL2,
)
from dissector.capture.packets.tunnels import (
    ETHERNET_HEADER,
    EXTENSION_HEADER,
    GENEVE_HEADER,
    IPV4_HEADER,
    IPV6_HEADER,
    UDP_HEADER,
)
from dissector.capture.writing.checksums import internet_checksum, tcp_checksum
from dissector.redaction.packets.located_headers import Located

_MAC_BYTES = 6
_LINK_ADDRESSES = {ETHERNET: (0, 6), LINUX_SLL: (6,), LINUX_SLL2: (12,)}
"""Positions of the addresses in a link header."""

_KEPT_OPTIONS = {2: 4, 3: 3, 4: 2, 8: 10}
"""Options of TCP, and their sizes: segment size, window scale, SACK permitted, timestamps."""
_SACK, _NO_OPERATION, _END_OF_OPTIONS = 5, 1, 0

_TCP_HEADER_BYTES = 20
_CHECKSUM_AT = 16

Replace = Callable[[bytes], bytes]


class PacketRedactor:
    """Replaces addresses and payload."""

    def __init__(self, address: Replace, mac: Replace) -> None:
        """
        Replace by functions.

        Args:
            address: Replaces 4 or 16 bytes of an IP address.
            mac: Replaces 6 bytes.
        """
        self._address = address
        self._mac = mac

    def redact(self, found: Located, link: int, payload: bytes) -> bytes:
        """Return the bytes of the packet; `payload` is as long as the captured one."""
        out = found.data
        for at in _LINK_ADDRESSES.get(link, ()):
            self._replace_mac(out, at)
        self._headers(out, found)
        _clean_options(out, found)
        start = found.payload_at
        out[start : found.end] = payload
        out[found.end :] = bytes(len(out) - found.end)
        _write_checksums(out, found)
        return bytes(out)

    def _headers(self, out: bytearray, found: Located) -> None:
        """Replace the addresses in the headers, and names in their options."""
        before: struct.Struct | None = None
        kind = 0
        for form, at, end in found.headers:
            if form is ETHERNET_HEADER:
                self._replace_mac(out, at)
                self._replace_mac(out, at + _MAC_BYTES)
            elif form is IPV4_HEADER:
                out[at + 12 : at + 16] = self._address(bytes(out[at + 12 : at + 16]))
                out[at + 16 : at + 20] = self._address(bytes(out[at + 16 : at + 20]))
            elif form is IPV6_HEADER:
                out[at + 8 : at + 24] = self._address(bytes(out[at + 8 : at + 24]))
                out[at + 24 : at + 40] = self._address(bytes(out[at + 24 : at + 40]))
                kind = out[at + 6]
            elif form is UDP_HEADER:
                out[at + 6 : at + 8] = bytes(2)
            elif form is EXTENSION_HEADER:
                is_jumbo = int.from_bytes(out[at + 2 : at + 4], "big") == JUMBO_PAYLOAD_OPTION
                if kind not in (FRAGMENT, AUTHENTICATION) and not (kind == 0 and is_jumbo):
                    out[at + 2 : end] = bytes(end - at - 2)
                kind = out[at]
            elif form is None and before in (IPV4_HEADER, EXTENSION_HEADER, GENEVE_HEADER):
                out[at:end] = bytes(end - at)
            before = form if form is not None else before

    def _replace_mac(self, out: bytearray, at: int) -> None:
        out[at : at + _MAC_BYTES] = self._mac(bytes(out[at : at + _MAC_BYTES]))


def _clean_options(out: bytearray, found: Located) -> None:
    """Replace the options of TCP that are not known by padding."""
    at, end = found.tcp_at + _TCP_HEADER_BYTES, found.payload_at
    while at < end:
        kind = out[at]
        if kind == _NO_OPERATION:
            at += 1
            continue
        size = out[at + 1] if at + 1 < end else 0
        is_known = _KEPT_OPTIONS.get(kind) == size or (kind == _SACK and size in (10, 18, 26, 34))
        if not is_known or at + size > end:
            rest = end - at if kind == _END_OF_OPTIONS or not 2 <= size <= end - at else size
            out[at : at + rest] = bytes((_NO_OPERATION,)) * rest
            at += rest
        else:
            at += size


def _write_checksums(out: bytearray, found: Located) -> None:
    """Write the checksums of the IP headers and of TCP; of a cut segment it is 0."""
    source = target = b""
    for form, at, _ in found.headers:
        if form is IPV4_HEADER:
            size = (out[at] & 15) * 4
            out[at + 10 : at + 12] = bytes(2)
            checksum = internet_checksum(bytes(out[at : at + size]))
            out[at + 10 : at + 12] = checksum.to_bytes(2, "big")
            source, target = bytes(out[at + 12 : at + 16]), bytes(out[at + 16 : at + 20])
        elif form is IPV6_HEADER:
            source, target = bytes(out[at + 8 : at + 24]), bytes(out[at + 24 : at + 40])
    place = found.tcp_at + _CHECKSUM_AT
    if place + 2 > found.end:
        return
    out[place : place + 2] = bytes(2)
    if not found.is_cut:
        checksum = tcp_checksum(source, target, bytes(out[found.tcp_at : found.end]))
        out[place : place + 2] = checksum.to_bytes(2, "big")
