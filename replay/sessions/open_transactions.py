"""Open transactions on the target: records and, at the end of a pass, aborts them."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

from construct import Container

from cluster.client.cluster import Cluster, CoordinatorType
from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS
from dissector.protocol.error_codes import ERRORS, error_code, error_name
from replay.sessions.retry_policy import FIRST_PAUSE_S, LONGEST_PAUSE_S
from replay.sessions.transaction_compat import added_elements

_BEGINNING_APIS = frozenset({"AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "Produce"})
APIS_OF_TRANSACTIONS = _BEGINNING_APIS | {"EndTxn"}
_ENDING_APIS = frozenset({"EndTxn", "InitProducerId"})

_TIMEOUT_MS = 60_000

_NOT_FOUND = error_code("TRANSACTIONAL_ID_NOT_FOUND")
_COMPLETED_STATES = frozenset({"Empty", "CompleteCommit", "CompleteAbort"})


class OpenTransactions:
    """
    The transactions of a pass.

    Attributes:
        open: Transactional ids that may have an open transaction -> when it began, at the earliest.
        added: Transactional id -> the partitions and groups in its transaction, added by its
            client or by the replay.
    """

    def __init__(self) -> None:
        self.open: dict[str, float] = {}
        self._timeouts_s: dict[str, float] = {}
        self.added: defaultdict[str, set[Hashable]] = defaultdict(set)

    def record_request(self, api: str, body: Container) -> None:
        """Record a sent request."""
        title = transactional_id_of(body)
        if api == "InitProducerId" and title:
            self._timeouts_s[title] = body.transaction_timeout_ms / 1000
        if api in _BEGINNING_APIS and title:
            self.begin(title)
            self.added[title] |= added_elements(api, body)

    def begin(self, transactional_id: str) -> None:
        """Record that a transaction has begun, unless it had."""
        self.open.setdefault(transactional_id, time.monotonic())

    def timeout_left_s(self, transactional_id: str) -> float:
        """Return the time until an open transaction times out; 0 if its timeout is unknown."""
        timeout_s = self._timeouts_s.get(transactional_id, 0.0)
        return self.open[transactional_id] + timeout_s - time.monotonic()

    def record_response(self, api: str, body: Container, response: Container) -> bool:
        """
        Record the response to a request.

        Returns:
            Whether the target may have aborted its transaction before, as the timeout is over.
        """
        title = transactional_id_of(body) or ""
        may_be_over = (
            api in APIS_OF_TRANSACTIONS
            and title in self.open
            and title in self._timeouts_s
            and self.timeout_left_s(title) <= 0
        )
        if api in _ENDING_APIS and not response.error_code:
            self.record_end(title)
        return may_be_over

    def record_end(self, transactional_id: str) -> None:
        """Record that a transactional id has no open transaction any more."""
        self.open.pop(transactional_id, None)
        self.added.pop(transactional_id, None)

    async def abort(
        self, cluster: Cluster, timeout_s: float, titles: Iterable[str] = ()
    ) -> list[str]:
        """
        Abort the transactions that are open on the target, by InitProducerId.

        Args:
            cluster: The target.
            timeout_s: Timeout for each.
            titles: Only those of these transactional ids; by default all.

        Returns:
            For each transaction that could not be aborted a message with the reason.
        """
        failures = []
        for title in list(titles) or list(self.open):
            self.record_end(title)
            try:
                async with asyncio.timeout(timeout_s):
                    await _abort(cluster, title)
            except (ReplayError, TimeoutError) as error:
                why = str(error) or f"not done in {timeout_s:g} s"
                failures.append(f"the transaction of {title!r} may still be open: {why}")
        return failures


async def _abort(cluster: Cluster, transactional_id: str) -> None:
    body = {
        "transactional_id": transactional_id,
        "transaction_timeout_ms": _TIMEOUT_MS,
        "producer_id": -1,
        "producer_epoch": -1,
        "enable2_pc": False,
        "keep_prepared_txn": False,
    }
    pause_s = FIRST_PAUSE_S
    while True:
        node = await cluster.coordinator(CoordinatorType.TRANSACTION, transactional_id)
        error = await _error(cluster, node, body)
        if not error:
            return
        if not ERRORS.get(error, ("", False))[1]:
            raise ReplayError(transactional_id, f"InitProducerId: {error_name(error)}")
        cluster.forget_coordinator(CoordinatorType.TRANSACTION, transactional_id)
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


async def is_completed(cluster: Cluster, transactional_id: str) -> bool | None:
    """Return whether a transactional id has no open transaction; None if the target can't say."""
    if KEYS["DescribeTransactions"] not in cluster.versions:
        return None
    node = await cluster.coordinator(CoordinatorType.TRANSACTION, transactional_id)
    response = await cluster.request(
        node, "DescribeTransactions", {"transactional_ids": [transactional_id]}
    )
    (state,) = response.transaction_states
    return bool(state.error_code == _NOT_FOUND or state.transaction_state in _COMPLETED_STATES)


async def _error(cluster: Cluster, node: int | None, body: dict[str, Any]) -> int:
    """Abort a transaction if it is open; return an error code."""
    if await is_completed(cluster, body["transactional_id"]):
        return 0
    error: int = (await cluster.request(node, "InitProducerId", body)).error_code
    return error


def transactional_id_of(body: Container) -> str | None:
    """Return the transactional id in a request; None or empty without one."""
    title: str | None = body.get("transactional_id") or body.get("v3_and_below_transactional_id")
    return title
