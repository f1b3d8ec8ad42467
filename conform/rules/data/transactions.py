"""T, second part: epochs and transactions."""

from __future__ import annotations

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import BatchObservation, Observation
from conform.evidence.reporter import Reporter
from conform.evidence.transaction_history import (
    FIRST_IMPLICIT_END,
    AddedPartitions,
    ProducedPartitions,
    TransactionHistory,
    ending_session,
)
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from dissector.protocol.records import RecordBatch

_INVALID_TXN_STATE = 48
_MAX_BETWEEN = 100
"""Maximal number of batches searched backwards for one of the same producer."""


class _AssignedEpochs(BoundedDict[tuple[str, int], int]):
    """Newest epoch assigned on a connection, by transactional id and producer id."""


@rule(
    "T04",
    "Epochs of a producer go up",
    Severity.ERROR,
    source="TransactionMetadata.java (prepareIncrementProducerEpoch), KIP-360; EndTxn from v5 on "
    "returns the next epoch (KIP-890)",
    asks="Each InitProducerId that a coordinator answers on one connection with the same producer "
    "id gives it a greater epoch, greater too than the one in the request; so does each EndTxn "
    "from v5 on.",
    example="InitProducerId is answered with producer 7, epoch 3, then with producer 7, epoch 2",
    apis=("InitProducerId", "EndTxn"),
)
def epochs_go_up(turn: Observation, say: Reporter) -> None:
    """Compare the epoch of a response with that of the request and with the previous one."""
    if why := turn.unreadable_reason():
        say.count_unjudged(why)
        return
    assert turn.request_body is not None
    assert turn.response_body is not None
    number = turn.response_body.get("producer_id", -1)
    if turn.response_body.error_code or number < 0:
        return
    say.count_judged()
    epoch = turn.response_body.producer_epoch
    name, given = turn.request_body.transactional_id, turn.request_body.get("producer_epoch", -1)
    if number == turn.request_body.get("producer_id", -1) and epoch <= given:
        found = f"epoch {epoch} is given to producer {number}, which has {given}"
        say.report_violation(Side.BROKER, found, path="producer_epoch")
    elif name is not None and turn.exchange.api == "InitProducerId":
        epochs = turn.connection.state(_AssignedEpochs)
        before = epochs.get((name, number), -1)
        if epoch <= before:
            found = f"epoch {epoch} is given to producer {number}, which had {before}"
            say.report_violation(Side.BROKER, found, path="producer_epoch")
        epochs[name, number] = max(epoch, before)


