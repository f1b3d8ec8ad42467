"""How complete the capture of each connection is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dissector.engine.reading.capture import Reading


@dataclass(slots=True)
class Completeness:
    """
    Completeness of one captured connection.

    Attributes:
        connection: Its number in the capture.
        client: `address:port` of the client.
        broker: `address:port` of the broker.
        requests: Number of captured requests.
        unanswered: Number of requests without a captured response that was due.
        orphans: Number of responses without requests.
        is_midway: Whether the connection was already open when the capture began.
        last_ns: Capture time of its last packet.
        bytes: Captured payload bytes of both sides.
        gap_bytes: Payload bytes of lost packets.
        cut_bytes: Payload bytes cut off by the snapshot length.
        skipped_bytes: Payload bytes without recognised messages.
    """

    connection: int
    client: str
    broker: str
    requests: int = 0
    unanswered: int = 0
    orphans: int = 0
    is_midway: bool = False
    last_ns: int = 0
    bytes: int = 0
    gap_bytes: int = 0
    cut_bytes: int = 0
    skipped_bytes: int = 0

    @property
    def is_partial(self) -> bool:
        """Whether requests may be missing."""
        lost = self.gap_bytes or self.cut_bytes or self.skipped_bytes or self.orphans
        return bool(self.is_midway or lost)

    @property
    def score(self) -> float:
        """
        The share of the connection that can be replayed, from 0 to 1.

        Lost bytes and messages without their counterpart have equal weight. A connection captured
        midway lacks its beginning, so its score is at most 0.9.
        """
        lost = self.gap_bytes + self.cut_bytes + self.skipped_bytes
        of_bytes = 1 - lost / max(self.bytes + self.gap_bytes + self.cut_bytes, 1)
        halves = self.unanswered + self.orphans
        of_messages = 1 - halves / max(self.requests + self.orphans, 1)
        whole = max(of_bytes, 0.0) * of_messages
        return min(whole, _MIDWAY) if self.is_midway else whole

    def row(self) -> dict[str, Any]:
        """Return the row for reports."""
        return {
            "connection": self.connection,
            "client": self.client,
            "broker": self.broker,
            "score": round(self.score, 3),
            "requests": self.requests,
            "unanswered": self.unanswered,
            "orphans": self.orphans,
            "midway": self.is_midway,
            "gap_bytes": self.gap_bytes,
            "cut_bytes": self.cut_bytes,
            "skipped_bytes": self.skipped_bytes,
        }


_MIDWAY = 0.9


def completeness(reading: Reading) -> Iterator[Completeness]:
    """Yield the Kafka connections of a capture that has been read, without counts of messages."""
    for connection in reading.streams.connections:
        state = reading.correlator.state_of(connection.id)
        if state is None or state.speaks != "kafka" or state.client is None:
            continue
        client, broker = reading.client_and_broker(connection.id, state.client)
        yield Completeness(
            connection.id,
            client,
            broker,
            is_midway=not connection.syn_seen,
            last_ns=connection.last_ns,
            bytes=sum(side.bytes for side in connection.sides),
            gap_bytes=sum(side.gap_bytes for side in connection.sides),
            cut_bytes=sum(side.cut_bytes for side in connection.sides),
            skipped_bytes=sum(state.skipped),
        )
