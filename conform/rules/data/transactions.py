"""Rules T04, T05, T07 and T08: producer epochs and transactions."""

from __future__ import annotations

from conform.evidence.batch_observation import BatchObservation
from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.evidence.transaction_history import (
    FIRST_IMPLICIT_END,
    FIRST_IMPLICIT_PRODUCE,
    AddedPartitions,
    ProducedPartitions,
    TransactionHistory,
    ending_session,
)
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import Screen, none_judged, none_of_batch
from conform.registry.screened_columns import Bools, ScreenedRows
from dissector.protocol.headers import PRODUCE
from dissector.protocol.records import RecordBatch

_INVALID_TXN_STATE = 48
_MAX_BETWEEN = 100
"""Maximal number of batches searched backwards for one of the same producer."""


class _AssignedEpochs(BoundedDict[tuple[str, int], int]):
    """Newest epoch assigned on a connection, by transactional id and producer id."""


@rule(
    "T04",
    "Producer epoch does not increase",
    Severity.ERROR,
    source="TransactionMetadata.java (prepareIncrementProducerEpoch), KIP-360; EndTxn from v5 on "
    "returns the next epoch (KIP-890)",
    asks="On one connection, each InitProducerId response with the same producer id contains a "
    "greater epoch than the previous one, and than the request; each EndTxn response from v5 on "
    "contains a greater epoch than its request.",
    example="InitProducerId is answered with producer 7, epoch 3, then with producer 7, epoch 2",
    apis=("InitProducerId", "EndTxn"),
)
def check_epochs(observation: Observation, reporter: Reporter) -> None:
    """Compare the epoch of a response with the request and with the previous epoch."""
    if reason := observation.unreadable_reason():
        reporter.count_unjudged(reason)
        return
    request, response = observation.request_body, observation.response_body
    assert request is not None
    assert response is not None
    producer_id = response.get("producer_id", -1)
    if response.error_code or producer_id < 0:
        return
    reporter.count_judged()
    epoch = response.producer_epoch
    transactional_id, previous = request.transactional_id, request.get("producer_epoch", -1)
    if producer_id == request.get("producer_id", -1) and epoch <= previous:
        found = f"epoch {epoch} is assigned to producer {producer_id}, which has {previous}"
        reporter.report_violation(Side.BROKER, found, path="producer_epoch")
    elif transactional_id is not None and observation.exchange.api == "InitProducerId":
        epochs = observation.connection.state(_AssignedEpochs)
        newest = epochs.get((transactional_id, producer_id), -1)
        if epoch <= newest:
            found = f"epoch {epoch} is assigned to producer {producer_id}, which had {newest}"
            reporter.report_violation(Side.BROKER, found, path="producer_epoch")
        epochs[transactional_id, producer_id] = max(epoch, newest)


def _adds_no_partition(rows: ScreenedRows) -> Bools:
    """Let Produce exchanges pass without batches of transactions that need added partitions."""
    is_plain = rows.is_of(PRODUCE) & rows.is_plain & ~rows.is_transactional
    return is_plain | rows.is_of(PRODUCE, FIRST_IMPLICIT_PRODUCE)


