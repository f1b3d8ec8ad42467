"""
Synthesised requests for captures that begin midway or have gaps: producers and transactions.

A producer without a captured InitProducerId gets an id, under the transactional id in its requests.
A transaction without a captured end, although its producer has begun the next one, is committed;
the end of a transaction without a captured beginning is left out.

Source: KIP-98; KIP-360, KIP-890 (epochs).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection
from typing import Any, NamedTuple

from construct import Container

from cluster.client.broker_connection import BrokerConnection
from cluster.client.cluster import Cluster
from cluster.conversion.change import Change
from cluster.fields.batch_rewriter import batch_headers
from cluster.fields.refusal import RewriteError
from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.protocol.field_roles import Role
from dissector.protocol.messages import Message
from replay.mapping.id_map import IdMap
from replay.sessions.open_transactions import OpenTransactions, transactional_id_of
from replay.sessions.retry_policy import errors_of
from replay.sessions.transaction_compat import Addition, added_elements, send_addition
from replay.sessions.visibility import wait_until_visible

NOT_CAPTURED = "not captured"
"""The rule in the report for requests that were sent although the capture lacks them."""

NO_BEGINNING = "ends a transaction whose beginning was not captured"

_NEW_PRODUCER = {
    "transaction_timeout_ms": 60_000,
    "producer_id": -1,
    "producer_epoch": -1,
    "enable2_pc": False,
    "keep_prepared_txn": False,
}

_NEWEST_FOR_CLIENTS = 5
"""The newest version of InitProducerId that doesn't ask for two-phase commit (KIP-939)."""

