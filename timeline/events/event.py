"""An event of a timeline, and its evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

KINDS = ("group", "producer", "transaction", "consumer", "connection", "cluster")
"""The kinds of events."""

MAX_EVIDENCE = 32
"""Exchanges that an event retains as evidence: the first and the last ones."""


class Evidence(NamedTuple):
    """
    An exchange that proves an event.

    Attributes:
        capture: The file of its request.
        connection: Number of its connection in the capture, from 0.
        client: `address:port` of the client.
        client_id: The client id of the request; None if it is not known.
        broker: `address:port` of the broker.
        request_packet: The packet that completed the request, from 1; None if not captured.
        response_packet: The same for the response.
        correlation_id: The number that request and response share.
        api: The name of the API.
        passes: Whether it passes the display filter.
    """

    capture: str
    connection: int
    client: str
    client_id: str | None
    broker: str
    request_packet: int | None
    response_packet: int | None
    correlation_id: int | None
    api: str | None
    passes: bool = True

    @property
    def first_packet(self) -> int:
        """The first packet of the exchange."""
        return self.request_packet or self.response_packet or 0

    def row(self) -> dict[str, Any]:
        """Return the public fields."""
        row = self._asdict()
        del row["passes"]
        return row


class Needs(NamedTuple):
    """
    What must be captured without a loss for an event to be certain.

    Attributes:
        brokers: Addresses of the brokers that it depends on.
        since_ns: From when on; the end is the event's.
    """

    brokers: frozenset[str]
    since_ns: int


@dataclass(frozen=True, slots=True)
class Event:
    """
    One event.

    Attributes:
        time_ns: When it began.
        end_ns: When it ended; equal to `time_ns` for an instant.
        kind: One of `KINDS`.
        subject: Its group, producer, transactional id, client, connection or cluster.
        event: What happened.
        cause: Why, in a word or two; empty if none is needed, `unknown` if the capture does not
            show it.
        text: The event for people, in a sentence.
        evidence: The exchanges that prove it, in packet order.
        certain: Whether the capture proves the event and its cause.
        needs: What must be complete in the capture for that; not part of the rows.
    """

    time_ns: int
    end_ns: int
    kind: str
    subject: str
    event: str
    cause: str
    text: str
    evidence: tuple[Evidence, ...]
    certain: bool
    needs: Needs

    def row(self) -> dict[str, Any]:
        """Return the columns, in order."""
        row = {name: getattr(self, name) for name in COLUMNS}
        row["evidence"] = [each.row() for each in self.evidence]
        return row

    @property
    def passes(self) -> bool:
        """Whether any of its exchanges passes the display filter."""
        return any(each.passes for each in self.evidence)


COLUMNS = tuple(each.name for each in fields(Event) if each.name != "needs")
"""The columns of events, in order."""


def in_packet_order(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return evidence in packet order, each exchange once, of many the first and the last ones."""
    found = sorted(set(evidence), key=lambda each: (each.first_packet, each.connection))
    if len(found) > MAX_EVIDENCE:
        half = MAX_EVIDENCE // 2
        found = found[:half] + found[-half:]
    return tuple(found)
