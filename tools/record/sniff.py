"""
Capturing loopback traffic by tcpdump, or else by a packet socket.

A capture is complete: it starts before the first packet of the enclosed block, and contains the
    last one. To prove the end, a marker datagram is sent through the same capture, and the file is
    cut before the marker once that has arrived.
"""

from __future__ import annotations

import contextlib
import select
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.broker.kafka_cluster import leashed
from tools.record.packet_socket import SNAPLEN, packet_socket
from tools.record.raw_packets import walk

_PATIENCE_S = 90.0


class CaptureRefusedError(Exception):
    """Capturing failed to start: permission denied, or no program for it."""


@contextlib.contextmanager
def capture(path: Path, ports: Sequence[int], nanoseconds: bool = False) -> Iterator[None]:
    """
    Capture all TCP packets of these ports on the loopback interface during the block.

    Args:
        path: The classic pcap file to write; an existing one is replaced.
        ports: TCP ports, either side.
        nanoseconds: Time stamps in nanoseconds.

    Raises:
        CaptureRefusedError: The process lacks permission to capture.
    """
    path.unlink(missing_ok=True)
    with _marker() as (port, send):
        wanted = "tcp and (" + " or ".join(f"port {each}" for each in sorted(ports)) + ")"
        recording = (
            _tcpdump(path, f"({wanted}) or (udp and dst port {port})", nanoseconds)
            if shutil.which("tcpdump")
            else _packet_socket(path, frozenset(ports), port, nanoseconds)
        )
        with recording:
            yield
            mark = send()
            _wait_for(path, mark)
    _cut_at(path, mark)


@contextlib.contextmanager
def _marker() -> Iterator[tuple[int, Callable[[], bytes]]]:
    mark = f"end of capture {uuid.uuid4()}".encode()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))

        def send() -> bytes:
            receiver.sendto(mark, receiver.getsockname())
            return mark

        yield receiver.getsockname()[1], send


@contextlib.contextmanager
def _tcpdump(path: Path, expression: str, nanoseconds: bool) -> Iterator[None]:
    command = ["tcpdump", "-i", "lo", "-n", "-U", "--immediate-mode", "-B", "16384"]
    command += ["-s", str(SNAPLEN), "-Z", "root", "-w", str(path)]
    command += ["--time-stamp-precision=nano"] if nanoseconds else []
    process = subprocess.Popen(
        leashed([*command, expression]),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _wait_until_listening(process)
        yield
    finally:
        process.terminate()
        try:
            process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _wait_until_listening(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    output, deadline = "", time.monotonic() + _PATIENCE_S
    while "listening on" not in output:
        ready, _, _ = select.select([process.stderr], [], [], deadline - time.monotonic())
        line = process.stderr.readline() if ready else ""
        if not line:
            reason = output.strip() or f"no word from it in {_PATIENCE_S:.0f} s"
            raise CaptureRefusedError(f"tcpdump can not capture on lo: {reason}")
        output += line


@contextlib.contextmanager
def _packet_socket(
    path: Path, ports: frozenset[int], marker_port: int, nanoseconds: bool
) -> Iterator[None]:
    def wanted(protocol: int, source: int, destination: int) -> bool:
        if protocol == socket.IPPROTO_TCP:
            return source in ports or destination in ports
        return destination == marker_port

    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(packet_socket(path, wanted, nanoseconds))
        except (AttributeError, OSError) as error:
            raise CaptureRefusedError(
                f"tcpdump is not installed, and a packet socket is refused: {error}"
            ) from None
        yield


def wait_until_quiet(ports: Sequence[int], patience_s: float = 10.0) -> bool:
    """Wait until all connections to these ports are closed; return whether they were in time."""
    deadline = time.monotonic() + patience_s
    while _open_connections(frozenset(ports)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _open_connections(ports: frozenset[int]) -> int:
    """Count the sockets of connections to these ports, from Linux's tables."""
    done = {"06", "0A"}  # TIME_WAIT, LISTEN
    rows = [
        line.split()
        for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
        if table.exists()
        for line in table.read_text().splitlines()[1:]
    ]
    ends = ((row[1], row[2]) for row in rows if row[3] not in done)
    return sum(any(int(end.rpartition(":")[2], 16) in ports for end in pair) for pair in ends)


def _wait_for(path: Path, mark: bytes) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not (path.exists() and mark in path.read_bytes()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{path}: the last packets did not arrive in the file")
        time.sleep(0.02)


def _cut_at(path: Path, mark: bytes) -> None:
    data = path.read_bytes()
    for packet in walk(data):
        if mark in packet.data:
            path.write_bytes(data[: packet.start])
            return
    raise ValueError(f"{path}: no marker in it")
