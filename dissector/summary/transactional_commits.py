"""Offsets committed in transactions, which count when the transaction is committed (KIP-98)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dissector.summary.group_events import Committed, TransactionEnded


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
            self._open.setdefault(event.transactional_id, []).append(event)
        else:
            yield event
