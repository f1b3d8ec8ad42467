"""
One direction of a connection is cut into frames.

A `Framer` takes ordered bytes and gaps and gives frames. It is *in step* while it knows where the
next frame begins. A gap inside a frame does not break step: the frame's size says where the next
one begins, so only that frame is damaged. When step is lost, the bytes are kept for whoever can
find the next believable frame (`Conversation`); what is passed over is counted, never guessed at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

MAX_FRAME_BYTES = 100 << 20
"""Larger frames are passed over; brokers refuse them too (socket.request.max.bytes)."""

MAX_OVERSIZED_HEAD_BYTES = 1 << 16
"""How much is kept of a frame that is passed over, to show its header."""

_SPENT_MARKS = 1024
"""How many marks that lie behind are left in the list before it is cleared of them."""


class Frame(NamedTuple):
    """
    A frame of one stream.

    Attributes:
        side: Who sent it: 0 or 1 as in `Chunks`.
        data: Its bytes without the size; fewer than `size` where some were not captured.
        size: What its size says.
        packet: The packet that completed it.
        time_ns: When that packet was captured.
        offset: Where its size begins in the stream.
        token: Whether it is a raw SASL token instead of a request; only the conversation can tell.
        broken_off: Whether the stream ended before the rest of it came.
    """

    side: int
    data: bytes
    size: int
    packet: int
    time_ns: int
    offset: int
    token: bool = False
    broken_off: bool = False


class PacketEnd(NamedTuple):
    """The end of what one packet brought, as an offset in the stream."""

    end: int
    packet: int
    time_ns: int


@dataclass(slots=True)
class DamagedFrame:
    """A frame that can't be complete, while the stream passes over the rest of it."""

    data: bytes
    size: int
    offset: int
    bytes_left: int
    is_emitted: bool = False


FrameValidator = Callable[[bytearray, int], bool]
"""Tells whether the stream should have a frame of this size at the beginning of its buffer."""


def _believe_none(buffer: bytearray, size: int) -> bool:
    """Say no: nobody has entered the stream."""
    return False


