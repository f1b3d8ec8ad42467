"""
Frames one direction of a connection.

A `Framer` takes ordered bytes and gaps and returns frames. It is *in sync* while it knows the
beginning of the next frame. A gap inside a frame does not lose sync: the frame's size determines
the next one, so only that frame is damaged. When sync is lost, the bytes are retained until the
caller finds the next plausible frame (`ConnectionCorrelator`); skipped bytes are counted, never
interpreted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from dissector.engine.correlation.unframed_bytes import MAX_PREFACE_BYTES
from dissector.protocol.frame_limits import MAX_FRAME_BYTES

MAX_OVERSIZED_HEAD_BYTES = 1 << 16
"""Bytes retained of a frame skipped for its size, to show its header."""

_MAX_SPENT_ENDS = 1024
"""Packet ends after `base` that may stay in the list before they are removed."""


class Frame(NamedTuple):
    """
    A frame of one stream.

    Attributes:
        side: The sender: 0 or 1 as in `Chunks`.
        data: Its bytes without the size; fewer than `size` where some were not captured.
        size: Its declared size.
        packet: The packet that completed it.
        time_ns: When that packet was captured.
        offset: Offset of its size in the stream.
        token: Whether it is a raw SASL token instead of a request; set by the connection's
            correlator.
        broken_off: Whether the stream ended within the frame.
        entry: Its entry in the state tables, which is retained until the frame is emitted; -1
            without one.
        in_login: Whether it looks like a request, but may be a raw SASL token: no response has
            shown that the login is over.
        begun_ns: When the packet with its first byte was captured.
    """

    side: int
    data: bytes
    size: int
    packet: int
    time_ns: int
    offset: int
    token: bool = False
    broken_off: bool = False
    entry: int = -1
    in_login: bool = False
    begun_ns: int = 0


class PacketEnd(NamedTuple):
    """The end of a packet's bytes, as an offset in the stream."""

    end: int
    packet: int
    time_ns: int


@dataclass(slots=True, eq=False, repr=False)
class DamagedFrame:
    """A frame that can't be complete, while the framer skips the rest of it."""

    data: bytes
    size: int
    offset: int
    begun_ns: int
    bytes_left: int
    is_emitted: bool = False


FrameValidator = Callable[[bytearray, int], bool]
"""Returns whether a frame of this size at the beginning of the buffer is plausible."""


def _reject_all(buffer: bytearray, size: int) -> bool:
    """Reject all frames: the framer is not synchronised yet."""
    return False


