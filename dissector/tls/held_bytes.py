"""The bytes of a stream that wait for the rest of their record, with their packets."""

from __future__ import annotations

Piece = tuple[bytes, int, int]
"""Bytes of a stream, the time and the number of their packet."""


class HeldBytes:
    """
    A queue of bytes.

    Attributes:
        pieces: The bytes of each packet.
        size: The number of all bytes.
    """

    __slots__ = ("pieces", "size")

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.size = 0

    def join(self) -> bytes:
        """Return all bytes."""
        pieces = self.pieces
        return pieces[0][0] if len(pieces) == 1 else b"".join([each[0] for each in pieces])

    def packet_of(self, end: int) -> tuple[int, int]:
        """Return time and packet of the byte before an offset."""
        for data, time_ns, packet in self.pieces:
            end -= len(data)
            if end <= 0:
                return time_ns, packet
        return self.newest_packet()

    def newest_packet(self) -> tuple[int, int]:
        """Return time and packet of the last byte."""
        return self.pieces[-1][1:] if self.pieces else (0, 0)

    def drop(self, count: int) -> None:
        """Drop bytes from the beginning."""
        self.size -= count
        pieces = self.pieces
        if not self.size:
            pieces.clear()
            return
        first = 0
        while count >= len(pieces[first][0]):
            count -= len(pieces[first][0])
            first += 1
        del pieces[:first]
        if count:
            data, time_ns, packet = pieces[0]
            pieces[0] = (data[count:], time_ns, packet)
