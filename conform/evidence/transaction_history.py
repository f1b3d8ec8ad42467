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

from conform.evidence.bounded_memory import Newest
from conform.evidence.observation import Turn

FIRST_IMPLICIT_PRODUCE = 12
"""From this version on Produce adds its partitions to the transaction itself."""
FIRST_IMPLICIT_END = 5
_FIRST_ADDED_BY_BROKERS = 4

Topic: TypeAlias = tuple[str, int]
"""Name of a topic, and number of a partition."""

_MOST_PRODUCED = 10_000
"""Limit of the partitions kept for one transaction."""


class Who(NamedTuple):
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
        ended: Whether the previous one was committed; None where there was none.
    """

    is_begun: bool = False
    ended: bool | None = None


class Coordinated:
    """The transactions whose beginning was captured on one connection to a coordinator."""

    def __init__(self) -> None:
        self._turn: Callable[[], Turn | None] = lambda: None
        self._newest: Transaction | None = None
        self._open: Newest[Who, Transaction] = Newest(1000)

    def at(self, turn: Turn) -> Transaction | None:
        """Return the transaction that an EndTxn ends; None where its beginning was not captured."""
        if self._turn() is not turn:
            self._turn = ref(turn)
            self._newest = self._take(turn)
        return self._newest

    def _take(self, turn: Turn) -> Transaction | None:
        """Apply an exchange; return the transaction that it ends, in its state before."""
        asked, told = turn.asked, turn.told
        if turn.talk.torn or asked is None or told is None:
            self._open.clear()
            return None
        if turn.exchange.api == "InitProducerId":
            if asked.transactional_id is not None and not told.error_code:
                self._open[_who(turn, asked.transactional_id, told)] = Transaction()
            return None
        if turn.exchange.api != "EndTxn":
            who = _adding(turn)
            if who is not None and who in self._open and not is_refused(turn):
                self._open[who] = Transaction(is_begun=True)
            return None
        who = ending(turn)
        known = self._open.get(who)
        if known is not None and not told.error_code:
            self._open[who] = Transaction(ended=bool(asked.committed))
        return known


class Added(Newest[tuple[Who, Topic | None], None]):
    """The partitions that a producer has added in its epoch; None stands for any addition."""

    def take(self, turn: Turn) -> None:
        """Record the additions of an exchange, on any connection."""
        who = _adding(turn)
        if who is None or turn.asked is None or is_refused(turn):
            return
        self[who, None] = None
        for topic in turn.asked.get("v3_and_below_topics") or ():
            for partition in topic.partitions or ():
                self[who, (topic.name, partition)] = None


def _adding(turn: Turn) -> Who | None:
    """Return the producer whose transaction a request adds to; None where it adds nothing."""
    asked = turn.asked
    if asked is None or turn.exchange.api not in ("AddOffsetsToTxn", "AddPartitionsToTxn"):
        return None
    if turn.exchange.api == "AddOffsetsToTxn":
        return _who(turn, asked.transactional_id, asked)
    if (turn.version or 0) >= _FIRST_ADDED_BY_BROKERS:
        return None
    name, number = asked.v3_and_below_transactional_id, asked.v3_and_below_producer_id
    return Who(_host(turn), name, number, asked.v3_and_below_producer_epoch)


def is_refused(turn: Turn) -> bool:
    """Return whether nothing was added: an error of one partition rejects all."""
    told = turn.told
    if told is None:
        return False  # unknown, so it may have been added
    if "error_code" in told:
        return bool(told.error_code)
    topics = told.get("results_by_topic_v3_and_below") or ()
    return any(each.partition_error_code for topic in topics for each in topic.results_by_partition)


class Produced(Newest[Who, "Newest[Topic, int]"]):
    """Partitions appended to in explicit transactions, with the packet of the request."""

    def take(self, turn: Turn) -> None:
        """Record the transactional batches of a Produce exchange that were appended."""
        asked, told = turn.asked, turn.told
        if asked is None or told is None or (turn.version or 0) >= FIRST_IMPLICIT_PRODUCE:
            return
        fine = {
            (topic.name, each.index)
            for topic in told.responses or ()
            for each in topic.partition_responses or ()
            if not each.error_code
        }
        for _, carried in turn.carried:
            place = carried.topic or "", carried.partition
            for batch in carried.batches:
                if place in fine and getattr(batch, "transactional", False):
                    who = _who(turn, asked.get("transactional_id") or "", batch)
                    found = self.get(who)
                    if found is None:
                        found = self[who] = Newest(_MOST_PRODUCED)
                    found[place] = turn.exchange.request_packet or 0


def ending(turn: Turn) -> Who:
    """Return the producer whose transaction an EndTxn request ends."""
    assert turn.asked is not None
    return _who(turn, turn.asked.transactional_id, turn.asked)


def _host(turn: Turn) -> str:
    """Return the host of the client."""
    return turn.talk.client.address.rpartition(":")[0]


def _who(turn: Turn, name: str, producer: Any) -> Who:
    return Who(_host(turn), name, producer.producer_id, producer.producer_epoch)
