"""
Predicts the synthesised requests of a replay, for a rehearsal.

It applies to the captured responses the rules that `made_up` and `additions` apply to the target's.
"""

from __future__ import annotations

from typing import NamedTuple

from construct import Container

from dissector.protocol.messages import Message
from replay.model.step import Step
from replay.sessions.missing_producers import NO_BEGINNING, Asker, producer_of, was_refused
from replay.sessions.open_transactions import Transactions
from replay.sessions.transaction_compat import added, addition


class Beside(NamedTuple):
    """
    The synthesised requests for one captured request.

    Attributes:
        before: Descriptions of the requests that would be sent before it.
        refused: Why it would be left out; empty if it would be sent.
    """

    before: tuple[str, ...] = ()
    refused: str = ""


class MissingRequests:
    """
    The producers and transactions that the requests and responses of a capture show.

    Args:
        is_partial: Whether the capture lacks packets.
    """

    def __init__(self, is_partial: bool) -> None:
        self._is_partial = is_partial
        self._producers: set[int] = set()
        self._numbers: set[tuple[int, int]] = set()
        self._transactions = Transactions()

    def beside(self, step: Step) -> Beside:
        """Return the synthesised requests for the next request that is sent."""
        asked, answered = step.captured.request_message(), step.captured.response_message()
        asker = producer_of(asked)
        before = list(self._new_producer(asker))
        is_taken = self._is_partial and asker is not None and not was_refused(step.captured)
        if asker is not None and asker.title and is_taken and asked.body is not None:
            if asked.api == "EndTxn" and asker.title not in self._transactions.open:
                self._learn(asked, answered, asker)
                return Beside(refused=NO_BEGINNING)
            before += self._end(asker, asked.api or "", asked.body)
            before += self._additions(asker, asked, asked.body)
        self._learn(asked, answered, asker)
        return Beside(tuple(before))

    def _new_producer(self, asker: Asker | None) -> list[str]:
        if asker is None or asker.producer_id in self._producers:
            return []
        self._producers.add(asker.producer_id)
        return [f"InitProducerId for producer {asker.producer_id}"]

    def _end(self, asker: Asker, api: str, body: Container) -> list[str]:
        known = asker.number not in self._numbers and any(
            each == asker.producer_id for each, _ in self._numbers
        )
        again = not added(api, body).isdisjoint(self._transactions.added.get(asker.title, ()))
        if asker.title not in self._transactions.open or not (known or again):
            return []
        self._transactions.ended(asker.title)
        return [f"EndTxn, a commit, for {asker.title}"]

    def _additions(self, asker: Asker, asked: Message, body: Container) -> list[str]:
        version = asked.api_version or 0
        wanted = addition(asked.api or "", version, version, body, is_partial=True)
        if wanted is None or wanted.what <= self._transactions.added[asker.title]:
            return []
        self._transactions.added[asker.title].update(wanted.what)
        named = (f"{e[0]}-{e[1]}" if isinstance(e, tuple) else str(e) for e in wanted.what)
        return [f"{wanted.api} of {', '.join(sorted(named))} for {asker.title}"]

    def _learn(self, asked: Message, answered: Message | None, asker: Asker | None) -> None:
        if asker is not None:
            self._numbers.add(asker.number)
        if asked.body is not None:
            self._transactions.sent(asked.api or "", asked.body)
        if answered is None or answered.body is None or asked.body is None:
            return
        if "producer_id" in answered.body and answered.body.producer_id >= 0:
            self._producers.add(answered.body.producer_id)
            self._numbers.add((answered.body.producer_id, answered.body.producer_epoch))
        if "error_code" in answered.body:
            self._transactions.answered(asked.api or "", asked.body, answered.body)