@rule(
    "T05",
    "Produce to a partition that was not added to the transaction",
    Severity.ERROR,
    source="TransactionManager.java (maybeAddPartition), KIP-98; from Produce v12 on brokers add "
    "partitions themselves (KIP-890)",
    asks="Before a transactional batch is sent to a partition with Produce below v12, the "
    "partition is added to the transaction: otherwise it gets no marker, and its readers wait "
    "forever. Only partitions that a producer never added in its epoch are judged.",
    example="AddPartitionsToTxn of partition 0, Produce to partitions 0 and 1, EndTxn",
    apis=("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "Produce"),
    screen=Screen(none_judged, rows=_adds_no_partition),
)
def check_produced_partitions_added(observation: Observation, reporter: Reporter) -> None:
    """Record added and produced partitions; compare them at the end of the transaction."""
    produced, added = (
        observation.capture_state.state(ProducedPartitions),
        observation.capture_state.state(AddedPartitions),
    )
    if observation.exchange.api == "Produce":
        produced.record(observation)
        return
    added.record(observation)
    transaction = observation.connection.state(TransactionHistory).transaction_of(observation)
    if not _is_explicit_end(observation, reporter):
        return
    assert observation.response_body is not None
    session = ending_session(observation)
    if observation.response_body.error_code or not (partitions := produced.pop(session, None)):
        return
    if observation.capture_state.is_disordered:
        reporter.count_unjudged("a response was captured before its request")
        return
    if transaction is None:
        reporter.count_unjudged("the beginning of the transaction is not in the capture")
        return
    reporter.count_judged()
    end_packet = observation.exchange.request_packet or 0
    produced_before = [
        partition_key for partition_key, packet in partitions.items() if packet < end_packet
    ]
    missing = [
        partition_key for partition_key in produced_before if (session, partition_key) not in added
    ]
    if missing:
        (topic, partition), *rest = missing
        found = f"'{topic}', partition {partition}, and {len(rest)} more were not added"
        reporter.report_violation(Side.CLIENT, found)


def _is_explicit_end(observation: Observation, reporter: Reporter) -> bool:
    """Return whether it is an EndTxn below v5 with readable bodies; report unreadable ones."""
    if observation.exchange.api != "EndTxn" or (observation.version or 0) >= FIRST_IMPLICIT_END:
        return False
    reason = observation.unreadable_reason() or observation.connection.gap_reason
    if reason:
        reporter.count_unjudged(reason)
    return not reason


@rule(
    "T07",
    "EndTxn for a transaction that never began",
    Severity.ERROR,
    source="TransactionCoordinator.scala (endTransaction): INVALID_TXN_STATE from Empty; a "
    "repeated EndTxn is answered like the first",
    asks="Before EndTxn below v5, partitions or the offsets of a group were added to the "
    "transaction. A repetition of the same EndTxn is no error.",
    example="InitProducerId, EndTxn",
    apis=("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"),
)
def check_ended_transaction_begun(observation: Observation, reporter: Reporter) -> None:
    """Check EndTxn against the beginning and an earlier end of the transaction."""
    added = observation.capture_state.state(AddedPartitions)
    added.record(observation)
    transaction = observation.connection.state(TransactionHistory).transaction_of(observation)
    if not _is_explicit_end(observation, reporter):
        return
    request, response = observation.request_body, observation.response_body
    assert request is not None
    assert response is not None
    if transaction is None:
        reporter.count_unjudged("the beginning of the transaction is not in the capture")
        return
    reporter.count_judged()
    is_added = transaction.is_begun or (ending_session(observation), None) in added
    if not response.error_code and transaction.is_committed is None and not is_added:
        if not (
            observation.capture_state.incomplete_reason or observation.capture_state.is_disordered
        ):
            reporter.report_violation(
                Side.BROKER, "EndTxn succeeds for a transaction that never began", path="error_code"
            )
        return
    if response.error_code != _INVALID_TXN_STATE or transaction.is_begun:
        return
    if transaction.is_committed is None and (ending_session(observation), None) not in added:
        reporter.report_violation(
            Side.CLIENT, "EndTxn for a transaction to which nothing was added"
        )
    elif transaction.is_committed is bool(request.committed):
        found = "a repeated EndTxn is rejected"
        reporter.report_violation(Side.BROKER, found, path="error_code", severity=Severity.WARNING)


@rule(
    "T08",
    "No marker between two transactions of a producer",
    Severity.ERROR,
    source="TransactionMarkerChannelManager.scala: the markers of an epoch are written before a "
    "producer continues in a later one; ProducerAppendInfo.java",
    asks="In a log without gaps, an ABORT or COMMIT marker of the producer lies between its "
    "transactional batch and one of its later epoch.",
    example="a batch of producer 7, epoch 0, then one of epoch 1, and no marker between them",
    on="batch",
    plain_batch=none_of_batch,
    apis=("Fetch",),
)
def check_markers_written(observation: BatchObservation, reporter: Reporter) -> None:
    """Report transactions in one response without a marker at their end."""
    batch = observation.batch
    if not isinstance(batch, RecordBatch) or not batch.transactional or batch.control:
        return
    previous = _previous_batch(observation, batch)
    if previous is None:
        return
    reporter.count_judged()
    if not previous.control and previous.producer_epoch < batch.producer_epoch:
        found = (
            f"producer {batch.producer_id} continues in epoch {batch.producer_epoch}, without a "
            f"marker after epoch {previous.producer_epoch}"
        )
        reporter.report_violation(
            Side.BROKER,
            found,
            message=observation.message,
            path=observation.path,
            span=observation.span(),
        )


def _previous_batch(observation: BatchObservation, batch: RecordBatch) -> RecordBatch | None:
    """Return the previous transactional batch of the producer, if no offset is missing between."""
    later = batch
    for index in range(observation.index - 1, max(observation.index - 1 - _MAX_BETWEEN, -1), -1):
        candidate = observation.field.batches[index]
        if not isinstance(candidate, RecordBatch) or not candidate.crc_ok:
            return None
        if later.base_offset != candidate.base_offset + candidate.last_offset_delta + 1:
            return None
        if candidate.producer_id == batch.producer_id and candidate.transactional:
            return candidate
        later = candidate
    return None
