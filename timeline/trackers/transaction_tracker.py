"""
Transactions: begin, added partitions and groups, commit or abort, fencing, open ends.

The coordinator fences a producer when another one is initialised with the same transactional id,
and when it aborts a transaction after its timeout.

Source: KIP-98, KIP-360 (epochs), KIP-890 (an epoch for each transaction, partitions added by
Produce).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from dissector.protocol.error_codes import error_name
from timeline.events.event import Event
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.states import Fresh, States
from timeline.events.words import duration
from timeline.trackers.tracker import Selection, Tracker, keep_proof
from timeline.trackers.transaction_state import Session, Transaction, TransactionalId, client_of

PRODUCE, INIT, ADD_PARTITIONS, ADD_OFFSETS, END, COMMIT_OFFSETS = 0, 22, 24, 25, 26, 28

FENCED = {"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}
OVERDUE = FENCED | {"INVALID_TXN_STATE"}
"""
Errors of a producer whose transaction the coordinator has aborted after its timeout.

Source: Kafka, TransactionCoordinator.endTransaction: the abort increases the epoch; with KIP-890
the epoch before it is still known, and the state refuses the commit.
"""
RETRIED = {
    "CONCURRENT_TRANSACTIONS",
    "NOT_COORDINATOR",
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
}
"""Errors after which clients repeat the request: transient states of the coordinator."""

TIMEOUT = "transaction timeout"

MAX_READERS = 100
"""Maximum number of named clients per epoch of a producer."""

IMPLICIT_PARTITIONS, IMPLICIT_OFFSETS = 12, 5
"""First versions of Produce and TxnOffsetCommit that add to transactions implicitly (KIP-890)."""


class Transactions(Tracker):
    """Follows transactional ids."""

    kind: ClassVar[str] = "transaction"
    rests_on_absence: ClassVar[bool] = True
    apis: ClassVar[frozenset[int]] = frozenset(
        (INIT, ADD_PARTITIONS, ADD_OFFSETS, END, COMMIT_OFFSETS)
    )
    # Of a Produce only the partitions that it adds, and these errors, say something.
    errors: ClassVar[frozenset[str]] = frozenset(OVERDUE)
    selections: ClassVar[tuple[Selection, ...]] = (
        Selection(
            PRODUCE,
            "request",
            "transactional_id",
            lambda value: value is not None,
            IMPLICIT_PARTITIONS,
        ),
    )

    def __init__(self) -> None:
        self._ids: States[str, TransactionalId] = States(TransactionalId)
        self._producers: States[int, str] = States(Fresh(str))
        self._readers: States[tuple[int, int], set[str]] = States(Fresh(set))

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Process an exchange of a transactional producer."""
        request, response = observed.request, observed.response
        if request is None or response is None:
            return
        if observed.api_key == ADD_PARTITIONS and "transactions" in request:
            yield from self._add_by_brokers(observed)
            return
        name = request.get("transactional_id", request.get("v3_and_below_transactional_id"))
        if not name:
            return
        state = self._ids.use(name)
        error = observed.error or first_error(response)
        if error in RETRIED and observed.api_key != COMMIT_OFFSETS:
            return
        if observed.api_key == PRODUCE and error and error not in OVERDUE:
            return
        version = observed.api_version or 0
        if observed.api_key == PRODUCE and not error and version < IMPLICIT_PARTITIONS:
            return
        if error:
            yield from self._failed(state, observed, error)
            return
        match observed.api_key:
            case 22:
                yield from self._init(state, observed)
            case 24:
                self._add(state, observed, request.v3_and_below_topics)
            case 25:
                self._transaction(state, observed).groups.add(request.group_id)
            case 28:
                if state.transaction or version >= IMPLICIT_OFFSETS:
                    self._transaction(state, observed).groups.add(request.group_id)
            case 0:
                transaction = self._transaction(state, observed)
                for topic in request.topic_data or ():
                    partitions = transaction.partitions.setdefault(observed.topic(topic), set())
                    partitions.update(each.index for each in topic.partition_data or ())
            case 26:
                yield from self._end(state, observed)

    def finish(self, now_ns: int) -> Iterator[Event]:
        """Report the transactions open at the end of the capture."""
        for state in self._ids.values():
            transaction = state.transaction
            if transaction is None:
                continue
            text, cause = f"not ended when the capture ends: {transaction.text()}", ""
            timeout_ms = state.timeout_ms(now_ns)
            if timeout_ms is not None:
                cause = TIMEOUT
                text = (
                    f"not ended by its producer, and its timeout of {timeout_ms} ms has passed, so "
                    f"the broker aborts it: {transaction.text()}"
                )
            yield self._event(
                state, transaction, "left open", text, transaction.time_ns, cause, certain=False
            )

    def open_since_ns(self) -> int | None:
        """Return the begin of the oldest open transaction."""
        begins = [each.transaction.time_ns for each in self._ids.values() if each.transaction]
        return min(begins, default=None)

    def wanted_producers(self) -> set[int]:
        """Return the producers of all transactional ids."""
        return set(self._producers)

    def observe_fetched(
        self, observed: ObservedExchange, producer_id: int, epoch: int
    ) -> Iterator[Event]:
        """Report each client's first Fetch with records of a producer epoch."""
        client = client_of(observed)
        readers = self._readers.use((producer_id, epoch))
        if client in readers or len(readers) >= MAX_READERS:
            return
        readers.add(client)
        text = f"{client} fetched records of producer id {producer_id}, epoch {epoch}"
        name = self._producers[producer_id]
        yield self.instant(observed, name, "records fetched", text)

    def _init(self, state: TransactionalId, observed: ObservedExchange) -> Iterator[Event]:
        """Process an InitProducerId, which ends the transaction of the previous producer."""
        request, response = observed.request, observed.response
        client = client_of(observed)
        former = state.sessions[-1] if state.sessions else None
        session = Session(
            observed.time_ns,
            client,
            observed.connection,
            response.producer_id,
            response.producer_epoch,
            request.transaction_timeout_ms,
            observed.evidence,
            response.producer_epoch,
        )
        self._producers.put(response.producer_id, state.name)
        transaction, timeout_ms = state.transaction, state.timeout_ms(observed.time_ns)
        state.initialize(session)
        if transaction is not None:
            keep_proof(transaction.evidence, observed.evidence)
            transaction.brokers.add(observed.broker)
            timeout = "" if timeout_ms is None else f", or its timeout of {timeout_ms} ms,"
            text = f"InitProducerId of {client}{timeout} aborted it: {transaction.text()}"
            yield self._event(
                state,
                transaction,
                "aborted",
                text,
                observed.end_ns,
                "InitProducerId",
                certain=timeout_ms is None,
            )
        text = (
            f"producer id {session.producer_id}, epoch {session.epoch}, for {client}; "
            f"transaction timeout {session.timeout_ms} ms"
        )
        cause = ""
        if former is not None and session.fences(former):
            text += f"; {former.client} in epoch {former.last_epoch} is fenced from now on"
            cause = "new producer"
        certain = former is not None or session.epoch == 0
        yield self.instant(observed, state.name, "initialized", text, cause=cause, certain=certain)

    def _transaction(self, state: TransactionalId, observed: ObservedExchange) -> Transaction:
        """Return the open transaction; begin one at the first request."""
        transaction = state.transaction
        if transaction is None:
            request = observed.request
            producer_id = request.get("producer_id", request.get("v3_and_below_producer_id", -1))
            epoch = request.get("producer_epoch", request.get("v3_and_below_producer_epoch", -1))
            # A Produce has the producer in its batches only.
            transaction = state.begin(observed.time_ns, producer_id, epoch)
        keep_proof(transaction.evidence, observed.evidence)
        transaction.brokers.add(observed.broker)
        return transaction

    def _add(self, state: TransactionalId, observed: ObservedExchange, topics: Any) -> None:
        transaction = self._transaction(state, observed)
        for topic in topics or ():
            transaction.partitions.setdefault(topic.name, set()).update(topic.partitions or ())

    def _add_by_brokers(self, observed: ObservedExchange) -> Iterator[Event]:
        """Record AddPartitionsToTxn v4+: brokers add or verify partitions for producers."""
        results = {
            result.transactional_id: first_error(result)
            for result in observed.response.get("results_by_transaction") or ()
        }
        for each in observed.request.transactions or ():
            if each.verify_only or results.get(each.transactional_id):
                continue
            state = self._ids.use(each.transactional_id)
            transaction = state.transaction or state.begin(
                observed.time_ns, each.producer_id, each.producer_epoch
            )
            keep_proof(transaction.evidence, observed.evidence)
            transaction.brokers.add(observed.broker)
            for topic in each.topics or ():
                partitions = transaction.partitions.setdefault(topic.name, set())
                partitions.update(topic.partitions or ())
        yield from ()

    def _end(self, state: TransactionalId, observed: ObservedExchange) -> Iterator[Event]:
        """Process an EndTxn."""
        request, response = observed.request, observed.response
        event = "committed" if request.committed else "aborted"
        transaction, state.transaction = state.transaction, None
        state.has_idle_producer = True
        if response.get("producer_epoch", -1) >= 0:
            state.go_on_in(request.producer_epoch, response.producer_id, response.producer_epoch)
            self._producers.put(response.producer_id, state.name)
        if transaction is None:
            transaction = Transaction(
                observed.time_ns, request.producer_id, request.producer_epoch, is_begun=False
            )
        transaction.producer_id, transaction.epoch = request.producer_id, request.producer_epoch
        keep_proof(transaction.evidence, observed.evidence)
        transaction.brokers.add(observed.broker)
        took = duration(observed.end_ns - transaction.time_ns)
        text = f"{event} by {client_of(observed)} after {took}: {transaction.text()}"
        yield self._event(state, transaction, event, text, observed.end_ns, "EndTxn")

    def _failed(
        self, state: TransactionalId, observed: ObservedExchange, error: str
    ) -> Iterator[Event]:
        """Report a refused request, with the producer or the timeout that caused it, if any."""
        request = observed.request
        api, client = observed.api, client_of(observed)
        if error not in OVERDUE:
            text = f"{api} of {client}: {error}"
            is_commit = observed.api_key == COMMIT_OFFSETS
            event = "commit refused" if is_commit else "refused"
            yield self.instant(
                observed, state.name, event, text, cause=error, repeats=f"{api} {client}"
            )
            return
        epoch = request.get("producer_epoch", request.get("v3_and_below_producer_epoch"))
        in_epoch = "" if epoch is None or epoch < 0 else f" in epoch {epoch}"
        text = f"{api} of {client}{in_epoch}: {error}"
        own, culprit = state.rivals(client, epoch) if error in OVERDUE else (None, None)
        cause, certain = error, error not in FENCED
        proof, since_ns = [observed.evidence], observed.time_ns
        if culprit is not None and culprit.time_ns < observed.end_ns and error in FENCED:
            cause, certain, since_ns = "new producer", own is not None, culprit.time_ns
            proof.append(culprit.evidence)
            text += f": {culprit.client} initialized epoch {culprit.epoch} of the same id"
        elif error in OVERDUE and own is not None:
            yield from self._expire(state, observed)
            expired = state.expired
            if expired is not None:
                cause, certain, since_ns = TIMEOUT, True, own.time_ns
                proof += [*expired.evidence, own.evidence]
                text += (
                    f": the transaction was open for "
                    f"{duration(observed.time_ns - expired.time_ns)}, "
                    f"its timeout is {own.timeout_ms} ms"
                )
        yield self.event(
            state.name,
            "fenced" if error in FENCED else "refused",
            text,
            time_ns=observed.time_ns,
            end_ns=observed.end_ns,
            proof=proof,
            brokers=[observed.broker],
            cause=cause,
            certain=certain,
            since_ns=since_ns,
        )

    def _expire(self, state: TransactionalId, observed: ObservedExchange) -> Iterator[Event]:
        """Report the open transaction as aborted by the broker, if its timeout has passed."""
        transaction, timeout_ms = state.transaction, state.timeout_ms(observed.time_ns)
        if transaction is None or timeout_ms is None:
            return
        keep_proof(transaction.evidence, observed.evidence)
        transaction.brokers.add(observed.broker)
        state.transaction, state.has_idle_producer, state.expired = None, True, transaction
        text = (
            f"aborted by the broker after its timeout of {timeout_ms} ms, before "
            f"{client_of(observed)} was refused: {transaction.text()}"
        )
        yield self._event(state, transaction, "aborted", text, observed.end_ns, TIMEOUT)

    def _event(
        self,
        state: TransactionalId,
        transaction: Transaction,
        event: str,
        text: str,
        end_ns: int,
        cause: str = "",
        *,
        certain: bool = True,
    ) -> Event:
        return self.event(
            state.name,
            event,
            f"{_producer(transaction)}{text}",
            time_ns=transaction.time_ns,
            end_ns=end_ns,
            proof=transaction.evidence,
            brokers=transaction.brokers,
            cause=cause,
            certain=certain and transaction.is_begun,
        )


def _producer(transaction: Transaction) -> str:
    """Return the producer as text; empty if unknown."""
    if transaction.producer_id < 0:
        return ""
    return f"producer id {transaction.producer_id}, epoch {transaction.epoch}: "


def first_error(body: Any) -> str:
    """Return the first error of a topic or partition in a body; empty without one."""
    code = next(_codes(body), 0)
    return error_name(code) if code else ""


def _codes(body: Any) -> Iterator[int]:
    if isinstance(body, dict):
        for name, value in body.items():
            if name in ("error_code", "partition_error_code"):
                if value:
                    yield value
            elif isinstance(value, list | dict):
                yield from _codes(value)
    elif isinstance(body, list):
        for each in body:
            if not isinstance(each, dict):
                return
            yield from _codes(each)
