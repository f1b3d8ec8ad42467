"""The state of a transactional id: its producer, and its transaction."""

from __future__ import annotations

from dataclasses import dataclass, field

from timeline.events.event import Evidence
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.words import counted, listed, partitions_text


@dataclass(slots=True)
class Transaction:
    """
    A transaction under way.

    Attributes:
        time_ns: When it began, as far as captured.
        producer_id: Its producer.
        epoch: The producer's epoch.
        is_begun: Whether the begin is captured: the producer is known to have had none before.
        partitions: By topic.
        groups: The groups whose offsets it commits.
        evidence: Its exchanges.
        brokers: The brokers that answered.
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
        """Return the topics and groups of the transaction for people."""
        parts = [partitions_text(self.partitions)] if self.partitions else []
        if self.groups:
            parts.append(f"offsets of {counted(len(self.groups), 'group')}: {self._groups()}")
        return "; ".join(parts) or "nothing written"

    def _groups(self) -> str:
        return listed(sorted(self.groups))


@dataclass(slots=True)
class Session:
    """
    A producer that was initialised: its InitProducerId.

    Attributes:
        time_ns: When.
        client: Client id and host.
        connection: Number of the connection.
        producer_id: The id it got.
        epoch: The epoch it got.
        timeout_ms: Its transaction timeout.
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
        name: The id.
        transaction: The transaction under way.
        sessions: The last producers that were initialised, in time order.
        has_idle_producer: Whether the last producer is known to have no transaction.
    """

    name: str
    transaction: Transaction | None = None
    sessions: list[Session] = field(default_factory=list)
    has_idle_producer: bool = False


def client_of(observed: ObservedExchange) -> str:
    """Return the client of an exchange for people: client id and host."""
    return (
        f"{observed.client_id} at {observed.client_host}"
        if observed.client_id
        else observed.client_host
    )
