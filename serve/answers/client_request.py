"""A request of a client, and what keeps it from an answer."""

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
        message: As decoded.
        body: In the canonical version.
        connection: Number of the client's connection.
        local_host: The address by which the client has reached us.
        latency_s: How long the captured broker took.
        addresses: Address and port of the client and of the listener.
        received_ns: When it came, ns since the epoch.
        answered_by: Who has answered instead of the capture; parts of a request share it.
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
        """The name of the API."""
        return self.message.api or ""

    @property
    def api_key(self) -> int:
        """The key of the API."""
        return self.message.api_key or 0

    @property
    def version(self) -> int:
        """The version that the client uses."""
        return self.message.api_version or 0

    @property
    def client_id(self) -> str | None:
        """The client id."""
        return self.message.client_id


class Unmatched(Exception):
    """
    The capture has no answer to a request.

    Args:
        what: What it lacks.
        meaning: What the request means; the nearest exchange is found by it.
    """

    def __init__(self, what: str, meaning: Meaning | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.meaning = meaning