@rule(
    "T05",
    "What is produced in a transaction was added to it",
    Severity.ERROR,
    source="TransactionManager.java (maybeAddPartition), KIP-98; from Produce v12 on brokers add "
    "partitions themselves (KIP-890)",
    asks="Before a transactional batch goes to a partition with Produce before v12, the partition "
    "is added to the transaction: else it gets no marker, and its readers wait forever. Judged of "
    "partitions that a producer never added in its epoch.",
    example="AddPartitionsToTxn of partition 0, Produce to partitions 0 and 1, EndTxn",
    apis=("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "Produce"),
)
def produced_partitions_added(turn: Observation, say: Reporter) -> None:
    """Record added and produced partitions; compare them at the end of the transaction."""
    produced, added = (
        turn.capture_state.state(ProducedPartitions),
        turn.capture_state.state(AddedPartitions),
    )
    if turn.exchange.api == "Produce":
        produced.record(turn)
        return
    added.record(turn)
    known = turn.connection.state(TransactionHistory).at(turn)
    if not _is_explicit_end(turn, say):
        return
    assert turn.response_body is not None
    who = ending_session(turn)
    if turn.response_body.error_code or not (written := produced.pop(who, None)):
        return
    if turn.capture_state.is_disordered:
        say.count_unjudged("a response was captured before its request")
        return
    if known is None:
        say.count_unjudged("the beginning of the transaction is not in the capture")
        return
    say.count_judged()
    before = turn.exchange.request_packet or 0
    sent = [place for place, packet in written.items() if packet < before]
    wanting = [place for place in sent if (who, place) not in added]
    if wanting:
        (topic, partition), *rest = wanting
        found = f"'{topic}', partition {partition}, and {len(rest)} more were not added"
        say.report_violation(Side.CLIENT, found)


def _is_explicit_end(turn: Observation, say: Reporter) -> bool:
    """Return whether it is an EndTxn below v5 with reliable bodies; else report why not."""
    if turn.exchange.api != "EndTxn" or (turn.version or 0) >= FIRST_IMPLICIT_END:
        return False
    why = turn.unreadable_reason() or turn.connection.gap_reason
    if why:
        say.count_unjudged(why)
    return not why


@rule(
    "T07",
    "A transaction is ended that was begun",
    Severity.ERROR,
    source="TransactionCoordinator.scala (endTransaction): INVALID_TXN_STATE from Empty; the same "
    "end again is answered like the first",
    asks="Before EndTxn in versions below 5 something was added to the transaction: partitions, or "
    "the offsets of a group. The same EndTxn once more is no error.",
    example="InitProducerId, EndTxn",
    apis=("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"),
)
def ended_transaction_begun(turn: Observation, say: Reporter) -> None:
    """Check EndTxn against the beginning and an earlier end of the transaction."""
    added = turn.capture_state.state(AddedPartitions)
    added.record(turn)
    known = turn.connection.state(TransactionHistory).at(turn)
    if not _is_explicit_end(turn, say):
        return
    assert turn.request_body is not None
    assert turn.response_body is not None
    if known is None:
        say.count_unjudged("the beginning of the transaction is not in the capture")
        return
    say.count_judged()
    is_added = known.is_begun or (ending_session(turn), None) in added
    if not turn.response_body.error_code and known.is_committed is None and not is_added:
        if not (turn.capture_state.incomplete_reason or turn.capture_state.is_disordered):
            say.report_violation(
                Side.BROKER, "a transaction ends that never began", path="error_code"
            )
        return
    if turn.response_body.error_code != _INVALID_TXN_STATE or known.is_begun:
        return
    if known.is_committed is None and (ending_session(turn), None) not in added:
        say.report_violation(Side.CLIENT, "a transaction is ended to which nothing was added")
    elif known.is_committed is bool(turn.request_body.committed):
        found = "the same end again is refused"
        say.report_violation(Side.BROKER, found, path="error_code", severity=Severity.WARNING)


@rule(
    "T08",
    "A transaction ends with a marker before the next begins",
    Severity.ERROR,
    source="TransactionMarkerChannelManager.scala: the markers of an epoch are written before a "
    "producer goes on in a later one; ProducerAppendInfo.java",
    asks="In a log without holes, between a transactional batch of a producer and one of a later "
    "epoch of it there is an ABORT or COMMIT marker of that producer.",
    example="a batch of producer 7, epoch 0, then one of epoch 1, and no marker between them",
    on="batch",
    apis=("Fetch",),
)
def markers_are_written(turn: BatchObservation, say: Reporter) -> None:
    """Report transactions in one response without a marker at their end."""
    batch = turn.batch
    if not isinstance(batch, RecordBatch) or not batch.transactional or batch.control:
        return
    before = _previous_batch(turn, batch)
    if before is None:
        return
    say.count_judged()
    if not before.control and before.producer_epoch < batch.producer_epoch:
        found = (
            f"producer {batch.producer_id} goes on in epoch {batch.producer_epoch}, without a "
            f"marker behind epoch {before.producer_epoch}"
        )
        say.report_violation(
            Side.BROKER, found, message=turn.message, path=turn.path, span=turn.span()
        )


def _previous_batch(turn: BatchObservation, batch: RecordBatch) -> RecordBatch | None:
    """Return the previous transactional batch of the producer, if no offset is missing between."""
    later = batch
    for index in range(turn.index - 1, max(turn.index - 1 - _MAX_BETWEEN, -1), -1):
        one = turn.field.batches[index]
        if not isinstance(one, RecordBatch) or not one.crc_ok:
            return None
        if later.base_offset != one.base_offset + one.last_offset_delta + 1:
            return None
        if one.producer_id == batch.producer_id and one.transactional:
            return one
        later = one
    return None
