"""
Transaction state from requests to the coordinator, before Kafka 4's implicit begin (KIP-890).

A client sends its coordinator requests over one connection. From an InitProducerId on it up to an
EndTxn on it, without losses, all additions to the transaction were captured; so the partitions
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

FIRST_IMPLICIT_PRODUCE = 12
"""From this version on Produce adds its partitions to the transaction itself."""
FIRST_IMPLICIT_END = 5
_FIRST_ADDED_BY_BROKERS = 4

TopicPartition: TypeAlias = tuple[str, int]
"""Name of a topic, and number of a partition."""

_MAX_PRODUCED = 10_000
"""Limit of the partitions kept for one transaction."""


class ProducerSession(NamedTuple):
    """A transactional producer: its host, transactional id, producer id and epoch."""

    host: str
    transactional_id: str
    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """
    A transaction that is open, or could be opened.

    Attributes:
        is_begun: Whether anything was added to it on this connection.
        is_committed: Whether the previous one was committed; None where there was none.
    """

    is_begun: bool = False
    is_committed: bool | None = None


class TransactionHistory:
    """The transactions whose beginning was captured on one connection to a coordinator."""

    def __init__(self) -> None:
        self._current: Callable[[], Observation | None] = lambda: None
        self._transaction: Transaction | None = None
        self._open: BoundedDict[ProducerSession, Transaction] = BoundedDict(1000)

    def at(self, observation: Observation) -> Transaction | None:
        """Return the transaction that an EndTxn ends; None where its beginning was not captured."""
        if self._current() is not observation:
            self._current = ref(observation)
            self._transaction = self._apply(observation)
        return self._transaction

    def _apply(self, observation: Observation) -> Transaction | None:
        """Apply an exchange; return the transaction that it ends, in its state before."""
        asked, told = observation.request_body, observation.response_body
        if observation.connection.gap_reason or asked is None or told is None:
            self._open.clear()
            return None
        if observation.exchange.api == "InitProducerId":
            if asked.transactional_id is not None and not told.error_code:
                self._open[_producer_session(observation, asked.transactional_id, told)] = (
                    Transaction()
                )
            return None
        if observation.exchange.api != "EndTxn":
            who = _adding_session(observation)
            if who is not None and who in self._open and not is_rejected(observation):
                self._open[who] = Transaction(is_begun=True)
            return None
        who = ending_session(observation)
        known = self._open.get(who)
        if known is not None and not told.error_code:
            self._open[who] = Transaction(is_committed=bool(asked.committed))
        return known


class AddedPartitions(BoundedDict[tuple[ProducerSession, TopicPartition | None], None]):
    """The partitions that a producer has added in its epoch; None stands for any addition."""

    def record(self, observation: Observation) -> None:
        """Record the additions of an exchange, on any connection."""
        who = _adding_session(observation)
        if who is None or observation.request_body is None or is_rejected(observation):
            return
        self[who, None] = None
        for topic in observation.request_body.get("v3_and_below_topics") or ():
            for partition in topic.partitions or ():
                self[who, (topic.name, partition)] = None


def _adding_session(observation: Observation) -> ProducerSession | None:
    """Return the producer whose transaction a request adds to; None where it adds nothing."""
    asked = observation.request_body
    if asked is None or observation.exchange.api not in ("AddOffsetsToTxn", "AddPartitionsToTxn"):
        return None
    if observation.exchange.api == "AddOffsetsToTxn":
        return _producer_session(observation, asked.transactional_id, asked)
    if (observation.version or 0) >= _FIRST_ADDED_BY_BROKERS:
        return None
    name, number = asked.v3_and_below_transactional_id, asked.v3_and_below_producer_id
    return ProducerSession(_host(observation), name, number, asked.v3_and_below_producer_epoch)


def is_rejected(observation: Observation) -> bool:
    """Return whether nothing was added: an error of one partition rejects all."""
    told = observation.response_body
    if told is None:
        return False  # unknown, so it may have been added
    if "error_code" in told:
        return bool(told.error_code)
    topics = told.get("results_by_topic_v3_and_below") or ()
    return any(each.partition_error_code for topic in topics for each in topic.results_by_partition)


class ProducedPartitions(BoundedDict[ProducerSession, "BoundedDict[TopicPartition, int]"]):
    """Partitions appended to in explicit transactions, with the packet of the request."""

    def record(self, observation: Observation) -> None:
        """Record the transactional batches of a Produce exchange that were appended."""
        asked, told = observation.request_body, observation.response_body
        if asked is None or told is None or (observation.version or 0) >= FIRST_IMPLICIT_PRODUCE:
            return
        fine = {
            (topic.name, each.index)
            for topic in told.responses or ()
            for each in topic.partition_responses or ()
            if not each.error_code
        }
        for _, carried in observation.record_fields:
            place = carried.topic or "", carried.partition
            for batch in carried.batches:
                if place in fine and getattr(batch, "transactional", False):
                    who = _producer_session(observation, asked.get("transactional_id") or "", batch)
                    found = self.get(who)
                    if found is None:
                        found = self[who] = BoundedDict(_MAX_PRODUCED)
                    found[place] = observation.exchange.request_packet or 0


def ending_session(observation: Observation) -> ProducerSession:
    """Return the producer whose transaction an EndTxn request ends."""
    assert observation.request_body is not None
    return _producer_session(
        observation, observation.request_body.transactional_id, observation.request_body
    )


def _host(observation: Observation) -> str:
    """Return the host of the client."""
    return observation.connection.client.address.rpartition(":")[0]


def _producer_session(observation: Observation, name: str, producer: Any) -> ProducerSession:
    return ProducerSession(_host(observation), name, producer.producer_id, producer.producer_epoch)
