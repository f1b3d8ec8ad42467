"""Requests of clients, and the exception for requests without a captured answer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from construct import Container

from dissector.protocol.messages import Message
from serve.matching.meaning import Meaning


@dataclass(slots=True)
class ClientRequest:
    """
    A request of a client.

    Attributes:
        message: The decoded request.
        body: The body in the canonical version.
        connection: Number of the connection.
        local_host: Listener address of the connection.
        latency_s: Latency of the captured exchange.
        addresses: Address and port of the client and of the listener.
        received_ns: Time of arrival, ns since the epoch.
        answered_by: Names of fallbacks that answered; shared by all parts of the request.
    """

    message: Message
    body: Container
    connection: int = 0
    local_host: str = ""
    latency_s: float = 0.0
    addresses: tuple[Any, Any] | None = None
    received_ns: int = field(default_factory=time.time_ns)
    answered_by: list[str] = field(default_factory=list)

    @property
    def api(self) -> str:
        """Name of the API."""
        return self.message.api or ""

    @property
    def api_key(self) -> int:
        """Key of the API."""
        return self.message.api_key or 0

    @property
    def version(self) -> int:
        """Version of the request."""
        return self.message.api_version or 0

    @property
    def client_id(self) -> str | None:
        """Client id of the request."""
        return self.message.client_id


class Unmatched(Exception):
    """
    The capture has no answer to a request.

    Args:
        what: The missing item, for the report.
        meaning: Meaning of the request, to find the nearest exchange.
    """

    def __init__(self, what: str, meaning: Meaning | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.meaning = meaning
