"""Events and their evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dissector.column_catalogue import EVENTS, names

KINDS = ("group", "producer", "transaction", "consumer", "connection", "cluster")
"""Kinds of events."""

RECORD = "record"
"""The kind of events of chosen records."""

MAX_EVIDENCE = 32
"""Maximum number of exchanges in the evidence; the first and the last ones are retained."""


class Evidence(NamedTuple):
    """
    An exchange that proves an event.

    Attributes:
        capture: File of the request.
        connection: Number of the connection, from 0.
        client: `address:port` of the client.
        client_id: Client id of the request; None if unknown.
        broker: `address:port` of the broker.
        request_packet: Packet that completed the request, from 1; None if not captured.
        response_packet: Packet that completed the response.
        correlation_id: Correlation id of request and response.
        api: Name of the API.
        passes: Whether the exchange passes the display filter.
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
    Traffic that must be captured without loss for an event to be certain.

    Attributes:
        connections: Numbers of the connections of its evidence.
        brokers: Addresses of brokers at which other traffic, on any connection, would have shown
            another cause; empty for events that their evidence alone proves.
        since_ns: Begin of the time range.
        end_ns: Its end.
    """

    connections: frozenset[int]
    brokers: frozenset[str]
    since_ns: int
    end_ns: int


def kinds_of(given: Iterable[str] | None, records: str | None) -> tuple[str, ...]:
    """Return the kinds of events to find, of all or, with a filter of records, of these."""
    if given is not None and (kinds := tuple(given)):
        return kinds
    return KINDS if records is None else (RECORD,)


@dataclass(frozen=True, slots=True)
class Event:
    """
    An event of a timeline.

    Attributes:
        time_ns: Begin.
        end_ns: End; equal to `time_ns` for an instant.
        kind: One of `KINDS`, or `RECORD`.
        subject: Group, producer, transactional id, client, connection, cluster, or key of a record.
        event: Name of the event.
        cause: Cause in a few words; empty if none applies, `unknown` if the capture does not show
            it.
        text: Description in a sentence.
        evidence: Exchanges that prove the event, in packet order.
        certain: Whether the capture proves event and cause; of several equal events, of one.
        needs: Traffic required for certainty; of several equal events that of each, of which one
            suffices. Not a column.
        count: Number of equal events.
        repeats: Equal events have the same; None: others are never equal. Not a column.
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
    needs: tuple[Needs, ...]
    count: int = 1
    repeats: str | None = None

    def row(self) -> dict[str, Any]:
        """Return the columns, in order."""
        row = {name: getattr(self, name) for name in COLUMNS}
        row["evidence"] = [each.row() for each in self.evidence]
        return row

    @property
    def title(self) -> str:
        """Name, cause and number: `denied: GROUP_AUTHORIZATION_FAILED x 4`."""
        cause = f": {self.cause}" if self.cause else ""
        return f"{self.event}{cause}{f' x {self.count:,}' if self.count > 1 else ''}"

    @property
    def packets(self) -> set[int]:
        """The packets of the evidence."""
        return {
            packet
            for each in self.evidence
            for packet in (each.request_packet, each.response_packet)
            if packet is not None
        }

    @property
    def passes(self) -> bool:
        """Whether any exchange of the evidence passes the display filter."""
        return any(each.passes for each in self.evidence)


def event_without_secrets(event: Event, mask: Callable[[str], str]) -> Event:
    """Return an event with masked texts where they hold a credential."""
    evidence = tuple(
        each if each.client_id is None else each._replace(client_id=mask(each.client_id))
        for each in event.evidence
    )
    return replace(
        event,
        subject=mask(event.subject),
        cause=mask(event.cause),
        text=mask(event.text),
        evidence=evidence,
    )


COLUMNS = names(EVENTS)
"""The columns of events, in order."""


def in_packet_order(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return distinct evidence in packet order, limited to the first and the last exchanges."""
    found = sorted(set(evidence), key=_packet_order)
    if len(found) > MAX_EVIDENCE:
        half = MAX_EVIDENCE // 2
        found = found[:half] + found[-half:]
    return tuple(found)


def _packet_order(evidence: Evidence) -> tuple[int, int, int, int]:
    """Return what sorts evidence; a packet may have several requests of a connection."""
    response, number = evidence.response_packet or 0, evidence.correlation_id or 0
    return evidence.first_packet, evidence.connection, response, number
