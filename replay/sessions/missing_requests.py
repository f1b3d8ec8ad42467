"""
Predicts the synthesised requests of a replay, for a dry run.

It applies to the captured responses the rules that `missing_producers` and `transaction_compat`
apply to the target's.
"""

from __future__ import annotations

from typing import NamedTuple

from construct import Container

from dissector.protocol.messages import Message
from replay.model.step import Step
from replay.sessions.missing_producers import (
    NO_BEGINNING,
    CapturedProducer,
    producer_of,
    was_refused,
)
from replay.sessions.open_transactions import OpenTransactions
from replay.sessions.transaction_compat import added_elements, addition_for


class SynthesisedRequests(NamedTuple):
    """
    The synthesised requests for one captured request.

    Attributes:
        before: Descriptions of the requests to be sent before it.
        exclusion: Reason for its exclusion; empty if it would be sent.
    """

    before: tuple[str, ...] = ()
    exclusion: str = ""


class MissingRequests:
    """
    The producers and transactions that the requests and responses of a capture show.

    Args:
        is_partial: Whether the capture lacks packets.
    """

    def __init__(self, is_partial: bool) -> None:
        self._is_partial = is_partial
        self._producers: set[int] = set()
        self._ids_and_epochs: set[tuple[int, int]] = set()
        self._transactions = OpenTransactions()

    def predict(self, step: Step) -> SynthesisedRequests:
        """Return the synthesised requests for the next request that is sent."""
        request, response = step.captured.request_message(), step.captured.response_message()
        producer = producer_of(request)
        before = list(self._new_producer(producer))
        was_accepted = self._is_partial and producer is not None and not was_refused(step.captured)
        if (
            producer is not None
            and producer.transactional_id
            and was_accepted
            and request.body is not None
        ):
            if request.api == "EndTxn" and producer.transactional_id not in self._transactions.open:
                self._record_exchange(request, response, producer)
                return SynthesisedRequests(exclusion=NO_BEGINNING)
            before += self._end(producer, request.api or "", request.body)
            before += self._additions(producer, request, request.body)
        self._record_exchange(request, response, producer)
        return SynthesisedRequests(tuple(before))

    def _new_producer(self, producer: CapturedProducer | None) -> list[str]:
        if producer is None or producer.producer_id in self._producers:
            return []
        self._producers.add(producer.producer_id)
        return [f"InitProducerId for producer {producer.producer_id}"]

    def _end(self, producer: CapturedProducer, api: str, body: Container) -> list[str]:
        has_new_epoch = producer.id_and_epoch not in self._ids_and_epochs and any(
            each == producer.producer_id for each, _ in self._ids_and_epochs
        )
        is_added_again = not added_elements(api, body).isdisjoint(
            self._transactions.added.get(producer.transactional_id, ())
        )
        if producer.transactional_id not in self._transactions.open or not (
            has_new_epoch or is_added_again
        ):
            return []
        self._transactions.record_end(producer.transactional_id)
        return [f"EndTxn, a commit, for {producer.transactional_id}"]

    def _additions(
        self, producer: CapturedProducer, request: Message, body: Container
    ) -> list[str]:
        version = request.api_version or 0
        wanted = addition_for(request.api or "", version, version, body, is_partial=True)
        if wanted is None or wanted.elements <= self._transactions.added[producer.transactional_id]:
            return []
        self._transactions.added[producer.transactional_id].update(wanted.elements)
        named = (f"{e[0]}-{e[1]}" if isinstance(e, tuple) else str(e) for e in wanted.elements)
        return [f"{wanted.api} of {', '.join(sorted(named))} for {producer.transactional_id}"]

    def _record_exchange(
        self, request: Message, response: Message | None, producer: CapturedProducer | None
    ) -> None:
        if producer is not None:
            self._ids_and_epochs.add(producer.id_and_epoch)
        if request.body is not None:
            self._transactions.record_request(request.api or "", request.body)
        if response is None or response.body is None or request.body is None:
            return
        if "producer_id" in response.body and response.body.producer_id >= 0:
            self._producers.add(response.body.producer_id)
            self._ids_and_epochs.add((response.body.producer_id, response.body.producer_epoch))
        if "error_code" in response.body:
            self._transactions.record_response(request.api or "", request.body, response.body)
