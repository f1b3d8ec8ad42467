"""Probes of unreadable input: the broker must close the connection."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable

from conform.probe.probe_registry import ProbeContext, probe
from conform.probe.probe_reporter import ProbeReporter, bytes_text
from conform.probe.probe_target import Target
from conform.probe.request_catalog import INTER_BROKER_APIS, READ_APIS
from dissector.protocol.apis import KEYS, NAMES
from dissector.protocol.headers import request_header_version

_MAX_CONCURRENT = 8
_CLOSE_GRACE_S = 0.1
"""Time for a broker to close a connection before the next case is started concurrently."""

_CORRELATION_ID = 7
_UNKNOWN_KEYS = (999, 32767, -1)


@probe(
    "F12",
    "Unknown API key or version does not close the connection",
    source="SocketServer.parseRequestHeader, RequestHeader.parse (KIP-35)",
    asks="The connection is closed without a response; only ApiVersions may have a version that "
    "is too new.",
    example="Metadata v99 is answered with error 35",
    may_kill=True,
)
async def probe_unknown_api_or_version(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Send unknown API keys and versions, each on a separate connection."""
    cases = [(f"API key {key} v0", _header(key, 0)) for key in _UNKNOWN_KEYS]
    for key, (low, high) in context.target.offered.items():
        if _may_be_sent(context.target, key):
            name = NAMES.get(key, f"API key {key}")
            too_new = min(high + 1, 32767)
            cases.append((f"{name} v{too_new}, which is not offered", _header(key, too_new)))
            if low > 0:
                cases.append((f"{name} v{low - 1}, which is not offered", _header(key, low - 1)))
    await _check_all_closed(
        context, reporter, ((description, _with_size(frame)) for description, frame in cases)
    )


def _may_be_sent(target: Target, key: int) -> bool:
    """Return whether an API may be tried: a broker may implement versions it does not offer."""
    name = NAMES.get(key, "")
    if name in INTER_BROKER_APIS or key == KEYS["ApiVersions"]:
        return False
    return name in READ_APIS or target.allow_writes


@probe(
    "P05",
    "Invalid frame size does not close the connection",
    source="NetworkReceive.readFrom: negative, or above socket.request.max.bytes",
    asks="The connection is closed as soon as the size is received.",
    example="a size of -1 is ignored",
    may_kill=True,
)
async def probe_invalid_sizes(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Send invalid sizes, and wait for the end of the connection."""
    huge = 2**31 - 1
    cases = [
        (f"a frame of {size:,} bytes", struct.pack(">i", size)) for size in (-1, -(2**31), huge)
    ]
    await _check_all_closed(context, reporter, cases)


@probe(
    "P06",
    "Invalid request does not close the connection",
    source="SocketServer.parseRequestHeader, RequestContext.parseRequest",
    asks="The connection is closed; the broker continues to serve others.",
    example="a Metadata request that ends within its body is answered",
    may_kill=True,
)
async def probe_invalid_requests(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Send frames without a valid request, and check that the broker serves others."""
    version = context.target.newest_version("Metadata", until=8)
    truncated = _header(KEYS["Metadata"], version) + struct.pack(">i", 3)
    huge_count = _header(KEYS["Metadata"], version) + struct.pack(">i", 2**31 - 1)
    cases = [
        ("an empty frame", _with_size(b"")),
        ("a frame of 3 bytes", _with_size(b"\0\3\0")),
        (
            "a header that ends within the client id",
            _with_size(struct.pack(">hhih", 3, 1, _CORRELATION_ID, 99)),
        ),
        (f"Metadata v{version} that ends within its topics", _with_size(truncated)),
        (f"Metadata v{version} with {2**31 - 1} topics in no bytes", _with_size(huge_count)),
    ]
    await _check_all_closed(context, reporter, cases)
    connection = await context.target.open_connection()
    try:
        exchange = await connection.request("ApiVersions", 0, {})
        reporter.check(
            exchange.field("error_code") == 0,
            f"afterwards, {exchange}: {exchange.failure}",
            exchange,
        )
    finally:
        connection.close()


async def _check_all_closed(
    context: ProbeContext, reporter: ProbeReporter, cases: Iterable[tuple[str, bytes]]
) -> None:
    """Send the bytes of each case on a separate connection, which the broker must close."""
    tasks: set[asyncio.Task[None]] = set()
    lock = asyncio.Lock()

    async def check_case(description: str, data: bytes) -> None:
        reaction = await _reaction_unless_closed(context.target, data)
        async with lock:
            if reaction or await context.check_still_serving(reporter, data, description):
                reporter.check(not reaction, f"{description}: {reaction}", request=data)

    try:
        for description, data in cases:
            if len(tasks) == _MAX_CONCURRENT:
                await _wait_for_first(tasks)
            task = asyncio.create_task(check_case(description, data))
            tasks.add(task)
            # Sequential while the broker is fast, to know which case stops the broker.
            await asyncio.wait({task}, timeout=_CLOSE_GRACE_S)
            async with lock:  # send nothing until the broker is back
                pass
            if task.done():
                await _wait_for_first(tasks)
        while tasks:
            await _wait_for_first(tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _wait_for_first(tasks: set[asyncio.Task[None]]) -> None:
    """Wait until one of the tasks has ended; raise its exception."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    tasks -= done
    for task in done:
        task.result()


async def _reaction_unless_closed(target: Target, data: bytes) -> str:
    """Send bytes; return what happened instead of the end of the connection, empty if it ended."""
    connection = await target.open_connection()
    try:
        connection.write(data)
        frame = await connection.receive_frame(target.close_timeout_s)
        return "" if frame is None else f"was answered {bytes_text(frame)}"
    except TimeoutError:
        return f"the connection was still open after {target.close_timeout_s:g} s"
    finally:
        connection.close()


def _header(key: int, version: int) -> bytes:
    """Return a request's header with a null client id."""
    tags = b"\0" * (request_header_version(key, version) == 2)
    return struct.pack(">hhih", key, version, _CORRELATION_ID, -1) + tags


def _with_size(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame
