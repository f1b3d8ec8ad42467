"""
How the transactions of a pass ended, by producer id: what the markers in the logs must say.

A partition has markers of those transactions only that wrote to it, so its markers are some of
the endings, in their order. An ending without a response may be either. Source: KIP-98, KIP-890.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from construct import Container

from replay.sessions.open_transactions import transactional_id_of

_MAX_ENDINGS = 4096
"""Endings that are kept of one producer; of one with more, none is judged."""

_BEGINNING_APIS = frozenset({"AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "Produce"})


@dataclass(slots=True)
class Ending:
    """
    The end of one transaction.

    Attributes:
        step: The step that ended it.
        is_commit: Whether it was committed; None if it may be either.
    """

    step: int
    is_commit: bool | None = None


class Endings:
    """The endings of all transactions of a pass."""

    def __init__(self) -> None:
        self._of_producer: dict[int, list[Ending]] = {}
        self._producers: dict[str, int] = {}
        self._in_flight: dict[int, tuple[Container, Ending]] = {}
        self._open: set[str] = set()
        self._ended: dict[str, Ending] = {}

    def begin(self, transactional_id: str) -> None:
        """Record that a transaction may be open."""
        self._open.add(transactional_id)
        self._ended.pop(transactional_id, None)

    def record_request(self, api: str, body: Container, step: int) -> None:
        """Record a request that is about to be sent."""
        title = transactional_id_of(body)
        if not title:
            return
        if api in _BEGINNING_APIS:
            self.begin(title)
        elif api == "EndTxn":
            ending = Ending(step)
            self._producers[title] = body.producer_id
            self._ended.pop(title, None)
            self._add(body.producer_id, ending)
            self._in_flight[id(body)] = body, ending
        elif api == "InitProducerId":
            self._ended.pop(title, None)
            if title in self._open and title in self._producers:
                self._add(self._producers[title], Ending(step, is_commit=False))

    def record_response(self, api: str, body: Container, response: Container) -> None:
        """Record the response to a request."""
        title = transactional_id_of(body)
        if not title:
            return
        if api == "EndTxn":
            _, ending = self._in_flight.pop(id(body), (body, None))
            if ending is not None and not response.error_code:
                ending.is_commit = body.committed
                self._ended[title] = ending
                self._open.discard(title)
        elif api == "InitProducerId" and not response.error_code:
            self._producers[title] = response.producer_id
            self._open.discard(title)

    def of_producers(self) -> dict[int, list[Ending]]:
        """Return the endings of each producer id of the target whose endings are all known."""
        for title in self._open & self._producers.keys():
            # The end of the pass aborts it.
            endings = self._of_producer.get(self._producers[title])
            if endings:
                endings.append(Ending(endings[-1].step, is_commit=False))
        return {
            producer: endings
            for producer, endings in self._of_producer.items()
            if len(endings) < _MAX_ENDINGS
        }

    def states(self) -> Iterator[tuple[str, Ending]]:
        """Yield the transactional ids whose newest transaction ended, with its end."""
        yield from self._ended.items()

    def _add(self, producer_id: int, ending: Ending) -> None:
        endings = self._of_producer.setdefault(producer_id, [])
        if len(endings) < _MAX_ENDINGS:
            endings.append(ending)
