"""Frames in a stream of bytes that is forwarded, whether it is Kafka or not."""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol

from dissector.protocol.frame_limits import MAX_FRAME_BYTES

SIZE_BYTES = 4


class Treatment(Enum):
    """What is done with a frame."""

    PASSES = auto()
    """Its bytes are forwarded and recorded as they come."""
    WATCHED = auto()
    """Its bytes are forwarded as they come, and recorded when it is whole."""
    HELD = auto()
    """It is given to the owner when it is whole."""
    SKIPPED = auto()
    """Its bytes are forwarded as they come, and not recorded: it was too much to watch."""


class FrameOwner(Protocol):
    """
    One direction of a forwarded connection.

    Attributes:
        waits_for_end: Whether `end_frame` has something to do.
    """

    @property
    def waits_for_end(self) -> bool:
        """See above."""

    def begin(self, head: bytes) -> Treatment:
        """Choose the treatment of a frame by its first bytes, its size among them."""

    def forward(self, data: bytes) -> None:
        """Forward the bytes of a watched frame."""

    def forward_and_record(self, data: bytes) -> None:
        """Forward and record bytes that need no attention."""

    def skip(self, size: int) -> None:
        """Leave bytes out of the recording."""

    def finish(self, frame: bytes, treatment: Treatment) -> None:
        """Take a whole frame that is watched or held, with its size."""

    def end_frame(self) -> None:
        """Do what waits for the end of a frame."""

    def is_no_kafka(self) -> None:
        """Note that the stream has no frames from here on."""


class FrameSplitter:
    """
    Finds the frames in a stream, and keeps no byte of it longer than its owner wants.

    Args:
        owner: Chooses the treatment of each frame.
        head_bytes: The bytes by which it does; a shorter frame is shown whole.
        max_frame_bytes: A larger size is none: the rest of the stream passes.

    Attributes:
        held: The number of bytes kept for an unfinished frame.
        is_between: Whether the next byte begins a frame.
    """

    def __init__(
        self, owner: FrameOwner, head_bytes: int, max_frame_bytes: int = MAX_FRAME_BYTES
    ) -> None:
        self._owner = owner
        self._head_bytes = head_bytes
        self._max_frame_bytes = max_frame_bytes
        self._head = b""
        self._kept = bytearray()
        self._left = 0
        self._treatment = Treatment.PASSES
        self._has_frames = True

    @property
    def held(self) -> int:
        """See above."""
        return len(self._kept)

    @property
    def is_between(self) -> bool:
        """See above."""
        return not self._left and not self._head

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        data, self._head = self._head + data, b""
        at = run = 0  # the bytes from `run` to `at` pass
        while at < len(data) and self._has_frames:
            if not self._left and not self._begin(data[at : at + self._head_bytes]):
                break
            end = at + min(self._left, len(data) - at)
            if self._treatment is not Treatment.PASSES:
                self._pass(data[run:at])
                self._keep(data[at:end])
                run = end
            self._left -= end - at
            at = end
            if not self._left:
                self._finish()
                if self._owner.waits_for_end:
                    self._pass(data[run:at])
                    run = at
                    self._owner.end_frame()
        if self._has_frames:
            self._pass(data[run:at])
            self._head = data[at:]
        else:
            self._pass(data[run:])

    def release(self) -> None:
        """Keep nothing of the present frame: one that is held passes, a watched one is skipped."""
        if not self._kept:
            return
        kept, was_held = bytes(self._kept), self._treatment is Treatment.HELD
        self._kept.clear()
        self._treatment = Treatment.PASSES if was_held else Treatment.SKIPPED
        if was_held:
            self._pass(kept)
        else:
            self._owner.skip(len(kept))

    def stop(self) -> None:
        """Look for frames no more: what was kept of one, and all that follows, passes."""
        if self._treatment is Treatment.HELD:
            self.release()
        kept, head = bytes(self._kept), self._head
        self._has_frames, self._left, self._head = False, 0, b""
        self._kept.clear()
        if kept:
            self._owner.finish(kept, Treatment.WATCHED)
        self._pass(head)

    def _begin(self, head: bytes) -> bool:
        """Begin a frame; return whether there are enough bytes to know what it is."""
        if len(head) < SIZE_BYTES:
            return False
        size = int.from_bytes(head[:SIZE_BYTES], "big", signed=True)
        if not 0 <= size <= self._max_frame_bytes:
            self._has_frames = False
            self._owner.is_no_kafka()
            return False
        if len(head) < min(self._head_bytes, SIZE_BYTES + size):
            return False
        self._treatment = self._owner.begin(head[: SIZE_BYTES + size])
        self._left = SIZE_BYTES + size
        return self._has_frames

    def _keep(self, data: bytes) -> None:
        if self._treatment is not Treatment.SKIPPED:
            self._kept += data
        if self._treatment is not Treatment.HELD:
            self._owner.forward(data)
        if self._treatment is Treatment.SKIPPED:
            self._owner.skip(len(data))

    def _finish(self) -> None:
        if self._treatment in (Treatment.WATCHED, Treatment.HELD):
            frame = bytes(self._kept)
            self._kept.clear()
            self._owner.finish(frame, self._treatment)

    def _pass(self, data: bytes) -> None:
        if data:
            self._owner.forward_and_record(data)
