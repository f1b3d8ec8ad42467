"""Handshake messages of one direction, out of the records that carry them."""

from __future__ import annotations

from collections.abc import Iterator

MAX_MESSAGE_BYTES = 1 << 18
"""Longer handshake messages are skipped."""

_HEADER_BYTES = 4


class HandshakeBuffer:
    """
    Cuts the content of handshake records into messages.

    Attributes:
        pending: The bytes of an incomplete message.
        skipped: Messages that were skipped for their length.
    """

    __slots__ = ("_left", "pending", "skipped")

    def __init__(self) -> None:
        self.pending = b""
        self.skipped = 0
        self._left = 0

    def clear(self) -> None:
        """Drop an incomplete message with a lost rest."""
        self.pending, self._left = b"", 0

    def feed(self, content: bytes) -> Iterator[bytes]:
        """Yield the messages that are complete now, with their headers."""
        if self._left:
            skipped = min(self._left, len(content))
            self._left -= skipped
            content = content[skipped:]
        data = self.pending + content
        at = 0
        self.pending = b""
        while at + _HEADER_BYTES <= len(data):
            length = _HEADER_BYTES + int.from_bytes(data[at + 1 : at + 4], "big")
            if length > MAX_MESSAGE_BYTES:
                self.skipped += 1
                self._left = max(0, length - (len(data) - at))
                at = min(len(data), at + length)
                continue
            if at + length > len(data):
                break
            yield data[at : at + length]
            at += length
        self.pending = data[at:]