class Framer:
    """
    The bytes of one direction that are not yet cut.

    Attributes:
        buffer: Contiguous bytes, from offset `base` of the stream on.
        in_sync: Whether `buffer` begins with a frame.
        at_packet_start: Whether `buffer` begins with the first byte of a packet.
        scanned: Offset in the stream up to which no frame could be believed.
        tried_bytes: Bytes that were tried as frames in search of one, each as often as it was.
        checked_bytes: Bytes that were there of a request that is waited for, when it was last
            looked at.
        skipped: Bytes that were passed over because no frame could be believed in them.
        missing: Bytes that were not captured.
        entered: Offset in the stream at which frames were first believed; None before that.
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
        "scanned",
        "side",
        "skipped",
        "tried_bytes",
        "validate",
    )

    def __init__(self, side: int, limit: int = MAX_FRAME_BYTES) -> None:
        self.side = side
        self.limit = limit
        self.validate: FrameValidator = _believe_none
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

    @property
    def end(self) -> int:
        """Offset in the stream behind the last byte that came."""
        return self._packet_ends[-1].end if self._packet_ends else self.base

    @property
    def last_packet(self) -> int | None:
        """Number of the packet that brought the newest bytes; None before the first."""
        return self._packet_ends[-1].packet if self._packet_ends else None

    @property
    def end_of_buffer(self) -> int:
        """Offset in the stream behind the last byte in the buffer."""
        return self.base + len(self.buffer)

    @property
    def packet_ends(self) -> list[PacketEnd]:
        """The packets that brought what is in the buffer."""
        return [mark for mark in self._packet_ends[self._first_end :] if mark.end > self.base]

    def restore(
        self, base: int, buffer: bytes | bytearray, marks: list[PacketEnd], fresh: bool
    ) -> None:
        """Go on where another stream was; of the packets the newest is told in any case."""
        self.base = base
        self.buffer += buffer
        self.at_packet_start = fresh
        self._packet_ends = marks

    def add_data(self, data: bytes, packet: int, time_ns: int) -> None:
        """Take the next bytes."""
        mark = PacketEnd(self.end + len(data), packet, time_ns)
        self._packet_ends.append(mark)
        self.buffer += data[self._skip_damaged(len(data), mark) :]

    def add_gap(self, length: int, packet: int, time_ns: int) -> None:
        """Take note of bytes that were not captured."""
        self.missing += length
        mark = PacketEnd(self.end + length, packet, time_ns)
        self._packet_ends.append(mark)
        self._begin_damaged()
        beyond = length - self._skip_damaged(length, mark)
        if beyond:
            self.in_sync = False
            self.skip(len(self.buffer))
            self._move(beyond)
            self.scanned = self.base

    def next_frame(self) -> Frame | None:
        """Return the next frame, whole or damaged; None while it is not all there."""
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
        mark = self._packet_end_at(self.base + end)
        frame = Frame(
            self.side, bytes(self.buffer[4:end]), size, mark.packet, mark.time_ns, self.base
        )
        self._drop(end)
        return frame

    def finish(self) -> Frame | None:
        """Return the unfinished frame as a damaged one: the stream has ended."""
        broken_off = self.damaged is None
        self._begin_damaged()
        if self.damaged is None or self.damaged.is_emitted:
            return None
        frame = self._damaged(self.damaged, self._packet_ends[-1])
        self.damaged.is_emitted, self.damaged.data = True, b""
        return frame._replace(broken_off=broken_off)

    def sync_at(self, at: int, judge: FrameValidator) -> None:
        """Begin to cut at an offset of the buffer; what is before it is passed over."""
        self.skip(at)
        self.in_sync = True
        self.validate = judge
        if self.entered is None:
            self.entered = self.base

    def skip(self, count: int) -> None:
        """Give up the first bytes of the buffer: no frame is believed to begin in them."""
        self.skipped += count
        self._drop(count)

    def starts_packet(self, at: int) -> bool:
        """Tell whether a packet's bytes begin at this offset of the buffer."""
        return self.at_packet_start if at == 0 else self.ends_packet(at)

    def ends_packet(self, at: int) -> bool:
        """Tell whether a packet's bytes end at this offset of the buffer."""
        end = self.base + at
        number = self._packet_index(end)
        return number < len(self._packet_ends) and self._packet_ends[number].end == end

    def packet_starts(self) -> Iterator[int]:
        """Yield the offsets in the buffer at which packets begin."""
        if self.at_packet_start:
            yield 0
        for number in range(self._first_end, len(self._packet_ends) - 1):
            yield self._packet_ends[number].end - self.base

    def packet_at(self, at: int) -> int:
        """Return the number of the packet that brought the byte before an offset of the buffer."""
        return self._packet_end_at(self.base + at).packet

    def offset_before_packet(self, packet: int, at: int) -> int:
        """Return the offset, from `at` on, up to which only earlier packets brought the bytes."""
        for number in range(self._packet_index(self.base + at + 1), len(self._packet_ends)):
            if self._packet_ends[number].packet >= packet:
                return max(at, self._packet_ends[number - 1].end - self.base if number else at)
        return len(self.buffer)

    def _begin_damaged(self) -> None:
        """Turn the unfinished frame at the beginning of the buffer into a cut one."""
        if self.damaged is not None or not self.in_sync or len(self.buffer) < 4:
            return
        size = int.from_bytes(self.buffer[:4], "big", signed=True)
        if not self.validate(self.buffer, size):
            return
        if size > self.limit and len(self.buffer) < 8:
            # Nothing but a size that can't be one.
            self.in_sync = False
            self.scanned = self.base
            return
        there = min(4 + size, len(self.buffer))
        kept = (
            min(there, 4 + min(MAX_OVERSIZED_HEAD_BYTES, self.limit))
            if size > self.limit
            else there
        )
        self.damaged = DamagedFrame(bytes(self.buffer[4:kept]), size, self.base, 4 + size - there)
        mark = self._packet_end_at(self.base + there)
        self._drop(there)
        self._skip_damaged(0, mark)

    def _skip_damaged(self, length: int, mark: PacketEnd) -> int:
        """Move through the rest of a cut frame; return how many of these bytes belonged to it."""
        if self.damaged is None:
            return 0
        passed = min(self.damaged.bytes_left, length)
        self.damaged.bytes_left -= passed
        self._move(passed)
        if self.damaged.bytes_left == 0:
            if not self.damaged.is_emitted:
                self.damaged_frames.append(self._damaged(self.damaged, mark))
            self.damaged = None
        return passed

    def _damaged(self, cut: DamagedFrame, mark: PacketEnd) -> Frame:
        return Frame(self.side, cut.data, cut.size, mark.packet, mark.time_ns, cut.offset)

    def _packet_end_at(self, end: int) -> PacketEnd:
        return self._packet_ends[self._packet_index(end)]

    def _packet_index(self, end: int) -> int:
        """Return the index of the packet that brought the byte before an offset in the stream."""
        marks, first = self._packet_ends, self._first_end
        if first < len(marks) and marks[first].end >= end:
            return first
        return bisect_left(marks, (end,), lo=first)

    def _drop(self, count: int) -> None:
        if count:
            del self.buffer[:count]
            self._move(count)

    def _move(self, count: int) -> None:
        """Move `base` on, and forget the packets that lie behind it (the newest is kept)."""
        if not count:
            return
        self.base += count
        self.at_packet_start = False
        marks = self._packet_ends
        while marks[self._first_end].end <= self.base:
            self.at_packet_start = marks[self._first_end].end == self.base
            if self._first_end == len(marks) - 1:
                break
            self._first_end += 1
        if self._first_end > _SPENT_MARKS and self._first_end > len(marks) // 2:
            del marks[: self._first_end]
            self._first_end = 0
