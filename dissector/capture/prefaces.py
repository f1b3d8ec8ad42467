"""
What proxies put before Kafka on a connection: PROXY protocol headers, and HTTP CONNECT.

Source: https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt (PROXY protocol, versions 1 and
2); RFC 9110, section 9.3.6 (CONNECT).
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

_MAX_LINE_BYTES, _MAX_HEAD_BYTES = 107, 1 << 14
_LINE = re.compile(rb"PROXY (TCP4|TCP6) ([0-9A-Fa-f:.]+) [0-9A-Fa-f:.]+ (\d{1,5}) \d{1,5}\r\n")
_UNKNOWN = re.compile(rb"PROXY UNKNOWN[ -~]*\r\n")
_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
_HEADER_BYTES = 16
_LOCAL, _PROXY = 0x20, 0x21
_IPV4, _IPV6, _UNIX = 1, 2, 3
_ADDRESS_BYTES = {_IPV4: 12, _IPV6: 36, _UNIX: 216}
_CONNECT = re.compile(rb"CONNECT ([\w.:\[\]-]{1,261}) HTTP/1\.[01]\r\n")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] \d{3}[ -~]*\r\n")
_END_OF_HEAD = b"\r\n\r\n"


class Preface(NamedTuple):
    """
    The headers of proxies before the frames of a stream.

    Attributes:
        origin: Address of the client before the proxy, `CONNECT` and the target of that request, or
            None if the headers name neither.
        size: Bytes of the headers.
    """

    origin: str | None
    size: int


def read_preface(data: bytes, *, is_client: bool) -> Preface:
    """
    Read the headers at the begin of a stream; bytes that are none have no part in the size.

    Of several headers the last address counts: each proxy puts its own before the others.
    """
    origin, at = None, 0
    readers = (_read_line, _read_binary, _read_connect) if is_client else (_read_answer,)
    while at < len(data):
        found = next(filter(None, (read(data, at) for read in readers)), None)
        if found is None:
            break
        origin, at = found.origin or origin, at + found.size
    return Preface(origin, at)


def _read_line(data: bytes, at: int) -> Preface | None:
    """Read a header of version 1: a line of at most 107 bytes."""
    end = min(len(data), at + _MAX_LINE_BYTES)
    if unknown := _UNKNOWN.match(data, at, end):
        return Preface(None, unknown.end() - at)
    found = _LINE.match(data, at, end)
    if found is None:
        return None
    family, address, port = found.groups()
    try:
        parsed = (IPv4Address if family == b"TCP4" else IPv6Address)(address.decode("ascii"))
    except ValueError:
        return None
    if int(port) > 0xFFFF:
        return None
    return Preface(_endpoint(parsed, int(port)), found.end() - at)


def _read_binary(data: bytes, at: int) -> Preface | None:
    """Read a header of version 2."""
    head = data[at : at + _HEADER_BYTES]
    if len(head) < _HEADER_BYTES or not head.startswith(_SIGNATURE):
        return None
    command, family = head[12], head[13] >> 4
    size = _HEADER_BYTES + int.from_bytes(head[14:], "big")
    body = data[at + _HEADER_BYTES : at + size]
    if command not in (_LOCAL, _PROXY) or len(body) < size - _HEADER_BYTES:
        return None
    if command == _LOCAL or len(body) < _ADDRESS_BYTES.get(family, len(body) + 1):
        return Preface(None, size)
    return Preface(_binary_origin(family, body), size)


def _binary_origin(family: int, body: bytes) -> str | None:
    if family == _IPV4:
        return _endpoint(IPv4Address(body[:4]), int.from_bytes(body[8:10], "big"))
    if family == _IPV6:
        return _endpoint(IPv6Address(body[:16]), int.from_bytes(body[32:34], "big"))
    path = body[: _ADDRESS_BYTES[_UNIX] // 2].rstrip(b"\0")
    return f"unix:{path.decode('ascii')}" if re.fullmatch(rb"[!-~]+", path) else None


def _read_connect(data: bytes, at: int) -> Preface | None:
    found = _CONNECT.match(data, at)
    size = _head_bytes(data, at)
    if found is None or not size:
        return None
    return Preface(f"CONNECT {found[1].decode('ascii')}", size)


def _read_answer(data: bytes, at: int) -> Preface | None:
    """Read the response of a proxy to CONNECT."""
    size = _head_bytes(data, at)
    return Preface(None, size) if size and _STATUS_LINE.match(data, at) else None


def _head_bytes(data: bytes, at: int) -> int:
    """Return the size of the head of an HTTP message; 0 if it is incomplete or too long."""
    end = data.find(_END_OF_HEAD, at, at + _MAX_HEAD_BYTES)
    return 0 if end < 0 else end + len(_END_OF_HEAD) - at


def _endpoint(address: IPv4Address | IPv6Address, port: int) -> str:
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"
