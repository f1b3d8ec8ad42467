from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.client.endpoint import connect, resolve
from cluster.client.transport import FrameProtocol, flush_closing, format_address


class RecordingTransport(asyncio.Transport):
    """Records written data."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.end = ""

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def write_eof(self) -> None:
        self.writes.append(b"")

    def is_closing(self) -> bool:
        return bool(self.end)

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self.end = "closed"

    def abort(self) -> None:
        self.end = "aborted"


def new_connection(
    max_frame_bytes: int = 1000,
) -> tuple[FrameProtocol, RecordingTransport, list[bytes], list[tuple[str, str]]]:
    frames: list[bytes] = []
    losses: list[tuple[str, str]] = []
    lost = lambda what, advice: losses.append((what, advice))  # noqa: E731
    connection = FrameProtocol(frames.append, lost, max_frame_bytes)
    transport = RecordingTransport()
    connection.connection_made(transport)
    return connection, transport, frames, losses


@given(st.lists(st.binary(min_size=4, max_size=50)), st.data())
def test_frames_are_found_in_any_segmentation(frames: list[bytes], data: st.DataObject) -> None:
    async def main() -> None:
        connection, _, got, losses = new_connection()
        stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
        while stream:
            size = data.draw(st.integers(1, len(stream)))
            connection.data_received(stream[:size])
            stream = stream[size:]
        assert got == frames
        assert losses == []

    asyncio.run(main())


@pytest.mark.parametrize("size", [-1, 0, 3, 1001])
def test_an_impossible_frame_size_is_an_error(size: int) -> None:
    async def main() -> None:
        connection, transport, got, losses = new_connection()
        good = b"\0\0\0\4good"
        connection.data_received(good + size.to_bytes(4, "big", signed=True) + b"more" + good)
        assert got == [b"good"]
        ((what, _),) = losses
        assert f"{size:,} bytes" in what
        assert transport.end == "aborted"

    asyncio.run(main())


def test_frames_of_one_loop_turn_are_written_together() -> None:
    async def main() -> None:
        connection, transport, _, _ = new_connection()
        for number in range(3):
            connection.send(b"frame%d" % number)
        assert transport.writes == []
        await asyncio.sleep(0)
        assert transport.writes == [b"\0\0\0\6frame0\0\0\0\6frame1\0\0\0\6frame2"]

    asyncio.run(main())


def test_sent_frames_are_written_before_the_close() -> None:
    async def main() -> None:
        connection, transport, _, losses = new_connection()
        connection.send(b"last")
        connection.close()
        assert (transport.writes, transport.end) == ([b"\0\0\0\4last"], "closed")
        connection.connection_lost(None)
        assert losses == []

    asyncio.run(main())


def test_a_half_closed_connection_still_receives() -> None:
    async def main() -> None:
        connection, transport, frames, _ = new_connection()
        connection.send(b"last")
        connection.write_eof()
        connection.data_received(b"\0\0\0\4more")
        assert (transport.writes, transport.end) == ([b"\0\0\0\4last", b""], "")
        assert frames == [b"more"]
        transport.close()
        connection.write_eof()
        assert len(transport.writes) == 2

    asyncio.run(main())


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (None, "closed the connection"),
        (ConnectionResetError(), "reset the connection"),
        (OSError("no route"), "the connection broke: no route"),
    ],
)
def test_a_lost_connection_is_reported_once(error: Exception | None, said: str) -> None:
    async def main() -> None:
        connection, _, _, losses = new_connection()
        connection.connection_lost(error)
        connection.connection_lost(error)
        assert losses == [(said, "")]
        connection.send(b"into the void")
        await asyncio.sleep(0)

    asyncio.run(main())


def test_drain_waits_for_room_in_the_buffer() -> None:
    async def main() -> None:
        connection, _, _, _ = new_connection()
        await connection.drain()
        connection.pause_writing()
        waiting = asyncio.create_task(connection.drain())
        await asyncio.sleep(0)
        assert not waiting.done()
        connection.resume_writing()
        await waiting

    asyncio.run(main())


def test_drain_ends_when_the_connection_is_lost() -> None:
    async def main() -> None:
        connection, _, _, _ = new_connection()
        connection.pause_writing()
        waiting = asyncio.create_task(connection.drain())
        await asyncio.sleep(0)
        connection.connection_lost(None)
        await waiting

    asyncio.run(main())


def test_addresses_are_formatted() -> None:
    assert format_address("a", 1) == "a:1"
    assert format_address("fd00::1", 9092) == "[fd00::1]:9092"


class SlowReader(asyncio.Protocol):
    """A listener that reads nothing until it is allowed to."""

    def __init__(self) -> None:
        self.size = 0
        self.transport: asyncio.Transport
        self.ended: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        self.size += len(data)

    def connection_lost(self, error: Exception | None) -> None:
        self.ended.set_result(error)


@pytest.mark.parametrize("reads", [True, False])
def test_unsent_data_is_flushed_at_close_until_a_timeout(reads: bool) -> None:
    async def main() -> None:
        accepted = asyncio.Queue[SlowReader]()

        def accept() -> SlowReader:
            reader = SlowReader()
            accepted.put_nowait(reader)
            return reader

        loop = asyncio.get_running_loop()
        server = await loop.create_server(accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        frame = bytes(32 << 20)
        connection = FrameProtocol(lambda _: None, lambda what, advice: None)
        await connect(connection, await resolve("127.0.0.1", port, 5), None, 5)
        reader = await accepted.get()
        connection.send(frame)
        connection.close()
        if reads:
            reader.transport.resume_reading()
        await flush_closing(60 if reads else 0.01)
        if not reads:
            reader.transport.resume_reading()
        await reader.ended
        assert (reader.size == 4 + len(frame)) is reads
        server.close()

    asyncio.run(main())
