"""T, third part: fenced and unknown producers, and offsets in transactions."""

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
    "A producer that is fenced or unknown must not be served",
    Severity.ERROR,
    source="TransactionCoordinator.scala (handleAddPartitionsToTransaction, endTransaction): "
    "INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, INVALID_PRODUCER_EPOCH",
    asks="After InitProducerId, the coordinator serves requests of the transactional id only with "
    "the producer id and the epoch that it gave last.",
    example="EndTxn with epoch 3 succeeds, epoch 4 was given",
    apis=("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"),
)
def serves_newest_producer(turn: Observation, say: Reporter) -> None:
    """Record owners of transactional ids; report successful requests of others."""
    asked, told = turn.request_body, turn.response_body
    sent_ns, told_ns = turn.exchange.request_time_ns, turn.exchange.response_time_ns
    if asked is None or told is None or sent_ns is None or told_ns is None:
        say.count_unjudged(turn.unreadable_reason())
        return
    owners, broker = turn.capture_state.state(_Owners), turn.connection.broker.address
    if turn.exchange.api == "InitProducerId":
        if asked.transactional_id is not None and not told.error_code:
            given = _Owner(told.producer_id, told.producer_epoch, told_ns)
            owners[broker, asked.transactional_id] = given
        return
    who = _producer_of(turn, asked)
    if who is None or is_rejected(turn):
        return
    name, number, epoch = who
    owner = owners.get((broker, name))
    if owner is None or owner.response_ns >= sent_ns or turn.capture_state.incomplete_reason:
        say.count_unjudged("it is not in the capture who owns the transactional id")
        return
    say.count_judged()
    if number != owner.producer_id:
        found = f"producer {number} is served, {owner.producer_id} was given"
        say.report_violation(Side.BROKER, found)
    elif epoch < owner.epoch or (epoch > owner.epoch and (turn.version or 0) < _FIRST_IMPLICIT):
        found = f"epoch {epoch} is served, {owner.epoch} was given"
        say.report_violation(Side.BROKER, found)
    if turn.exchange.api == "EndTxn" and told.get("producer_id", -1) >= 0:
        given = _Owner(told.producer_id, told.producer_epoch, told_ns)
        owners[broker, name] = given


def _producer_of(turn: Observation, asked: Any) -> tuple[str, int, int] | None:
    """Return transactional id, producer id and epoch of a request; None for brokers."""
    if turn.exchange.api != "AddPartitionsToTxn":
        return asked.transactional_id, asked.producer_id, asked.producer_epoch
    if (turn.version or 0) > _LAST_FOR_CLIENTS:
        return None
    name, number = asked.v3_and_below_transactional_id, asked.v3_and_below_producer_id
    return name, number, asked.v3_and_below_producer_epoch


class _AssignedProducers(BoundedDict[tuple[str, int, int], None]):
    """Producer ids and epochs assigned by each broker."""

    def __init__(self) -> None:
        super().__init__(_MAX_KEPT)


@rule(
    "T11",
    "A producer id must be given to one producer",
    Severity.ERROR,
    source="RPCProducerIdManager.scala, TransactionMetadata.java: an id with its epoch is given "
    "once",
    asks="Two answers to InitProducerId do not give the same producer id and epoch, unless the "
    "request asks for an epoch of an id that it has.",
    example="two idempotent producers are both given id 7, epoch 0",
    apis=("InitProducerId",),
)
def unique_producer_ids(turn: Observation, say: Reporter) -> None:
    """Compare a new producer id with those assigned before."""
    asked, told = turn.request_body, turn.response_body
    if asked is None or told is None:
        say.count_unjudged(turn.unreadable_reason())
        return
    if told.error_code or told.producer_id < 0 or asked.get("producer_id", -1) >= 0:
        return
    say.count_judged()
    given = turn.capture_state.state(_AssignedProducers)
    key = turn.connection.broker.address, told.producer_id, told.producer_epoch
    if key in given:
        found = f"producer {told.producer_id} with epoch {told.producer_epoch} is given twice"
        say.report_violation(Side.BROKER, found, path="producer_id")
    given[key] = None


class _AddedGroups(BoundedDict[tuple[str, int, int, str], None]):
    """Groups added to transactions, by transactional id, producer id, epoch and group."""

    def __init__(self) -> None:
        super().__init__(_MAX_KEPT)
        self.begun: BoundedDict[tuple[str, int, int], None] = BoundedDict(_MAX_KEPT)


@rule(
    "T12",
    "Offsets must be added to a transaction before they are committed in it",
    Severity.ERROR,
    source="KIP-98, TransactionManager.java (sendOffsetsToTransaction); from TxnOffsetCommit v5 on "
    "the coordinator adds them itself (KIP-890)",
    asks="Before TxnOffsetCommit in versions below 5, AddOffsetsToTxn added the group's offsets: "
    "else the commit gets no marker, and stays pending.",
    example="InitProducerId, TxnOffsetCommit v3 of group 'g', EndTxn",
    apis=("InitProducerId", "AddOffsetsToTxn", "TxnOffsetCommit"),
)
def group_offsets_added(turn: Observation, say: Reporter) -> None:
    """Record groups added to transactions; compare offset commits with them."""
    asked, told = turn.request_body, turn.response_body
    if asked is None or told is None:
        say.count_unjudged(turn.unreadable_reason())
        return
    added = turn.capture_state.state(_AddedGroups)
    if turn.exchange.api == "InitProducerId":
        if asked.transactional_id is not None and not told.error_code:
            added.begun[asked.transactional_id, told.producer_id, told.producer_epoch] = None
        return
    who = asked.transactional_id, asked.producer_id, asked.producer_epoch
    if turn.exchange.api == "AddOffsetsToTxn":
        if not told.error_code:
            added[*who, asked.group_id] = None
        return
    if (turn.version or 0) >= _FIRST_IMPLICIT:
        return
    if (
        turn.capture_state.incomplete_reason
        or turn.capture_state.is_disordered
        or who not in added.begun
    ):
        say.count_unjudged("the beginning of the transaction is not in the capture")
        return
    say.count_judged()
    is_taken = any(not each.error_code for t in told.topics or () for each in t.partitions)
    if is_taken and (*who, asked.group_id) not in added:
        found = f"offsets of group {asked.group_id!r} were not added to the transaction"
        say.report_violation(Side.CLIENT, found, path="group_id")
