"""Transactions that are open on the target, so that none stays behind."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Hashable
from typing import Any

from construct import Container

from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS
from dissector.protocol.error_codes import ERRORS, error_code, error_name
from replay.client.cluster import Cluster, CoordinatorType
from replay.sessions.retry_policy import FIRST_PAUSE_S, LONGEST_PAUSE_S
from replay.sessions.transaction_compat import added

_BEGIN = frozenset({"AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "Produce"})
_END = frozenset({"EndTxn", "InitProducerId"})

_TIMEOUT_MS = 60_000

_NOT_FOUND = error_code("TRANSACTIONAL_ID_NOT_FOUND")
_SETTLED = frozenset({"Empty", "CompleteCommit", "CompleteAbort"})


class Transactions:
    """
    The transactions of a pass.

    Attributes:
        open: Transactional ids that may have an open transaction.
        added: Transactional id -> what was added to its transaction, by its client or by us.
    """

    def __init__(self) -> None:
        self.open: dict[str, None] = {}
        self.added: defaultdict[str, set[Hashable]] = defaultdict(set)

    def sent(self, api: str, body: Container) -> None:
        """Note a request as it is sent."""
        title = title_of(body)
        if api in _BEGIN and title:
            self.open[title] = None
            self.added[title] |= added(api, body)

    def answered(self, api: str, body: Container, answer: Container) -> None:
        """Note what became of it."""
        if api in _END and not answer.error_code:
            self.ended(title_of(body) or "")

    def ended(self, title: str) -> None:
        """Note that nothing of a transactional id is open any more."""
        self.open.pop(title, None)
        self.added.pop(title, None)

    async def abort(self, cluster: Cluster, timeout_s: float) -> list[str]:
        """
        Abort what the target says is open: a producer that begins anew ends what was before.

        Returns:
            What could not be aborted, and why.
        """
        failures = []
        for title in list(self.open):
            try:
                async with asyncio.timeout(timeout_s):
                    await _abort(cluster, title)
            except (ReplayError, TimeoutError) as error:
                why = str(error) or f"not done in {timeout_s:g} s"
                failures.append(f"the transaction of {title!r} may still be open: {why}")
        self.open.clear()
        return failures


async def _abort(cluster: Cluster, title: str) -> None:
    body = {
        "transactional_id": title,
        "transaction_timeout_ms": _TIMEOUT_MS,
        "producer_id": -1,
        "producer_epoch": -1,
        "enable2_pc": False,
        "keep_prepared_txn": False,
    }
    pause_s = FIRST_PAUSE_S
    while True:
        node = await cluster.coordinator(CoordinatorType.TRANSACTION, title)
        error = await _error(cluster, node, body)
        if not error:
            return
        if not ERRORS.get(error, ("", False))[1]:
            raise ReplayError(title, f"InitProducerId: {error_name(error)}")
        cluster.forget_coordinator(CoordinatorType.TRANSACTION, title)
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


async def is_settled(cluster: Cluster, title: str) -> bool | None:
    """Tell whether nothing of a transactional id is under way; None where the target can't say."""
    if KEYS["DescribeTransactions"] not in cluster.versions:
        return None
    node = await cluster.coordinator(CoordinatorType.TRANSACTION, title)
    answer = await cluster.request(node, "DescribeTransactions", {"transactional_ids": [title]})
    (told,) = answer.transaction_states
    return bool(told.error_code == _NOT_FOUND or told.transaction_state in _SETTLED)


async def _error(cluster: Cluster, node: int | None, body: dict[str, Any]) -> int:
    """Abort a transaction if it is open; return an error code."""
    if await is_settled(cluster, body["transactional_id"]):
        return 0
    error: int = (await cluster.request(node, "InitProducerId", body)).error_code
    return error


def title_of(body: Container) -> str | None:
    """Return the transactional id that a request names; None or empty where it names none."""
    title: str | None = body.get("transactional_id") or body.get("v3_and_below_transactional_id")
    return title
