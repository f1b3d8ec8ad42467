"""Options of a served capture."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

from dissector.engine.correlation.framer import MAX_FRAME_BYTES
from dissector.errors import UsageError
from replay.client.cluster import parse_address

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """
    How a capture is served.

    Attributes:
        host: Where to listen.
        port: Of the first broker, the others have the next ones; 0 for free ports.
        latency: Factor of the captured latency; 0 for none.
        is_strict: Whether misses fail, and produced records are compared.
        follows_producers: Whether partitions that the capture shows being produced to have the
            records of clients, in place of the captured ones.
        tls: The context of listeners in TLS.
        password: For clients that log in by SCRAM.
        max_frame_bytes: A larger request is garbage.
        max_connections: Further ones are closed at once.
    """

    host: str = LOOPBACK
    port: int = 0
    latency: float = 0.0
    is_strict: bool = False
    follows_producers: bool = False
    tls: ssl.SSLContext | None = None
    password: str = field(default="", repr=False)
    max_frame_bytes: int = MAX_FRAME_BYTES
    max_connections: int = 5_000


def parse_latency(text: str) -> float:
    """
    Return the factor of the captured latency: `recorded`, `none`, or a number.

    Raises:
        UsageError: It is none of these.
    """
    known = {"recorded": 1.0, "none": 0.0}.get(text)
    if known is not None:
        return known
    try:
        factor = float(text)
    except ValueError:
        factor = -1.0
    if not 0 <= factor < float("inf"):
        raise UsageError(f"--latency takes recorded, none, or a number, not {text!r}")
    return factor


def parse_listener(text: str) -> tuple[str, int]:
    """
    Return host and port of `HOST:PORT`; the port may be 0.

    Raises:
        UsageError: It is not an address.
    """
    host, colon, port = text.rpartition(":")
    if colon and port == "0":
        return parse_address(f"{host}:1")[0], 0
    return parse_address(text)
