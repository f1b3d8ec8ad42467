"""State of a transactional id: producers and transaction."""

from __future__ import annotations

from dataclasses import dataclass, field

from timeline.events.event import Evidence
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.words import counted, listed, partitions_text

MAX_SESSIONS = 8


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
        last_epoch: Its newest epoch: EndTxn v5+ gives one for each transaction (KIP-890).
    """

    time_ns: int
    client: str
    connection: int
    producer_id: int
    epoch: int
    timeout_ms: int
    evidence: Evidence
    last_epoch: int

    def fences(self, former: Session) -> bool:
        """Return whether it fences a former session, which has another connection."""
        return (
            former.producer_id == self.producer_id
            and former.connection != self.connection
            and former.last_epoch < self.epoch
        )


@dataclass(slots=True)
class TransactionalId:
    """
    The state of a transactional id.

    Attributes:
        name: The transactional id.
        transaction: The open transaction.
        sessions: The last initialised producers, in time order.
        has_idle_producer: Whether the last producer is known to have no transaction.
        producer_id: Newest producer id; -1 if unknown.
        epoch: Newest epoch of that producer.
        expired: The last transaction, if the broker aborted it after its timeout.
    """

    name: str
    transaction: Transaction | None = None
    sessions: list[Session] = field(default_factory=list)
    has_idle_producer: bool = False
    producer_id: int = -1
    epoch: int = -1
    expired: Transaction | None = None

    def initialize(self, session: Session) -> None:
        """Add an initialised producer, without a transaction."""
        self.sessions.append(session)
        del self.sessions[:-MAX_SESSIONS]
        self.producer_id, self.epoch = session.producer_id, session.epoch
        self.transaction, self.has_idle_producer, self.expired = None, True, None

    def begin(self, time_ns: int, producer_id: int, epoch: int) -> Transaction:
        """Begin a transaction; the producer is -1 where the request does not name it."""
        if producer_id < 0:
            producer_id, epoch = self.producer_id, self.epoch
        self.expired = None
        self.transaction = Transaction(time_ns, producer_id, epoch, self.has_idle_producer)
        return self.transaction

    def go_on_in(self, former_epoch: int, producer_id: int, epoch: int) -> None:
        """
        Follow a producer to its next epoch, or after the last one to a new producer id.

        Source: KIP-890, the response of EndTxn v5.
        """
        self.producer_id, self.epoch = producer_id, epoch
        owner = next((each for each in reversed(self.sessions) if each.epoch <= former_epoch), None)
        if owner is not None:
            owner.producer_id, owner.last_epoch = producer_id, epoch

    def timeout_ms(self, time_ns: int) -> int | None:
        """Return the timeout of the open transaction if it has passed at a time."""
        if self.transaction is None or not self.sessions:
            return None
        timeout_ms = self.sessions[-1].timeout_ms
        open_ns = time_ns - self.transaction.time_ns
        return timeout_ms if open_ns > timeout_ms * 1_000_000 else None

    def rivals(self, client: str, epoch: int | None) -> tuple[Session | None, Session | None]:
        """
        Return the session of a refused producer, and the one that fenced it, if captured.

        Args:
            client: The refused client.
            epoch: Its epoch; None where the request does not name it.
        """
        own = culprit = None
        for each in self.sessions:
            is_own = each.client == client if epoch is None else each.epoch <= epoch
            if is_own:
                own, culprit = each, None
            elif own is not None or epoch is not None:
                culprit = culprit or each
        return own, culprit


def client_of(observed: ObservedExchange) -> str:
    """Return client id and host of an exchange as text."""
    return (
        f"{observed.client_id} at {observed.client_host}"
        if observed.client_id
        else observed.client_host
    )
