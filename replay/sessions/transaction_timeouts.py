"""
Timeouts of transactions: a captured transaction that the broker aborted by its timeout.

A replay that is faster than the capture has to wait until the target does the same. If that takes
longer than the timeout of the replay, the transaction is aborted by InitProducerId, which a
timeout is like: both abort and fence. Brokers look for such transactions from time to time (each 10
seconds), so the target may also abort one before a request that the captured broker answered.
Source: KIP-98, KIP-890; Kafka, TransactionCoordinator.scala,
transaction.abort.timed.out.transaction.cleanup.interval.ms.
"""

from __future__ import annotations

from contextlib import suppress

from cluster.client.cluster import Cluster
from cluster.fields.roles import value_walk
from dissector.errors import ReplayError
from dissector.protocol.error_codes import error_code
from dissector.protocol.field_roles import Role
from dissector.protocol.messages import Message
from replay.mapping.id_map import IdMap
from replay.model.step import Step
from replay.sessions.open_transactions import (
    APIS_OF_TRANSACTIONS,
    OpenTransactions,
    is_completed,
    transactional_id_of,
)

_ERRORS = frozenset({Role.ERROR})

_OF_FENCED_PRODUCERS = frozenset(
    error_code(name) for name in ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "INVALID_TXN_STATE")
)
"""Errors of a request in a transaction that is over."""


async def until_timed_out(
    step: Step, message: Message, ids: IdMap, transactions: OpenTransactions, cluster: Cluster
) -> bool:
    """
    Wait until the target has aborted a transaction, if the captured broker had before this request.

    Args:
        step: The step, before it is sent.
        message: Its captured request.
        ids: The id mapping.
        transactions: The transactions that are open on the target.
        cluster: The target.

    Returns:
        False if the transaction had to be aborted instead.
    """
    body = message.body
    if message.api not in APIS_OF_TRANSACTIONS or body is None or not _was_over(step):
        return True
    title = ids.names.prefixed(transactional_id_of(body) or "")
    if title not in transactions.open:
        return True  # another producer has fenced this one, here too
    if transactions.timeout_left_s(title) <= cluster.timeout_s:
        with suppress(ReplayError):
            async for _ in cluster.attempts(f"the transaction of {title!r} did not time out"):
                if await is_completed(cluster, title) is not False:
                    transactions.record_end(title)
                    return True
    await transactions.abort(cluster, cluster.timeout_s, [title])
    return False


def _was_over(step: Step) -> bool:
    """Return whether the captured response shows that the transaction was over."""
    response = step.captured.response_message()
    if response is None or response.body is None or response.schema is None:
        return False
    errors = value_walk(response.schema, response.api_version or 0, _ERRORS)(response.body)
    return not _OF_FENCED_PRODUCERS.isdisjoint(errors)
