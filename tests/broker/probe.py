"""A minimal client: whether a broker responds, and its number of brokers."""

from __future__ import annotations

import socket
import struct

_CORRELATION_ID = 42
_API_VERSIONS = struct.pack(">hhih", 18, 0, _CORRELATION_ID, -1)
_METADATA_V1_NO_TOPICS = struct.pack(">hhihi", 3, 1, _CORRELATION_ID, -1, 0)


def answers(port: int, timeout_s: float = 2.0) -> bool:
    """Return whether a broker on this port answers ApiVersions without an error."""
    body = _ask(port, _API_VERSIONS, timeout_s)
    return body is not None and body[:2] == b"\x00\x00"


def brokers(port: int, timeout_s: float = 2.0) -> int:
    """Count the live brokers listed by the broker on this port; 0 without a response."""
    body = _ask(port, _METADATA_V1_NO_TOPICS, timeout_s)
    return struct.unpack_from(">i", body)[0] if body else 0


def _ask(port: int, request: bytes, timeout_s: float) -> bytes | None:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout_s) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(struct.pack(">i", len(request)) + request)
            with connection.makefile("rb") as answer:
                (size,) = struct.unpack(">i", answer.read(4))
                body = answer.read(size) if 4 <= size < 1_000_000 else b""
    except (OSError, struct.error):
        return None
    known = struct.pack(">i", _CORRELATION_ID)
    return body[4:] if body[:4] == known else None
