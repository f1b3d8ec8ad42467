"""Offsets committed in transactions, which count when the transaction is committed (KIP-98)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dissector.summary.group_events import Committed, TransactionEnded

MAX_TRANSACTIONS, MAX_COMMITS = 10_000, 1_000
"""Maximum number of open transactions, and of commits in one; the oldest are dropped."""


class TransactionalCommits:
    """The offsets of open transactions."""

    def __init__(self) -> None:
        self._open: dict[str, list[Committed]] = {}

    def settle(self, event: Committed | TransactionEnded) -> Iterator[Committed]:
        """Process an event; yield the offsets that count from now on."""
        if isinstance(event, TransactionEnded):
            for each in self._open.pop(event.transactional_id, ()):
                if event.is_committed:
                    yield replace(each, transactional_id=None)
        elif event.transactional_id is not None:
            commits = self._open.setdefault(event.transactional_id, [])
            commits.append(event)
            del commits[:-MAX_COMMITS]
            if len(self._open) > MAX_TRANSACTIONS:
                del self._open[next(iter(self._open))]
        else:
            yield event