_TRANSACTION_APIS = frozenset(
    {"Produce", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"}
)

_RAISES_EPOCH_FROM = {"Produce": 12, "TxnOffsetCommit": 5, "EndTxn": 5}
"""API -> first client version with a new epoch after each end of a transaction."""

_NEVER = 1 << 15

_END_THAT_RAISES, _END_THAT_KEEPS = 5, 4
"""Versions of EndTxn."""


class CapturedProducer(NamedTuple):
    """A captured producer: transactional id (empty for none), producer id and epoch."""

    transactional_id: str
    producer_id: int
    epoch: int

    @property
    def id_and_epoch(self) -> tuple[int, int]:
        """Producer id and epoch."""
        return self.producer_id, self.epoch


class MissingProducers:
    """
    Sends the synthesised requests of a pass.

    Args:
        cluster: The target.
        ids: The id mapping.
        transactions: The transactions that may be open.
    """

    def __init__(self, cluster: Cluster, ids: IdMap, transactions: OpenTransactions) -> None:
        self._cluster = cluster
        self._ids = ids
        self._transactions = transactions
        self._locks: defaultdict[Any, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def prepare(
        self,
        captured: CapturedExchange,
        message: Message,
        default_node: int,
        connect: Callable[[int], Awaitable[BrokerConnection]],
    ) -> list[Change]:
        """
        Do on the target what must precede a request that the captured broker accepted.

        Args:
            captured: The request.
            message: The same, decoded.
            default_node: The node to use if no other is known.
            connect: Returns the connection to a node.

        Raises:
            RewriteError: The capture lacks the beginning of the transaction.
            ReplayError: The target does not respond, or is not ready in time.
        """
        producer = producer_of(message)
        if producer is None or not producer.transactional_id or was_refused(captured):
            return []
        title, producers = self._ids.names.prefixed(producer.transactional_id), self._ids.producers
        async with self._locks[producer.transactional_id]:
            if message.api == "EndTxn" and title not in self._transactions.open:
                self._skip_end(producer, captured)
                raise RewriteError(NO_BEGINNING)
            is_known = producers.knows(*producer.id_and_epoch)
            is_next = not is_known and producers.live(*producer.id_and_epoch) is not None
            is_next |= is_known and self._is_added(title, message)
            if not is_next or title not in self._transactions.open:
                return []
            raises = captured.api_version >= _RAISES_EPOCH_FROM.get(captured.api, _NEVER)
            change = await self._commit(producer, title, raises, (default_node, connect))
            return [change] if change else []

    def _is_added(self, transactional_id: str, message: Message) -> bool:
        """Return whether a request repeats an addition to its transaction."""
        assert message.body is not None
        names = self._ids.names
        readded = {
            (names.topic(each[0]), each[1])
            if isinstance(each, tuple)
            else names.prefixed(str(each))
            for each in added_elements(message.api or "", message.body)
        }
        return not readded.isdisjoint(self._transactions.added.get(transactional_id, ()))

    def _skip_end(self, producer: CapturedProducer, captured: CapturedExchange) -> None:
        """Map the captured epoch after an omitted EndTxn to the epoch that the target has."""
        response = captured.response_message()
        live = self._ids.producers.live(*producer.id_and_epoch)
        given = (
            response.body.get("producer_id", -1) if response is not None and response.body else -1
        )
        if live is not None and given >= 0 and response is not None and response.body is not None:
            self._ids.producers.learn((given, response.body.producer_epoch), live)

    async def _commit(
        self,
        producer: CapturedProducer,
        transactional_id: str,
        raises: bool,
        destination: tuple[int, Callable[[int], Awaitable[BrokerConnection]]],
    ) -> Change | None:
        live = self._ids.producers.live(producer.producer_id, None)
        if live is None:
            return None
        body = Container(
            transactional_id=transactional_id,
            producer_id=live[0],
            producer_epoch=live[1],
            committed=True,
        )
        version = _END_THAT_RAISES if raises else _END_THAT_KEEPS
        change = Change("transactional_id", Role.TRANSACTIONAL_ID, None, "EndTxn", NOT_CAPTURED)
        wanted = Addition(transactional_id, "EndTxn", version, body, frozenset(), change)
        response = await send_addition(wanted, self._cluster, *destination)
        if response is None:
            return None
        await wait_until_visible("EndTxn", body, response, self._cluster)
        self._transactions.record_end(transactional_id)
        self._ids.synthesised_commits += 1
        if raises:
            now = response.get("producer_id", live[0]), response.get("producer_epoch", live[1])
            self._ids.producers.learn(producer.id_and_epoch, now)
        return change

    async def obtain_id(
        self,
        captured: CapturedExchange,
        message: Message,
        value: tuple[int, int | None],
        default_node: int,
        connect: Callable[[int], Awaitable[BrokerConnection]],
    ) -> Change | None:
        """
        Get an id for a producer without a captured InitProducerId.

        Args:
            captured: The request. If the captured broker refused it, it may not have known the
                transactional id; the new id has none, so that the target doesn't know one either.
            message: The same, decoded.
            value: Captured id and epoch; the epoch is None if the field has only the id.
            default_node: The node to use if no other is known.
            connect: Returns the connection to a node.

        Returns:
            The change for the report; None if no id could be had now.
        """
        producer = producer_of(message)
        is_own = producer is not None and producer.producer_id == value[0]
        title = producer.transactional_id if producer is not None and is_own else ""
        if was_refused(captured):
            title = ""
        epoch = value[1] if value[1] is not None else 0
        named = self._ids.names.prefixed(title) if title else None
        change = Change("producer_id", Role.PRODUCER_ID, None, "InitProducerId", NOT_CAPTURED)
        async with self._locks[value[0]]:
            if self._ids.producers.live(*value) is not None:
                return change  # another connection obtained it
            request = Container(_NEW_PRODUCER, transactional_id=named)
            arguments = (
                named or "",
                "InitProducerId",
                _NEWEST_FOR_CLIENTS,
                request,
                frozenset[Any](),
            )
            given = await send_addition(
                Addition(*arguments, change), self._cluster, default_node, connect
            )
            if given is None:
                return None
            self._transactions.record_end(named or "")
            self._ids.producers.learn((value[0], epoch), (given.producer_id, given.producer_epoch))
        return change


def producer_of(message: Message) -> CapturedProducer | None:
    """Return the producer of a request; None without one."""
    body = message.body
    if body is None or message.api not in _TRANSACTION_APIS:
        return None
    if message.api != "Produce":
        ids = (
            (body.get(f"{version}{part}", -1) for part in ("producer_id", "producer_epoch"))
            for version in ("", "v3_and_below_")
        )
        found = next(((each, epoch) for each, epoch in ids if each >= 0), None)
        return None if found is None else CapturedProducer(transactional_id_of(body) or "", *found)
    records = (each.records or b"" for topic in body.topic_data for each in topic.partition_data)
    for each in records:
        batch = next(iter(batch_headers(each)), None)
        if batch is not None and batch.producer is not None and batch.producer.producer_id >= 0:
            return CapturedProducer(body.get("transactional_id") or "", *batch.producer[:2])
    return None


def was_refused(captured: CapturedExchange) -> bool:
    """Return whether the captured broker refused a request, as the target should too."""
    return any(_errors(captured))


def _errors(captured: CapturedExchange) -> Collection[int]:
    response = captured.response_message()
    if response is None or response.body is None or response.schema is None:
        return ()
    return tuple(errors_of(response.schema, response.api_version or 0, response.body))
