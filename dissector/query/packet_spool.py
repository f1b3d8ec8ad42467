"""Stores fed packets as a pcapng file that is read like any other."""

from __future__ import annotations

import struct
import tempfile
import threading
from collections.abc import Iterable
from typing import Any, cast

from dissector.capture.formats.inputs import PositionedReader
from dissector.errors import UsageError
from dissector.query.fed_packets import FedPacket

NAME = "<packets>"
"""The name of fed packets among the files of a capture."""

_MEMORY_BYTES = 64 << 20
"""More packets than these are on disk, in a temporary file that only this user can read."""

_NANOSECONDS = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
"""The option `if_tsresol` of an interface, and the end of its options."""


class PacketSpool:
    """
    Packets in the order of feeding; any thread may add some.

    Source: draft-ietf-opsawg-pcapng-02 (Section Header, Interface Description, Enhanced Packet).
    """

    is_rereadable = True
    is_appended = True

    def __init__(self) -> None:
        self._file: Any = tempfile.SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115
        self._changed = threading.Condition()
        self._interfaces: dict[int, int] = {}
        self._size = 0
        self.is_closed = False
        self.is_stopped = False
        self._write(_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))

    def add(self, packets: Iterable[FedPacket]) -> None:
        """
        Add packets.

        Raises:
            UsageError: The capture is closed.
        """
        for packet in packets:
            with self._changed:
                if self.is_closed:
                    raise UsageError("the capture is closed; it takes no more packets")
                self._write(self._packet_block(packet))
                self._changed.notify_all()

    def open(self) -> PositionedReader:
        """
        Return a file with the packets so far.

        Raises:
            UsageError: The capture is closed.
        """
        self.check_open()
        end = self._size
        return PositionedReader(
            lambda position, count: self.read(position, min(count, end - position))
        )

    def check_open(self) -> None:
        """
        Check that the packets were not deleted.

        Raises:
            UsageError: The capture is closed.
        """
        if self.is_closed:
            raise UsageError("the capture is closed; its packets are gone")

    def stop(self) -> None:
        """Declare the end of the packets, so that followers end."""
        with self._changed:
            self.is_stopped = True
            self._changed.notify_all()

    def close(self) -> None:
        """Delete the packets."""
        self.stop()
        with self._changed:
            self.is_closed = True
            self._file.close()

    def wait(self, position: int, timeout_s: float) -> bool:
        """Wait for bytes after a position, or for the end; return whether there are any."""

        def is_ready() -> bool:
            return self._size > position or self.is_stopped

        with self._changed:
            return self._changed.wait_for(is_ready, timeout_s)

    def read(self, position: int, count: int) -> bytes:
        """Return bytes at a position; none at the end, and after `close`."""
        with self._changed:
            if self.is_closed:
                return b""
            self._file.seek(position)
            return cast(bytes, self._file.read(count))

    def _packet_block(self, packet: FedPacket) -> bytes:
        number = self._interfaces.get(packet.link)
        begin = b""
        if number is None:
            number = self._interfaces[packet.link] = len(self._interfaces)
            begin = _block(1, struct.pack("<HHI", packet.link, 0, 0) + _NANOSECONDS)
        ticks, size = packet.time_ns, len(packet.data)
        head = struct.pack("<IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, size, packet.size)
        return begin + _block(6, head + packet.data)

    def _write(self, data: bytes) -> None:
        self._file.seek(self._size)
        self._file.write(data)
        self._size += len(data)


class FollowedSpool:
    """Packets of a spool, present and future, until it is stopped."""

    is_rereadable = False
    is_appended = True

    def __init__(self, spool: PacketSpool) -> None:
        self._spool = spool

    def open(self) -> PositionedReader:
        """Return a file that waits for more packets at its end."""
        self._spool.check_open()
        return _Follower(self._spool)


class _Follower(PositionedReader):
    """Reads packets as they are fed; `poll` makes it a live source."""

    def __init__(self, spool: PacketSpool) -> None:
        super().__init__(spool.read)
        self._spool = spool

    def poll(self, timeout_s: float) -> bool:
        """Wait for packets, or the end; return whether there are any."""
        return self._spool.wait(self.position, timeout_s)


def _block(kind: int, body: bytes) -> bytes:
    """Return a block of pcapng."""
    padded = body + b"\0" * (-len(body) % 4)
    size = struct.pack("<I", len(padded) + 12)
    return struct.pack("<I", kind) + size + padded + size
