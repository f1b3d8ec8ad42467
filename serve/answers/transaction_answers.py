"""Answers to transactional producers: captured ids and errors, otherwise success."""

from __future__ import annotations

from construct import Container

from cluster.fields.roles import walk
from dissector.protocol.error_codes import error_code
from dissector.protocol.field_roles import Role
from serve.answers.client_request import ClientRequest, Unmatched
from serve.answers.committed_offsets import CommittedOffsets
from serve.answers.log_answers import LogAnswers
from serve.answers.mirrored_errors import error_answer
from serve.answers.served_state import ServedState
from serve.forms.canonical_body import canonical_schema, canonical_version
from serve.matching.exchange_keys import keys_of, producer_of_client

_INVALID_EPOCH = error_code("INVALID_PRODUCER_EPOCH") or 47
_FENCED = (_INVALID_EPOCH, error_code("PRODUCER_FENCED"))
_ERRORS = frozenset({Role.ERROR})
_FIRST_FREE_PRODUCER = 1_000_000
_FIRST_WITH_EPOCHS = 5
"""First version of EndTxn that returns the next epoch (KIP-890)."""


class TransactionAnswers:
    """
    Answers InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn and EndTxn.

    Attributes:
        played: Live transactional id -> captured one.
    """

    def __init__(self, state: ServedState, logs: LogAnswers, offsets: CommittedOffsets) -> None:
        self._state = state
        self._logs = logs
        self._offsets = offsets
        self.played: dict[str, str] = {}
        self._epochs: dict[str, int] = {}
        self._free_producer = _FIRST_FREE_PRODUCER

    async def init_producer_id(self, request: ClientRequest) -> Container:
        """Return the captured ids in order; afterwards repeat the last, or assign new ids."""
        body, index = request.body, self._state.recording.index
        transactional_id = body.transactional_id
        keys = keys_of(request.api_key, request.client_id, body)
        is_new = any(index.next_unused(key) is not None for key in keys)
        found = None
        if is_new:
            key = next(key for key in keys if index.next_unused(key) is not None)
            found = self._state.take_response([key])
        elif transactional_id is not None:
            found = self._state.take_response(keys)
        if found is None:
            self._free_producer += 1
            return Container(error_code=0, producer_id=self._free_producer, producer_epoch=0)
        if transactional_id is not None and not found.error_code:
            last = self._epochs.get(transactional_id, -1)
            found.producer_epoch = max(found.producer_epoch, last + (not is_new))
            self._epochs[transactional_id] = found.producer_epoch
            self._finish(found.producer_id, found.producer_epoch, is_committed=False)
        return found

    async def add_partitions(self, request: ClientRequest) -> Container:
        """Add partitions to a transaction."""
        first = request.body.transactions[0] if request.body.transactions else None
        if first is not None:
            found = self._captured(request, first.transactional_id, first.producer_epoch)
            if found is not None:
                return found
        results = [
            Container(
                transactional_id=each.transactional_id,
                topic_results=[
                    Container(
                        name=topic.name,
                        results_by_partition=[
                            Container(partition_index=part, partition_error_code=0)
                            for part in topic.partitions
                        ],
                    )
                    for topic in each.topics
                ],
            )
            for each in request.body.transactions
        ]
        for each in request.body.transactions:
            self._check_known(each.transactional_id)
        return Container(error_code=0, results_by_transaction=results)

    async def add_offsets(self, request: ClientRequest) -> Container:
        """Add the offsets of a group to a transaction."""
        body = request.body
        self._check_known(body.transactional_id)
        found = self._captured(request, body.transactional_id, body.producer_epoch)
        return found or Container(error_code=0)

    async def end(self, request: ClientRequest) -> Container:
        """Commit or abort a transaction."""
        body = request.body
        self._check_known(body.transactional_id)
        found = self._captured(request, body.transactional_id, body.producer_epoch)
        if found is None:
            found = Container(error_code=0, producer_id=-1, producer_epoch=-1)
            if request.version >= _FIRST_WITH_EPOCHS:
                found.producer_id = body.producer_id
                found.producer_epoch = body.producer_epoch + 1
        if not found.error_code:
            if found.get("producer_epoch", -1) >= 0:
                self._epochs[body.transactional_id] = found.producer_epoch
            self._finish(body.producer_id, body.producer_epoch, is_committed=bool(body.committed))
        return found

    def _finish(self, producer_id: int, epoch: int, *, is_committed: bool) -> None:
        """End the producer's open transaction, if any."""
        self._logs.end_transaction(producer_id, epoch, is_committed=is_committed)
        self._offsets.end_transaction(producer_id, is_committed=is_committed)

    def _captured(
        self, request: ClientRequest, transactional_id: str, epoch: int
    ) -> Container | None:
        """
        Return the captured response to an equivalent request; the last one repeats.

        Fencing depends on the epochs of live producers, not on the time of the captured fencing.
        """
        keys = keys_of(request.api_key, request.client_id, request.body)
        found = self._state.take_response(keys)
        is_fenced = epoch < self._epochs.get(transactional_id, epoch)
        has_fenced = found is not None and _fences(request.api_key, found)
        if is_fenced and not has_fenced:
            return error_answer(request.api_key, request.body, _INVALID_EPOCH)
        return None if has_fenced and not is_fenced else found

    def play_producer(self, request: ClientRequest) -> None:
        """Map an unknown transactional id to an unused captured one of the same client id."""
        recording, live_id = self._state.recording, request.body.transactional_id
        if not live_id or live_id in recording.transactional_ids or live_id in self.played:
            return
        key = producer_of_client(request.client_id)
        number = recording.index.next_unused(key)
        while number is not None:
            captured_id = recording.request(number).transactional_id
            if captured_id not in self.played.values():
                self.played[live_id] = captured_id
                return
            recording.index.use(number)
            number = recording.index.next_unused(key)
        raise Unmatched(f"transactional id {live_id}")

    def _check_known(self, transactional_id: str | None) -> None:
        if transactional_id and transactional_id not in self._state.recording.transactional_ids:
            raise Unmatched(f"transactional id {transactional_id}")


def _fences(api_key: int, answer: Container) -> bool:
    schema, version = canonical_schema(api_key, "response"), canonical_version(api_key)
    return any(each.value in _FENCED for each in walk(schema, version, answer, _ERRORS))
