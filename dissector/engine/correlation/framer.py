"""
One direction of a connection is cut into frames.

A `Stream` takes ordered bytes and gaps and gives frames. It is *in step* while it knows where the
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

KEPT_BYTES = 1 << 16
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


class Mark(NamedTuple):
    """The end of what one packet brought, as an offset in the stream."""

    end: int
    packet: int
    time_ns: int


@dataclass(slots=True)
class Cut:
    """A frame that can't be complete, while the stream passes over the rest of it."""

    data: bytes
    size: int
    offset: int
    left: int
    told: bool = False


Judge = Callable[[bytearray, int], bool]
"""Tells whether the stream should have a frame of this size at the beginning of its buffer."""


def _believe_none(buffer: bytearray, size: int) -> bool:
    """Say no: nobody has entered the stream."""
    return False


class Stream:
    """
    The bytes of one direction that are not yet cut.

    Attributes:
        buffer: Contiguous bytes, from offset `base` of the stream on.
        in_step: Whether `buffer` begins with a frame.
        fresh: Whether `buffer` begins with the first byte of a packet.
        scanned: Offset in the stream up to which no frame could be believed.
        tried: Bytes that were tried as frames in search of one, each as often as it was.
        weighed: Bytes that were there of a request that is waited for, when it was last looked at.
        skipped: Bytes that were passed over because no frame could be believed in them.
        missing: Bytes that were not captured.
        entered: Offset in the stream at which frames were first believed; None before that.
    """

    __slots__ = (
        "_behind",
        "_marks",
        "base",
        "buffer",
        "cut",
        "done",
        "entered",
        "fresh",
        "in_step",
        "judge",
        "limit",
        "missing",
        "scanned",
        "side",
        "skipped",
        "tried",
        "weighed",
    )

    def __init__(self, side: int, limit: int = MAX_FRAME_BYTES) -> None:
        self.side = side
        self.limit = limit
        self.judge: Judge = _believe_none
        self.buffer = bytearray()
        self.base = 0
        self.in_step = False
        self.fresh = True
        self._marks: list[Mark] = []
        self._behind = 0
        self.cut: Cut | None = None
        self.done: list[Frame] = []
        self.scanned = 0
        self.skipped = 0
        self.tried = 0
        self.weighed = 0
        self.missing = 0
        self.entered: int | None = None

    @property
    def end(self) -> int:
        """Offset in the stream behind the last byte that came."""
        return self._marks[-1].end if self._marks else self.base

    @property
    def last_packet(self) -> int | None:
        """Number of the packet that brought the newest bytes; None before the first."""
        return self._marks[-1].packet if self._marks else None

    @property
    def end_of_buffer(self) -> int:
        """Offset in the stream behind the last byte in the buffer."""
        return self.base + len(self.buffer)

    @property
    def marks(self) -> list[Mark]:
        """The packets that brought what is in the buffer."""
        return [mark for mark in self._marks[self._behind :] if mark.end > self.base]

    def resume(self, base: int, buffer: bytes | bytearray, marks: list[Mark], fresh: bool) -> None:
        """Go on where another stream was; of the packets the newest is told in any case."""
        self.base = base
        self.buffer += buffer
        self.fresh = fresh
        self._marks = marks

    def add(self, data: bytes, packet: int, time_ns: int) -> None:
        """Take the next bytes."""
        mark = Mark(self.end + len(data), packet, time_ns)
        self._marks.append(mark)
        self.buffer += data[self._pass_cut(len(data), mark) :]

    def lose(self, length: int, packet: int, time_ns: int) -> None:
        """Take note of bytes that were not captured."""
        self.missing += length
        mark = Mark(self.end + length, packet, time_ns)
        self._marks.append(mark)
        self._begin_cut()
        beyond = length - self._pass_cut(length, mark)
        if beyond:
            self.in_step = False
            self.pass_over(len(self.buffer))
            self._move(beyond)
            self.scanned = self.base

    def next_frame(self) -> Frame | None:
        """Return the next frame, whole or damaged; None while it is not all there."""
        if self.done:
            return self.done.pop(0)
        if not self.in_step or self.cut is not None or len(self.buffer) < 4:
            return None
        size = int.from_bytes(self.buffer[:4], "big", signed=True)
        if not self.judge(self.buffer, size):
            self.in_step = False
            self.scanned = self.base
            return None
        if size > self.limit:
            self._begin_cut()
            return self.done.pop(0) if self.done else None
        end = 4 + size
        if end > len(self.buffer):
            return None
        mark = self._mark_at(self.base + end)
        frame = Frame(
            self.side, bytes(self.buffer[4:end]), size, mark.packet, mark.time_ns, self.base
        )
        self._drop(end)
        return frame

    def finish(self) -> Frame | None:
        """Return the unfinished frame as a damaged one: the stream has ended."""
        broken_off = self.cut is None
        self._begin_cut()
        if self.cut is None or self.cut.told:
            return None
        frame = self._damaged(self.cut, self._marks[-1])
        self.cut.told, self.cut.data = True, b""
        return frame._replace(broken_off=broken_off)

    def enter(self, at: int, judge: Judge) -> None:
        """Begin to cut at an offset of the buffer; what is before it is passed over."""
        self.pass_over(at)
        self.in_step = True
        self.judge = judge
        if self.entered is None:
            self.entered = self.base

    def pass_over(self, count: int) -> None:
        """Give up the first bytes of the buffer: no frame is believed to begin in them."""
        self.skipped += count
        self._drop(count)

    def starts_packet(self, at: int) -> bool:
        """Tell whether a packet's bytes begin at this offset of the buffer."""
        return self.fresh if at == 0 else self.ends_packet(at)

    def ends_packet(self, at: int) -> bool:
        """Tell whether a packet's bytes end at this offset of the buffer."""
        end = self.base + at
        number = self._mark_number(end)
        return number < len(self._marks) and self._marks[number].end == end

    def packet_starts(self) -> Iterator[int]:
        """Yield the offsets in the buffer at which packets begin."""
        if self.fresh:
            yield 0
        for number in range(self._behind, len(self._marks) - 1):
            yield self._marks[number].end - self.base

    def packet_at(self, at: int) -> int:
        """Return the number of the packet that brought the byte before an offset of the buffer."""
        return self._mark_at(self.base + at).packet

    def before_packet(self, packet: int, at: int) -> int:
        """Return the offset, from `at` on, up to which only earlier packets brought the bytes."""
        for number in range(self._mark_number(self.base + at + 1), len(self._marks)):
            if self._marks[number].packet >= packet:
                return max(at, self._marks[number - 1].end - self.base if number else at)
        return len(self.buffer)

    def _begin_cut(self) -> None:
        """Turn the unfinished frame at the beginning of the buffer into a cut one."""
        if self.cut is not None or not self.in_step or len(self.buffer) < 4:
            return
        size = int.from_bytes(self.buffer[:4], "big", signed=True)
        if not self.judge(self.buffer, size):
            return
        if size > self.limit and len(self.buffer) < 8:
            # Nothing but a size that can't be one.
            self.in_step = False
            self.scanned = self.base
            return
        there = min(4 + size, len(self.buffer))
        kept = min(there, 4 + min(KEPT_BYTES, self.limit)) if size > self.limit else there
        self.cut = Cut(bytes(self.buffer[4:kept]), size, self.base, 4 + size - there)
        mark = self._mark_at(self.base + there)
        self._drop(there)
        self._pass_cut(0, mark)

    def _pass_cut(self, length: int, mark: Mark) -> int:
        """Move through the rest of a cut frame; return how many of these bytes belonged to it."""
        if self.cut is None:
            return 0
        passed = min(self.cut.left, length)
        self.cut.left -= passed
        self._move(passed)
        if self.cut.left == 0:
            if not self.cut.told:
                self.done.append(self._damaged(self.cut, mark))
            self.cut = None
        return passed

    def _damaged(self, cut: Cut, mark: Mark) -> Frame:
        return Frame(self.side, cut.data, cut.size, mark.packet, mark.time_ns, cut.offset)

    def _mark_at(self, end: int) -> Mark:
        return self._marks[self._mark_number(end)]

    def _mark_number(self, end: int) -> int:
        """Return the index of the packet that brought the byte before an offset in the stream."""
        marks, first = self._marks, self._behind
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
        self.fresh = False
        marks = self._marks
        while marks[self._behind].end <= self.base:
            self.fresh = marks[self._behind].end == self.base
            if self._behind == len(marks) - 1:
                break
            self._behind += 1
        if self._behind > _SPENT_MARKS and self._behind > len(marks) // 2:
            del marks[: self._behind]
            self._behind = 0