class Framer:
    """
    The bytes of one direction that are not framed yet.

    Attributes:
        buffer: Contiguous bytes, from offset `base` of the stream on.
        in_sync: Whether `buffer` begins with a frame.
        at_packet_start: Whether `buffer` begins with the first byte of a packet.
        scanned: Offset in the stream up to which no plausible frame was found.
        tried_bytes: Bytes that were tried as frames in search of one, counted at each try.
        checked_bytes: Available bytes of an awaited request at its last check.
        skipped: Bytes that were skipped because they hold no plausible frame.
        missing: Bytes that were not captured.
        entered: Offset in the stream of the first plausible frame; None before that.
        preface: The first bytes of the stream, if they hold no plausible frame.
    """

    __slots__ = (
        "_first_end",
        "_packet_ends",
        "at_packet_start",
        "base",
        "buffer",
        "checked_bytes",
        "damaged",
        "damaged_frames",
        "entered",
        "in_sync",
        "limit",
        "missing",
        "preface",
        "scanned",
        "side",
        "skipped",
        "tried_bytes",
        "validate",
    )

    def __init__(self, side: int, limit: int = MAX_FRAME_BYTES) -> None:
        self.side = side
        self.limit = limit
        self.validate: FrameValidator = _reject_all
        self.buffer = bytearray()
        self.base = 0
        self.in_sync = False
        self.at_packet_start = True
        self._packet_ends: list[PacketEnd] = []
        self._first_end = 0
        self.damaged: DamagedFrame | None = None
        self.damaged_frames: list[Frame] = []
        self.scanned = 0
        self.skipped = 0
        self.tried_bytes = 0
        self.checked_bytes = 0
        self.missing = 0
        self.entered: int | None = None
        self.preface = b""

    @property
    def end(self) -> int:
        """Offset in the stream after the last received byte."""
        return self._packet_ends[-1].end if self._packet_ends else self.base

    @property
    def last_packet(self) -> int | None:
        """Number of the packet that brought the newest bytes; None before the first."""
        return self._packet_ends[-1].packet if self._packet_ends else None

    @property
    def first_time_ns(self) -> int:
        """When the packet with the first byte in the buffer was captured; there is one."""
        return self._packet_end_at(self.base + 1).time_ns

    @property
    def end_of_buffer(self) -> int:
        """Offset in the stream after the last byte in the buffer."""
        return self.base + len(self.buffer)

    @property
    def packet_ends(self) -> list[PacketEnd]:
        """The packets of the bytes in the buffer."""
        return [each for each in self._packet_ends[self._first_end :] if each.end > self.base]

    def restore(
        self,
        base: int,
        buffer: bytes | bytearray,
        packet_ends: list[PacketEnd],
        at_packet_start: bool,
    ) -> None:
        """Continue a stream of the fast path; `packet_ends` has the newest packet in any case."""
        self.base = base
        self.buffer += buffer
        self.at_packet_start = at_packet_start
        self._packet_ends = packet_ends

    def add_data(self, data: bytes, packet: int, time_ns: int) -> None:
        """Add the next bytes."""
        packet_end = PacketEnd(self.end + len(data), packet, time_ns)
        self._packet_ends.append(packet_end)
        self.buffer += data[self._skip_damaged(len(data), packet_end) :]

    def add_gap(self, length: int, packet: int, time_ns: int) -> None:
        """Record bytes that were not captured."""
        self.missing += length
        packet_end = PacketEnd(self.end + length, packet, time_ns)
        self._packet_ends.append(packet_end)
        self._begin_damaged()
        beyond = length - self._skip_damaged(length, packet_end)
        if beyond:
            self.in_sync = False
            self.skip(len(self.buffer))
            self._move(beyond)
            self.scanned = self.base

    def next_frame(self) -> Frame | None:
        """Return the next frame, complete or damaged; None until it is available."""
        if self.damaged_frames:
            return self.damaged_frames.pop(0)
        if not self.in_sync or self.damaged is not None or len(self.buffer) < 4:
            return None
        size = int.from_bytes(self.buffer[:4], "big", signed=True)
        if not self.validate(self.buffer, size):
            self.in_sync = False
            self.scanned = self.base
            return None
        if size > self.limit:
            self._begin_damaged()
            return self.damaged_frames.pop(0) if self.damaged_frames else None
        end = 4 + size
        if end > len(self.buffer):
            return None
        packet_end = self._packet_end_at(self.base + end)
        frame = Frame(
            self.side,
            bytes(self.buffer[4:end]),
            size,
            packet_end.packet,
            packet_end.time_ns,
            self.base,
            begun_ns=self.first_time_ns,
        )
        self._drop(end)
        return frame

    def damaged_frame(self) -> Frame:
        """Return the captured bytes of the damaged frame before the skipped rest."""
        assert self.damaged is not None
        return self._as_frame(self.damaged, self._packet_ends[-1])

    @property
    def unfinished_id(self) -> int | None:
        """The correlation id of the unfinished or damaged request; None without one."""
        data: bytes | bytearray = b""
        if self.damaged is not None:
            data = b"" if self.damaged.is_emitted else self.damaged.data[4:8]
        elif self.in_sync:
            data = bytes(self.buffer[8:12])
        return int.from_bytes(data, "big", signed=True) if len(data) == 4 else None

    def finish(self) -> Frame | None:
        """Return the unfinished frame as a damaged one: the stream has ended."""
        broken_off = self.damaged is None
        self._begin_damaged()
        if self.damaged is None or self.damaged.is_emitted:
            return None
        frame = self._as_frame(self.damaged, self._packet_ends[-1])
        self.damaged.is_emitted, self.damaged.data = True, b""
        return frame._replace(broken_off=broken_off)

    def sync_at(self, at: int, judge: FrameValidator) -> None:
        """Start framing at an offset of the buffer; the bytes before it are skipped."""
        self.skip(at)
        self.in_sync = True
        self.validate = judge
        if self.entered is None:
            self.entered = self.base

    def skip(self, count: int) -> None:
        """Skip the first bytes of the buffer, which contain no plausible frame."""
        self.skipped += count
        if self.base == 0 and count:
            self.preface = bytes(self.buffer[: min(count, MAX_PREFACE_BYTES)])
        self._drop(count)
        self.scanned = max(self.scanned, self.base)

    def starts_packet(self, at: int) -> bool:
        """Return whether a packet's bytes begin at this offset of the buffer."""
        return self.at_packet_start if at == 0 else self.ends_packet(at)

    def ends_packet(self, at: int) -> bool:
        """Return whether a packet's bytes end at this offset of the buffer."""
        end = self.base + at
        number = self._packet_index(end)
        return number < len(self._packet_ends) and self._packet_ends[number].end == end

    def packet_starts(self) -> Iterator[int]:
        """Yield the offsets of packets in the buffer."""
        if self.at_packet_start:
            yield 0
        for number in range(self._first_end, len(self._packet_ends) - 1):
            yield self._packet_ends[number].end - self.base

    def packet_end_at(self, at: int) -> PacketEnd:
        """Return the packet with the byte before an offset of the buffer."""
        return self._packet_end_at(self.base + at)

    def packet_at(self, at: int) -> int:
        """Return the number of the packet with the byte before an offset of the buffer."""
        return self._packet_end_at(self.base + at).packet

    def offset_before_packet(self, packet: int, at: int) -> int:
        """Return the offset, from `at` on, of the first byte of a later packet."""
        for number in range(self._packet_index(self.base + at + 1), len(self._packet_ends)):
            if self._packet_ends[number].packet >= packet:
                return max(at, self._packet_ends[number - 1].end - self.base if number else at)
        return len(self.buffer)

    def _begin_damaged(self) -> None:
        """Turn the unfinished frame at the beginning of the buffer into a damaged one."""
        if self.damaged is not None or not self.in_sync or len(self.buffer) < 4:
            return
        size = int.from_bytes(self.buffer[:4], "big", signed=True)
        if not self.validate(self.buffer, size):
            return
        if size > self.limit and len(self.buffer) < 8:
            # There is only a size, and it is impossible.
            self.in_sync = False
            self.scanned = self.base
            return
        available = min(4 + size, len(self.buffer))
        head_end = (
            min(available, 4 + min(MAX_OVERSIZED_HEAD_BYTES, self.limit))
            if size > self.limit
            else available
        )
        self.damaged = DamagedFrame(
            bytes(self.buffer[4:head_end]),
            size,
            self.base,
            self.first_time_ns,
            4 + size - available,
        )
        packet_end = self._packet_end_at(self.base + available)
        self._drop(available)
        self._skip_damaged(0, packet_end)

    def _skip_damaged(self, length: int, packet_end: PacketEnd) -> int:
        """Skip the rest of a damaged frame; return the number of these bytes in the frame."""
        if self.damaged is None:
            return 0
        skipped = min(self.damaged.bytes_left, length)
        self.damaged.bytes_left -= skipped
        self._move(skipped)
        if self.damaged.bytes_left == 0:
            if not self.damaged.is_emitted:
                self.damaged_frames.append(self._as_frame(self.damaged, packet_end))
            self.damaged = None
        return skipped

    def _as_frame(self, frame: DamagedFrame, packet_end: PacketEnd) -> Frame:
        return Frame(
            self.side,
            frame.data,
            frame.size,
            packet_end.packet,
            packet_end.time_ns,
            frame.offset,
            begun_ns=frame.begun_ns,
        )

    def _packet_end_at(self, end: int) -> PacketEnd:
        return self._packet_ends[self._packet_index(end)]

    def _packet_index(self, end: int) -> int:
        """Return the index of the packet with the byte before an offset in the stream."""
        ends, first = self._packet_ends, self._first_end
        if first < len(ends) and ends[first].end >= end:
            return first
        return bisect_left(ends, (end,), lo=first)

    def _drop(self, count: int) -> None:
        if count:
            del self.buffer[:count]
            self._move(count)

    def _move(self, count: int) -> None:
        """Advance `base`, and drop earlier packets (the newest is retained)."""
        if not count:
            return
        self.base += count
        self.at_packet_start = False
        ends = self._packet_ends
        while ends[self._first_end].end <= self.base:
            self.at_packet_start = ends[self._first_end].end == self.base
            if self._first_end == len(ends) - 1:
                break
            self._first_end += 1
        if self._first_end > _MAX_SPENT_ENDS and self._first_end > len(ends) // 2:
            del ends[: self._first_end]
            self._first_end = 0
