"""State of a transactional id: producers and transaction."""

from __future__ import annotations

from dataclasses import dataclass, field

from timeline.events.event import Evidence
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.words import counted, listed, partitions_text


@dataclass(slots=True)
class Transaction:
    """
    An open transaction.

    Attributes:
        time_ns: Captured begin.
        producer_id: Producer id.
        epoch: Producer epoch.
        is_begun: Whether the begin is captured: the producer had no transaction before.
        partitions: Partitions by topic.
        groups: Groups with committed offsets.
        evidence: Exchanges of the transaction.
        brokers: Brokers that answered.
    """

    time_ns: int
    producer_id: int
    epoch: int
    is_begun: bool
    partitions: dict[str, set[int]] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)
    evidence: list[Evidence] = field(default_factory=list)
    brokers: set[str] = field(default_factory=set)

    def text(self) -> str:
        """Return topics and groups as text."""
        parts = [partitions_text(self.partitions)] if self.partitions else []
        if self.groups:
            parts.append(f"offsets of {counted(len(self.groups), 'group')}: {self._groups()}")
        return "; ".join(parts) or "nothing written"

    def _groups(self) -> str:
        return listed(sorted(self.groups))


@dataclass(slots=True)
class Session:
    """
    An initialised producer: its InitProducerId.

    Attributes:
        time_ns: Time of the response.
        client: Client id and host.
        connection: Number of the connection.
        producer_id: Assigned producer id.
        epoch: Assigned epoch.
        timeout_ms: Transaction timeout.
        evidence: The exchange.
    """

    time_ns: int
    client: str
    connection: int
    producer_id: int
    epoch: int
    timeout_ms: int
    evidence: Evidence


@dataclass(slots=True)
class TransactionalId:
    """
    The state of a transactional id.

    Attributes:
        name: The transactional id.
        transaction: The open transaction.
        sessions: The last initialised producers, in time order.
        has_idle_producer: Whether the last producer is known to have no transaction.
    """

    name: str
    transaction: Transaction | None = None
    sessions: list[Session] = field(default_factory=list)
    has_idle_producer: bool = False


def client_of(observed: ObservedExchange) -> str:
    """Return client id and host of an exchange as text."""
    return (
        f"{observed.client_id} at {observed.client_host}"
        if observed.client_id
        else observed.client_host
    )
