"""
`record` between a client and a broker: throughput, processor time, added latency, connections.

    python -m benchmarks.recorded_traffic

is the broker: it answers each Fetch with 1 MB, everything else with a few bytes, unread.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.timing import Row, peak_memory

_RECORD = (sys.executable, "-m", "kafkashark", "record", "--listen", "127.0.0.1:0")
_PRODUCE, _FETCH, _VERSION = 0, 1, 9
_FRAME_BYTES, _FRAMES, _IN_FLIGHT = 1 << 20, 600, 4
_MOST_MS_PER_MB, _LEAST_MB_PER_S = 8.0, 60.0
_PRODUCES, _PAUSE_S, _MOST_ADDED_MS = 5_000, 0.001, 1.0
_CONNECTIONS = 1_000


class Used(NamedTuple):
    """
    What a run of `record` took.

    Attributes:
        cpu_s: Seconds of processor.
        peak_bytes: Peak resident memory.
        lost: What it says about bytes that the disk was too slow for; empty for none.
    """

    cpu_s: float
    peak_bytes: int
    lost: str = ""

    def __str__(self) -> str:
        return f"{self.peak_bytes / 1e6:,.0f} MB of memory{self.lost}"


class Recording:
    """A running `record`; `used` is there after its end."""

    def __init__(self, process: subprocess.Popen[str], address: tuple[str, int]) -> None:
        self.process = process
        self.address = address
        self.used = Used(0.0, 0)


def rows(folder: Path) -> Iterator[Row]:
    """Time `record` with large and small messages, and with many connections."""
    with _broker() as broker:
        with _recording(broker, folder) as idle:
            _transfer(idle.address, _PRODUCE, 2)
        for name, api_key in (("Produce", _PRODUCE), ("Fetch", _FETCH)):
            with _recording(broker, folder) as running:
                seconds = _transfer(running.address, api_key, _FRAMES)
            megabytes = _FRAMES * _FRAME_BYTES / 1e6
            cost_ms = (running.used.cpu_s - idle.used.cpu_s) * 1e3 / megabytes
            rate = megabytes / seconds
            what = f"record, {name} of 1 MB"
            yield Row(
                f"{what}, processor",
                f"{_MOST_MS_PER_MB:g} ms a MB",
                _MOST_MS_PER_MB / cost_ms,
                f"{cost_ms:.2f} ms a MB, {running.used}",
                1,
            )
            peer = f"{_LEAST_MB_PER_S:g} MB/s"
            yield Row(f"{what}, rate", peer, rate / _LEAST_MB_PER_S, f"{rate:.0f} MB/s", 1)
        yield _latency_row(broker, folder)
        with _recording(broker, folder) as running:
            _connect_many(running.address)
        figures = f"{running.used.cpu_s:.2f} s, {running.used}"
        yield Row("record, 1,000 connections, processor", "", 1, figures)


def _latency_row(broker: tuple[str, int], folder: Path) -> Row:
    """Compare 1,000 produces a second without and with `record`, in turns."""
    without: list[float] = []
    through: list[float] = []
    with _recording(broker, folder) as running:
        for _ in range(3):
            without += _latencies_ms(broker)
            through += _latencies_ms(running.address)
    p99, p99_through = (sorted(each)[len(each) * 99 // 100] for each in (without, through))
    added = max(p99_through - p99, 0.001)
    return Row(
        "record, 1,000 produces a second, p99",
        f"{_MOST_ADDED_MS:g} ms more",
        _MOST_ADDED_MS / added,
        f"{p99:.2f} -> {p99_through:.2f} ms",
        1,
    )


@contextmanager
def _broker() -> Iterator[tuple[str, int]]:
    command = (sys.executable, "-m", "benchmarks.recorded_traffic")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield "127.0.0.1", int(process.stdout.readline())
        finally:
            process.terminate()


@contextmanager
def _recording(broker: tuple[str, int], folder: Path) -> Iterator[Recording]:
    to = f"{broker[0]}:{broker[1]}"
    command = (*_RECORD, "--to", to, "-o", str(folder / "recording.pcapng"))
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = re.search(r"is reached at (\S+):(\d+)", process.stderr.readline())
        assert found is not None
        running = Recording(process, (found[1], int(found[2])))
        try:
            yield running
        finally:
            peak_bytes = peak_memory(process.pid)
            process.send_signal(signal.SIGINT)
            said = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        lost = re.search(r"[\d,]+ bytes are missing", said)
        assert process.returncode == (0 if lost is None else 2), said
        running.used = Used(
            usage.ru_utime + usage.ru_stime,
            peak_bytes,
            "" if lost is None else f", {lost[0]}: the disk was too slow",
        )


def _request(api_key: int, number: int, size: int) -> bytes:
    head = struct.pack(">hhihx", api_key, _VERSION, number, -1)
    return struct.pack(">i", size) + head + bytes(size - len(head))


def _transfer(address: tuple[str, int], api_key: int, count: int) -> float:
    """Send requests, some in flight, and read all responses; return the seconds."""
    size = _FRAME_BYTES if api_key == _PRODUCE else 60
    begun = time.monotonic()
    with socket.create_connection(address) as client:
        for number in range(count + _IN_FLIGHT):
            if number < count:
                client.sendall(_request(api_key, number, size))
            if number >= _IN_FLIGHT:
                _read_response(client)
    return time.monotonic() - begun


def _read_response(client: socket.socket) -> None:
    left = int.from_bytes(client.recv(4, socket.MSG_WAITALL), "big")
    while left:
        left -= len(client.recv(min(left, 1 << 18)))


def _latencies_ms(address: tuple[str, int]) -> list[float]:
    found = []
    with socket.create_connection(address) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        due = time.perf_counter()
        for number in range(_PRODUCES):
            due += _PAUSE_S
            time.sleep(max(0.0, due - time.perf_counter()))
            begun = time.perf_counter()
            client.sendall(_request(_PRODUCE, number, 1000))
            _read_response(client)
            found.append((time.perf_counter() - begun) * 1e3)
    return found


def _connect_many(address: tuple[str, int]) -> None:
    """Open connections, ask on each, and close them."""
    clients = [socket.create_connection(address) for _ in range(_CONNECTIONS)]
    for _ in range(10):
        for number, client in enumerate(clients):
            client.sendall(_request(_PRODUCE, number, 1000))
        for client in clients:
            _read_response(client)
    for client in clients:
        client.close()


class _Answering(asyncio.Protocol):
    """A connection of the broker."""

    def __init__(self) -> None:
        self._head = b""
        self._left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer the requests that are complete."""
        while data:
            if not self._left:
                missing = 12 - len(self._head)
                self._head, data = self._head + data[:missing], data[missing:]
                if len(self._head) < 12:
                    return
                self._left = int.from_bytes(self._head[:4], "big") - 8
            taken = min(self._left, len(data))
            self._left, data = self._left - taken, data[taken:]
            if not self._left:
                self._answer(self._head)
                self._head = b""

    def _answer(self, head: bytes) -> None:
        is_fetch = int.from_bytes(head[4:6], "big") == _FETCH
        size = _FRAME_BYTES if is_fetch else 60
        self._transport.write(size.to_bytes(4, "big") + head[8:12] + bytes(size - 4))


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(
        _Answering, "127.0.0.1", 0, backlog=4096
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
