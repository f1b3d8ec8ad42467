"""Rules T10 to T12: fenced and unknown producers, and offsets in transactions."""

from __future__ import annotations

from typing import Any, NamedTuple

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.evidence.transaction_history import is_rejected
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule

_MAX_KEPT = 10_000
_LAST_FOR_CLIENTS = 3
"""Last AddPartitionsToTxn version for clients; brokers send v4 and above."""
_FIRST_IMPLICIT = 5
"""First version with a new epoch from EndTxn, and TxnOffsetCommit without AddOffsetsToTxn."""


class _Owner(NamedTuple):
    """Newest producer id and epoch of a transactional id, and the time of the response."""

    producer_id: int
    epoch: int
    response_ns: int


class _Owners(BoundedDict[tuple[str, str], _Owner]):
    """Owners by coordinator and transactional id."""

    def __init__(self) -> None:
        super().__init__(_MAX_KEPT)


@rule(
    "T10",
    "Request of a fenced or unknown producer accepted",
    Severity.ERROR,
    source="TransactionCoordinator.scala (handleAddPartitionsToTransaction, endTransaction): "
    "INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, INVALID_PRODUCER_EPOCH",
    asks="After InitProducerId, the coordinator accepts requests of the transactional id only "
    "with the producer id and the epoch that it assigned last.",
    example="EndTxn with epoch 3 succeeds after epoch 4 was assigned",
    apis=("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"),
)
def check_serves_newest_producer(observation: Observation, reporter: Reporter) -> None:
    """Record owners of transactional ids; report successful requests of others."""
    request, response = observation.request_body, observation.response_body
    request_ns, response_ns = (
        observation.exchange.request_time_ns,
        observation.exchange.response_time_ns,
    )
    if request is None or response is None or request_ns is None or response_ns is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    owners, broker = observation.capture_state.state(_Owners), observation.connection.broker.address
    if observation.exchange.api == "InitProducerId":
        if request.transactional_id is not None and not response.error_code:
            new_owner = _Owner(response.producer_id, response.producer_epoch, response_ns)
            owners[broker, request.transactional_id] = new_owner
        return
    producer = _producer_of(observation, request)
    if producer is None or is_rejected(observation):
        return
    transactional_id, producer_id, epoch = producer
    owner = owners.get((broker, transactional_id))
    if (
        owner is None
        or owner.response_ns >= request_ns
        or observation.capture_state.incomplete_reason
    ):
        reporter.count_unjudged("the owner of the transactional id is not in the capture")
        return
    reporter.count_judged()
    if producer_id != owner.producer_id:
        found = f"producer {producer_id} is accepted, {owner.producer_id} was assigned"
        reporter.report_violation(Side.BROKER, found)
    elif epoch < owner.epoch or (
        epoch > owner.epoch and (observation.version or 0) < _FIRST_IMPLICIT
    ):
        found = f"epoch {epoch} is accepted, {owner.epoch} was assigned"
        reporter.report_violation(Side.BROKER, found)
    if observation.exchange.api == "EndTxn" and response.get("producer_id", -1) >= 0:
        new_owner = _Owner(response.producer_id, response.producer_epoch, response_ns)
        owners[broker, transactional_id] = new_owner


def _producer_of(observation: Observation, request: Any) -> tuple[str, int, int] | None:
    """Return transactional id, producer id and epoch of a request; None for brokers."""
    if observation.exchange.api != "AddPartitionsToTxn":
        return request.transactional_id, request.producer_id, request.producer_epoch
    if (observation.version or 0) > _LAST_FOR_CLIENTS:
        return None
    transactional_id, producer_id = (
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
    )
    return transactional_id, producer_id, request.v3_and_below_producer_epoch


class _AssignedProducers(BoundedDict[tuple[str, int, int], None]):
    """Producer ids and epochs assigned by each broker."""

    def __init__(self) -> None:
        super().__init__(_MAX_KEPT)


@rule(
    "T11",
    "Producer id assigned twice",
    Severity.ERROR,
    source="RPCProducerIdManager.scala, TransactionMetadata.java: an id with its epoch is "
    "assigned once",
    asks="Two InitProducerId responses do not contain the same producer id and epoch, unless the "
    "request already contains a producer id.",
    example="two idempotent producers both get id 7, epoch 0",
    apis=("InitProducerId",),
)
def check_unique_producer_ids(observation: Observation, reporter: Reporter) -> None:
    """Compare a new producer id with those assigned before."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    if response.error_code or response.producer_id < 0 or request.get("producer_id", -1) >= 0:
        return
    reporter.count_judged()
    assigned = observation.capture_state.state(_AssignedProducers)
    key = observation.connection.broker.address, response.producer_id, response.producer_epoch
    if key in assigned:
        found = (
            f"producer {response.producer_id} with epoch {response.producer_epoch} is assigned "
            "twice"
        )
        reporter.report_violation(Side.BROKER, found, path="producer_id")
    assigned[key] = None


class _AddedGroups(BoundedDict[tuple[str, int, int, str], None]):
    """
    Groups added to transactions, by transactional id, producer id, epoch and group.

    Attributes:
        begun: Transactional id, producer id and epoch of each InitProducerId response.
    """

    def __init__(self) -> None:
        super().__init__(_MAX_KEPT)
        self.begun: BoundedDict[tuple[str, int, int], None] = BoundedDict(_MAX_KEPT)


@rule(
    "T12",
    "Offsets committed in a transaction to which they were not added",
    Severity.ERROR,
    source="KIP-98, TransactionManager.java (sendOffsetsToTransaction); from TxnOffsetCommit v5 on "
    "the coordinator adds them itself (KIP-890)",
    asks="Before TxnOffsetCommit below v5, AddOffsetsToTxn adds the group's offsets to the "
    "transaction: otherwise the commit gets no marker, and stays pending.",
    example="InitProducerId, TxnOffsetCommit v3 of group 'g', EndTxn",
    apis=("InitProducerId", "AddOffsetsToTxn", "TxnOffsetCommit"),
)
def check_group_offsets_added(observation: Observation, reporter: Reporter) -> None:
    """Record groups added to transactions; compare offset commits with them."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    added = observation.capture_state.state(_AddedGroups)
    if observation.exchange.api == "InitProducerId":
        if request.transactional_id is not None and not response.error_code:
            added.begun[request.transactional_id, response.producer_id, response.producer_epoch] = (
                None
            )
        return
    producer = request.transactional_id, request.producer_id, request.producer_epoch
    if observation.exchange.api == "AddOffsetsToTxn":
        if not response.error_code:
            added[*producer, request.group_id] = None
        return
    if (observation.version or 0) >= _FIRST_IMPLICIT:
        return
    if (
        observation.capture_state.incomplete_reason
        or observation.capture_state.is_disordered
        or producer not in added.begun
    ):
        reporter.count_unjudged("the beginning of the transaction is not in the capture")
        return
    reporter.count_judged()
    is_accepted = any(not each.error_code for t in response.topics or () for each in t.partitions)
    if is_accepted and (*producer, request.group_id) not in added:
        found = f"offsets of group {request.group_id!r} were not added to the transaction"
        reporter.report_violation(Side.CLIENT, found, path="group_id")
