"""
Transactions, from requests to the coordinator, without Kafka 4's implicit begin (KIP-890).

A client sends all requests to a coordinator over one connection. If that connection is captured
without gaps from InitProducerId to EndTxn, so are all additions to the transaction; the partitions
produced to in the meantime can be compared with them.

Source: TransactionCoordinator.scala, TransactionManager.java; KIP-98, KIP-890.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias
from weakref import ref

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.evidence.producer_appends import produce_results

FIRST_IMPLICIT_PRODUCE = 12
"""From this version on, Produce adds its partitions to the transaction itself."""
FIRST_IMPLICIT_END = 5
_FIRST_ADDED_BY_BROKERS = 4

TopicPartition: TypeAlias = tuple[str, int]
"""Name of a topic, and number of a partition."""

_MAX_PRODUCED = 10_000
"""Limit of the retained partitions of one transaction."""


class ProducerSession(NamedTuple):
    """A transactional producer: its host, transactional id, producer id and epoch."""

    host: str
    transactional_id: str
    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """
    A transaction that is open, or may begin.

    Attributes:
        is_begun: Whether anything was added to it on this connection.
        is_committed: Whether the previous transaction was committed; None if there was none.
    """

    is_begun: bool = False
    is_committed: bool | None = None


class TransactionHistory:
    """The transactions on a coordinator connection captured from its beginning."""

    def __init__(self) -> None:
        self._current: Callable[[], Observation | None] = lambda: None
        self._transaction: Transaction | None = None
        self._open: BoundedDict[ProducerSession, Transaction] = BoundedDict(1000)

    def transaction_of(self, observation: Observation) -> Transaction | None:
        """Return the transaction that an EndTxn ends; None if its beginning was not captured."""
        if self._current() is not observation:
            self._current = ref(observation)
            self._transaction = self._apply(observation)
        return self._transaction

    def _apply(self, observation: Observation) -> Transaction | None:
        """Apply an exchange; return the state of the ended transaction."""
        request, response = observation.request_body, observation.response_body
        if observation.connection.gap_reason or request is None or response is None:
            self._open.clear()
            return None
        if observation.exchange.api == "InitProducerId":
            if request.transactional_id is not None and not response.error_code:
                begun = _producer_session(observation, request.transactional_id, response)
                self._open[begun] = Transaction()
            return None
        if observation.exchange.api != "EndTxn":
            adding = _adding_session(observation)
            if adding is not None and adding in self._open and not is_rejected(observation):
                self._open[adding] = Transaction(is_begun=True)
            return None
        producer = ending_session(observation)
        transaction = self._open.get(producer)
        if transaction is not None and not response.error_code:
            self._open[producer] = Transaction(is_committed=bool(request.committed))
        return transaction


class AddedPartitions(BoundedDict[tuple[ProducerSession, TopicPartition | None], None]):
    """The partitions that a producer added in its epoch; None means any addition."""

    def record(self, observation: Observation) -> None:
        """Record the partitions that an exchange added, on any connection."""
        producer = _adding_session(observation)
        if producer is None or observation.request_body is None or is_rejected(observation):
            return
        self[producer, None] = None
        for topic in observation.request_body.get("v3_and_below_topics") or ():
            for partition in topic.partitions or ():
                self[producer, (topic.name, partition)] = None


def _adding_session(observation: Observation) -> ProducerSession | None:
    """Return the producer of the transaction that a request adds to; None if it adds nothing."""
    request = observation.request_body
    if request is None or observation.exchange.api not in ("AddOffsetsToTxn", "AddPartitionsToTxn"):
        return None
    if observation.exchange.api == "AddOffsetsToTxn":
        return _producer_session(observation, request.transactional_id, request)
    if (observation.version or 0) >= _FIRST_ADDED_BY_BROKERS:
        return None
    name, number = request.v3_and_below_transactional_id, request.v3_and_below_producer_id
    return ProducerSession(_host(observation), name, number, request.v3_and_below_producer_epoch)


def is_rejected(observation: Observation) -> bool:
    """Return whether a request was refused entirely: an error of one partition rejects all."""
    response = observation.response_body
    if response is None:
        return False  # it may have been added
    if "error_code" in response:
        return bool(response.error_code)
    topics = response.get("results_by_topic_v3_and_below") or ()
    return any(each.partition_error_code for topic in topics for each in topic.results_by_partition)


class ProducedPartitions(BoundedDict[ProducerSession, "BoundedDict[TopicPartition, int]"]):
    """Partitions produced to in explicit transactions, with the packet of the request."""

    def record(self, observation: Observation) -> None:
        """Record the transactional batches of a Produce exchange that were appended."""
        if observation.unreadable_reason():
            return
        if (observation.version or 0) >= FIRST_IMPLICIT_PRODUCE:
            return
        for each in produce_results(observation):
            for batch in () if each.error_code else each.batches or ():
                if getattr(batch, "transactional", False):
                    name = each.transactional_id or ""
                    producer = _producer_session(observation, name, batch)
                    found = self.get(producer)
                    if found is None:
                        found = self[producer] = BoundedDict(_MAX_PRODUCED)
                    partition = each.name or "", each.partition
                    found[partition] = observation.exchange.request_packet or 0


def ending_session(observation: Observation) -> ProducerSession:
    """Return the producer of an EndTxn request's transaction."""
    assert observation.request_body is not None
    return _producer_session(
        observation, observation.request_body.transactional_id, observation.request_body
    )


def _host(observation: Observation) -> str:
    """Return the host of the client."""
    return observation.connection.client.address.rpartition(":")[0]


def _producer_session(observation: Observation, name: str, producer: Any) -> ProducerSession:
    return ProducerSession(_host(observation), name, producer.producer_id, producer.producer_epoch)
