"""Counts of requests, and misses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

_MAX_MISSES = 1_000
_MAX_REQUESTS = 100_000


@dataclass(frozen=True, slots=True)
class Miss:
    """
    A request without a captured answer.

    Attributes:
        api: Name of the API.
        version: Version of the request.
        client_id: Client id of the request.
        what: The item missing in the capture.
        nearest: Title of the nearest captured exchange; empty without one.
        field: Path of the first difference to it.
        sent: Value in the request.
        captured: Value in the nearest exchange.
        answered_by: Name of the fallback that answered; empty without one.
    """

    api: str
    version: int
    client_id: str | None
    what: str
    nearest: str = ""
    field: str = ""
    sent: Any = None
    captured: Any = None
    answered_by: str = ""

    @property
    def title(self) -> str:
        """The request, and what is missing."""
        client = f" from {self.client_id}" if self.client_id else ""
        return f"{self.api} v{self.version}{client}: the capture lacks {self.what}"

    def __str__(self) -> str:
        text = self.title
        if self.nearest:
            text += f"; nearest is {self.nearest}"
        if self.field:
            text += f", with {self.field} {self.captured!r} instead of {self.sent!r}"
        return text


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """
    A request of a client.

    Attributes:
        api: Name of the API.
        version: Version of the request.
        client_id: Client id of the request.
        connection: Number of the connection.
        body: Body in the newest version with topic names.
    """

    api: str
    version: int
    client_id: str | None
    connection: int
    body: Any


@dataclass(slots=True)
class ServeReport:
    """
    Counts and misses of a server.

    Attributes:
        misses: Distinct misses, up to a limit.
        requests: Requests up to a limit, if enabled by `keeps_requests`.
        counts: Number of requests by API.
        miss_count: The number of misses.
        connections: The number of connections that clients opened.
        garbage: Number of connections closed for invalid input, by reason.
        faults: Number of injections by fault.
        unserved: Clients that got no records so far because of what the capture lacks, each with
            the miss that it will be.
    """

    keeps_requests: bool = False
    misses: list[Miss] = field(default_factory=list)
    requests: list[SeenRequest] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    miss_count: int = 0
    connections: int = 0
    garbage: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    unserved: dict[Hashable, Miss] = field(default_factory=dict)

    def add_request(self, request: SeenRequest) -> None:
        """Count a request, and keep it if enabled."""
        self.counts[request.api] += 1
        if self.keeps_requests and len(self.requests) < _MAX_REQUESTS:
            self.requests.append(request)

    def add_miss(self, miss: Miss) -> None:
        """Count a miss, and keep it if it is new."""
        self.miss_count += 1
        if len(self.misses) < _MAX_MISSES and miss not in self.misses:
            self.misses.append(miss)

    def settle(self) -> None:
        """Count the clients that got no records as misses, as nothing comes any more."""
        for miss in self.unserved.values():
            self.add_miss(miss)
        self.unserved.clear()
