"""Capturing loopback traffic by a Linux packet socket, without tcpdump."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

SNAPLEN = 262_144
_ALL_PROTOCOLS = 3
_IPV4, _IPV6 = b"\x08\x00", b"\x86\xdd"
_ETHERNET = 1
_MAGIC_MICROSECONDS, _MAGIC_NANOSECONDS = 0xA1B2C3D4, 0xA1B23C4D
# Linux constants missing in the socket module.
_PACKET_OUTGOING = 4
_SO_RCVBUFFORCE = 33
_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("@qq")

_BUFFER_BYTES = 64 << 20
"""Buffer for packets while the thread waits for the interpreter."""

Wanted = Callable[[int, int, int], bool]
"""IP protocol, source port and destination port -> whether to capture the packet."""


@contextlib.contextmanager
def packet_socket(path: Path, wanted: Wanted, nanoseconds: bool) -> Iterator[None]:
    """
    Write the selected packets of the loopback interface to a file during the block.

    Args:
        path: The classic pcap file to write.
        wanted: Selects TCP and UDP packets.
        nanoseconds: Time stamps in nanoseconds.

    Raises:
        OSError: The process lacks permission to capture.
    """
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS)) as sniffer:
        sniffer.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        with contextlib.suppress(PermissionError):  # needs more privileges than the socket itself
            sniffer.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        sniffer.bind(("lo", _ALL_PROTOCOLS))
        sniffer.settimeout(0.05)
        ended = threading.Event()
        with path.open("wb", buffering=0) as out:
            magic = _MAGIC_NANOSECONDS if nanoseconds else _MAGIC_MICROSECONDS
            out.write(struct.pack("=IHHiIII", magic, 2, 4, 0, 0, SNAPLEN, _ETHERNET))
            unit_ns = 1 if nanoseconds else 1000
            thread = threading.Thread(target=_copy, args=(sniffer, out, wanted, unit_ns, ended))
            thread.start()
            try:
                yield
            finally:
                ended.set()
                thread.join()


def _copy(
    sniffer: socket.socket, out: BinaryIO, wanted: Wanted, unit_ns: int, ended: threading.Event
) -> None:
    while not ended.is_set():
        try:
            frame, extra, _, address = sniffer.recvmsg(SNAPLEN, socket.CMSG_SPACE(_TIMESPEC.size))
        except TimeoutError:
            continue
        # Packets on lo are seen twice: outgoing and incoming.
        if address[2] == _PACKET_OUTGOING or not wanted(*_transport(frame)):
            continue
        seconds, ns = _TIMESPEC.unpack_from(extra[0][2])
        head = struct.pack("=IIII", seconds, ns // unit_ns, len(frame), len(frame))
        out.write(head + frame)


def _transport(frame: bytes) -> tuple[int, int, int]:
    """Return IP protocol and ports of an Ethernet frame; zeros without one."""
    kind = frame[12:14]
    if kind == _IPV4 and len(frame) >= 34:
        start, protocol = 14 + 4 * (frame[14] & 15), frame[23]
    elif kind == _IPV6 and len(frame) >= 54:
        start, protocol = 54, frame[20]
    else:
        return 0, 0, 0
    if protocol not in (socket.IPPROTO_TCP, socket.IPPROTO_UDP) or len(frame) < start + 4:
        return 0, 0, 0
    return protocol, *struct.unpack_from("!HH", frame, start)
