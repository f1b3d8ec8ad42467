"""A client of one of our servers can make it hold and do a bounded amount only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cluster.client.listener import UnfinishedFrames
from cluster.client.served_frames import ServedFrames
from tests.cluster.client.test_transport import RecordingTransport

FRAME = b"\0\0\0\4abcd"
UNFINISHED = b"\0\0\xff\xff"


class PausableTransport(RecordingTransport):
    """Records whether it is read."""

    is_read = True

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True


class Side:
    """A connection with its transport, and what it got."""

    def __init__(self, unfinished: UnfinishedFrames | None = None) -> None:
        self.frames: list[bytes] = []
        self.losses: list[str] = []
        self.full: list[bool] = []
        self.unfinished = unfinished or UnfinishedFrames(1 << 20)
        self.connection = ServedFrames(
            self.frames.append,
            lambda what, advice: self.losses.append(what),
            self.unfinished,
            self.full.append,
        )
        self.transport = PausableTransport()

    def begin(self) -> None:
        self.connection.connection_made(self.transport)


def in_a_loop(check: Callable[[], object]) -> None:
    async def main() -> None:
        check()

    asyncio.run(main())


def test_frames_of_one_connection_leave_turns_to_others() -> None:
    async def main() -> None:
        busy, other = Side(), Side()
        busy.begin()
        other.begin()
        busy.connection.data_received(FRAME * 1000 + FRAME[:6])
        first = len(busy.frames)
        assert 0 < first < 200
        assert not busy.transport.is_read
        other.connection.data_received(FRAME)
        assert other.frames == [b"abcd"]
        turns = 0
        while len(busy.frames) < 1000:
            before = len(busy.frames)
            await asyncio.sleep(0)
            turns += 1
            assert len(busy.frames) - before <= first
        assert turns >= 5
        await asyncio.sleep(0)
        assert busy.transport.is_read
        busy.connection.data_received(FRAME[6:])
        assert len(busy.frames) == 1001

    asyncio.run(main())


def test_a_paused_connection_is_not_read_until_each_reason_has_ended() -> None:
    def check() -> None:
        side = Side()
        side.connection.pause("connecting")
        side.begin()
        assert not side.transport.is_read
        side.connection.pause("full")
        side.connection.resume("connecting")
        side.connection.resume("unknown")
        assert not side.transport.is_read
        side.connection.resume("full")
        assert side.transport.is_read

    in_a_loop(check)


def test_what_comes_during_a_pause_is_kept() -> None:
    def check() -> None:
        side = Side()
        side.connection.pause("connecting")
        side.begin()
        side.connection.data_received(FRAME)  # early Pythons 3.11 read on
        assert side.frames == []
        side.connection.resume("connecting")
        assert len(side.frames) == 1

    in_a_loop(check)


def test_a_peer_that_does_not_read_is_told() -> None:
    def check() -> None:
        side = Side()
        side.begin()
        side.connection.pause_writing()
        side.connection.resume_writing()
        assert side.full == [True, False]

    in_a_loop(check)


def test_the_largest_unfinished_frame_of_too_many_is_dropped() -> None:
    def check() -> None:
        unfinished = UnfinishedFrames(100)
        small, large, last = (Side(unfinished) for _ in range(3))
        for side in (small, large, last):
            side.begin()
        small.connection.data_received(UNFINISHED + bytes(16))
        large.connection.data_received(UNFINISHED + bytes(66))
        assert unfinished.total == 90
        last.connection.data_received(UNFINISHED + bytes(6))
        last.connection.data_received(bytes(1))
        assert large.losses == ["sent too many bytes of unfinished frames"]
        assert large.transport.end == "aborted"
        assert not small.losses
        assert not last.losses
        assert unfinished.total == 31
        large.connection.connection_lost(None)
        last.connection.connection_lost(None)
        assert unfinished.total == 20
        small.connection.data_received(bytes(0xFFFF - 16 + 3))
        assert unfinished.total == 3
        assert len(small.frames) == 1

    in_a_loop(check)


def test_a_frame_beyond_the_limit_alone_is_dropped() -> None:
    def check() -> None:
        side = Side(UnfinishedFrames(100))
        side.begin()
        side.connection.data_received(UNFINISHED + bytes(200))
        assert side.losses
        assert side.unfinished.total == 0

    in_a_loop(check)
