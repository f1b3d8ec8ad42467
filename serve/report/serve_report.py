"""Counts of a served capture, and its misses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_MAX_MISSES = 1_000
_MAX_REQUESTS = 100_000


@dataclass(frozen=True, slots=True)
class Miss:
    """
    A request that the capture has no answer to.

    Attributes:
        api: Its API.
        version: Its version.
        client_id: Its client id.
        what: What the capture lacks.
        nearest: The nearest captured exchange; empty without any.
        field: The first field in which they differ.
        sent: Its value in the request.
        captured: Its value in the nearest exchange.
        answered_by: Who has answered instead: `upstream`, `embedded broker`, or nobody.
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

    def __str__(self) -> str:
        client = f" from {self.client_id}" if self.client_id else ""
        text = f"{self.api} v{self.version}{client}: the capture lacks {self.what}"
        if self.nearest:
            text += f"; nearest is {self.nearest}"
        if self.field:
            text += f", where {self.field} is {self.captured!r} and not {self.sent!r}"
        return text


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """
    A request of a client.

    Attributes:
        api: Its API.
        version: Its version.
        client_id: Its client id.
        connection: Number of the client's connection.
        body: Its body in the newest version that names topics.
    """

    api: str
    version: int
    client_id: str | None
    connection: int
    body: Any


@dataclass(slots=True)
class ServeReport:
    """
    What has happened so far.

    Attributes:
        misses: The first misses.
        requests: The first requests, if they are kept.
        counts: Number of requests by API.
        miss_count: The number of misses.
        connections: The number of connections that clients opened.
        garbage: Why connections were closed that sent no Kafka requests, with numbers.
        faults: How often each fault was injected.
    """

    keeps_requests: bool = False
    misses: list[Miss] = field(default_factory=list)
    requests: list[SeenRequest] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    miss_count: int = 0
    connections: int = 0
    garbage: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def add_request(self, request: SeenRequest) -> None:
        """Count a request."""
        self.counts[request.api] += 1
        if self.keeps_requests and len(self.requests) < _MAX_REQUESTS:
            self.requests.append(request)

    def add_miss(self, miss: Miss) -> None:
        """Add a miss; equal ones are kept once."""
        self.miss_count += 1
        if len(self.misses) < _MAX_MISSES and miss not in self.misses:
            self.misses.append(miss)

    def lines(self) -> Iterator[str]:
        """Yield the report as text."""
        total = self.counts.total()
        yield f"{total:,} requests on {self.connections:,} connections, {self.miss_count:,} misses"
        for api, count in self.counts.most_common():
            yield f"  {count:>8,} {api}"
        for fault, count in self.faults.most_common():
            yield f"fault {fault}: {count:,} times"
        for reason, count in self.garbage.most_common():
            yield f"{count:,} connections closed: {reason}"
        for miss in self.misses:
            by = f" (answered by the {miss.answered_by})" if miss.answered_by else ""
            yield f"miss: {miss}{by}"
        if self.miss_count > len(self.misses):
            yield f"{self.miss_count - len(self.misses):,} more or repeated misses"
