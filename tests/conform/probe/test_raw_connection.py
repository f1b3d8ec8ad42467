"""Connections for arbitrary bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from cluster.client.auth import Security
from cluster.client.endpoint import resolve
from conform.probe.raw_connection import RawConnection
from dissector.errors import ReplayError
from tests.replay.support.scripted_broker import HANG_UP, Answers, scripted

OFFERED = {17: (0, 1), 36: (0, 2)}


def with_line(
    answers: Answers, do: Callable[[RawConnection], Awaitable[None]], timeout_s: float = 30.0
) -> None:
    async def main() -> None:
        async with scripted(answers) as broker:
            endpoint = await resolve("127.0.0.1", broker.port, 30.0)
            line = await RawConnection.open(endpoint, Security(), timeout_s, OFFERED)
            try:
                await do(line)
            finally:
                line.close()

    asyncio.run(main())


def test_requests_and_responses() -> None:
    async def do(line: RawConnection) -> None:
        first, second = (
            line.send_request("ApiVersions", 3, {}),
            line.send_request("ApiVersions", 0, {}),
        )
        assert (await line.receive_response(first)).field("error_code") == 0
        assert (await line.receive_response(second)).field("error_code") == 0
        assert first.correlation_id != second.correlation_id

    with_line({}, do)


def test_parts_of_frames_are_sent_unchanged() -> None:
    async def do(line: RawConnection) -> None:
        exchange = line.send_request("ApiVersions", 0, {})
        await line.receive_response(exchange)
        for byte in len(exchange.request).to_bytes(4, "big") + exchange.request:
            line.write(bytes((byte,)))
            await line.drain()
        assert await line.receive_frame() is not None

    with_line({}, do)


def test_the_end_of_a_connection_gives_no_response() -> None:
    async def do(line: RawConnection) -> None:
        exchange = await line.request("Metadata", 0, {})
        assert exchange.response is None
        assert exchange.failure == "closed the connection"
        assert line.end_reason

    with_line({"Metadata": lambda _: HANG_UP}, do)


def test_a_timeout_gives_no_response() -> None:
    async def do(line: RawConnection) -> None:
        exchange = await line.request("Metadata", 0, {}, timeout_s=0.05)
        assert exchange.failure == "did not answer in 0.05 s"

    with_line({"Metadata": lambda _: None}, do)


def test_an_invalid_frame_size_ends_the_connection() -> None:
    async def do(line: RawConnection) -> None:
        exchange = await line.request("Metadata", 0, {})
        assert "sent a frame of -2 bytes" in exchange.failure

    with_line({"Metadata": lambda _: b"\xff\xff\xff\xfe"}, do)


def test_a_connection_authenticates() -> None:
    async def main() -> list[str | None]:
        async with scripted({"SaslHandshake": lambda _: {}, "SaslAuthenticate": lambda _: {}}) as b:
            security = Security(mechanism="PLAIN", username="alice", password="made-up")
            endpoint = await resolve("127.0.0.1", b.port, 30.0)
            line = await RawConnection.open(endpoint, security, 30.0, OFFERED)
            line.close()
            return [each.api for each in b.requests]

    assert asyncio.run(main()) == ["SaslHandshake", "SaslAuthenticate"]


def test_no_listener_is_an_error() -> None:
    async def main() -> None:
        await RawConnection.open(await resolve("127.0.0.1", 1, 5.0), Security(), 5.0)

    with pytest.raises(ReplayError, match="refused"):
        asyncio.run(main())
