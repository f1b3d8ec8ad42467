"""Options of the server."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from cluster.client.endpoint import parse_address
from cluster.client.listener import MAX_UNFINISHED_BYTES, log_warning
from dissector.errors import UsageError
from dissector.protocol.frame_limits import MAX_FRAME_BYTES

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """
    Options of the server.

    Attributes:
        host: Host of the listeners.
        port: Port of the first broker; the others use the next ports. 0 selects free ports.
        advertised_host: Host in answers, where it is another one for clients, as of a container;
            by default that of the listeners.
        latency: Factor of the captured latency; 0 answers at once.
        is_strict: Compare produced records with the captured ones.
        follows_producers: Serve the records of live producers to consumers, instead of captured
            produced records.
        tls: TLS context of the listeners.
        password: Password of clients.
        max_frame_bytes: Size limit of requests.
        max_connections: Limit of open connections; others are closed at once.
        max_unfinished_bytes: Limit of the bytes in unfinished requests of all connections; beyond
            it the connection with the largest is closed.
        warn: Called with messages about the machine, such as too few file handles.
    """

    host: str = LOOPBACK
    port: int = 0
    advertised_host: str = ""
    latency: float = 0.0
    is_strict: bool = False
    follows_producers: bool = False
    tls: ssl.SSLContext | None = None
    password: str = field(default="", repr=False)
    max_frame_bytes: int = MAX_FRAME_BYTES
    max_connections: int = 5_000
    max_unfinished_bytes: int = MAX_UNFINISHED_BYTES
    warn: Callable[[str], None] = field(default=log_warning, repr=False, compare=False)


def parse_latency(text: str) -> float:
    """
    Parse `recorded`, `none`, or a factor; return the factor of the captured latency.

    Raises:
        UsageError: The text has another form.
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
    Parse `HOST:PORT`; the port may be 0.

    Raises:
        UsageError: The text is not an address.
    """
    host, colon, port = text.rpartition(":")
    if colon and port == "0":
        return parse_address(f"{host}:1")[0], 0
    return parse_address(text)
