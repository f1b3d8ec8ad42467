"""Rules T01 to T03 and T06: idempotent producers, and acks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from weakref import ref

import numpy as np

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.evidence.producer_appends import (
    RETAINED_BATCHES,
    SEQUENCE_COUNT,
    Append,
    AppendHistory,
    PartitionKey,
    ProducerState,
    appends,
)
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import (
    FieldPlace,
    Limits,
    Screen,
    none_judged,
    request_judged,
)
from conform.registry.screened_columns import Bools, ScreenedPartitions, ScreenedRows
from dissector.protocol.headers import PRODUCE
from dissector.protocol.records import RecordBatch

_OUT_OF_ORDER = 45
_ACKS = (-1, 0, 1)
_ACKS_ALL = -1


class _Predecessors:
    """The appends of an exchange, each with its producer's previous state: shared by all rules."""

    def __init__(self) -> None:
        self._observation: Callable[[], Observation | None] = lambda: None
        self._appends: list[tuple[Append, ProducerState | None]] = []
        self._history = AppendHistory()

    def appends_of(self, observation: Observation) -> list[tuple[Append, ProducerState | None]]:
        if self._observation() is not observation:
            for append, _ in self._appends:
                if not append.error and append.offset >= 0:
                    self._history.record(append)
            self._observation = ref(observation)
            self._appends = [
                (append, self._history.producer_of(append)) for append in appends(observation)
            ]
        return self._appends


def _appends(observation: Observation) -> list[Append]:
    return [
        append
        for append, _ in observation.capture_state.state(_Predecessors).appends_of(observation)
    ]


class _Accepted(BoundedDict[PartitionKey, tuple[int, int, int]]):
    """By partition, producer, epoch and last sequence of the previous batch, if it was accepted."""


def _is_not_idempotent(rows: ScreenedRows) -> Bools:
    """Let Produce exchanges pass whose plain batches have no producer id."""
    return rows.is_of(PRODUCE) & rows.is_plain & ~rows.is_idempotent


def _is_complete_not_idempotent(rows: ScreenedRows) -> Bools:
    return _is_not_idempotent(rows) & rows.is_complete


@rule(
    "T01",
    "Gap in the sequences of a producer",
    Severity.ERROR,
    source="ProducerAppendInfo.java (checkSequence): OUT_OF_ORDER_SEQUENCE_NUMBER; "
    "DefaultRecordBatch.java (incrementSequence)",
    asks="The base sequence of a batch follows the last sequence of the same producer, epoch and "
    "partition; it is 0 after 2147483647, and in a new epoch. Brokers reject any other.",
    example="sequences 0 to 9, then 12 to 14, at consecutive offsets",
    apis=("Produce",),
    screen=Screen(none_judged, rows=_is_not_idempotent),
)
def check_sequences(observation: Observation, reporter: Reporter) -> None:
    """Compare each batch with the previous one in the log; a rejected one, on the connection."""
    for append, previous in observation.capture_state.state(_Predecessors).appends_of(observation):
        if append.error:
            _judge_rejected(observation, reporter, append)
        elif previous is None:
            reporter.count_unjudged("the producer's previous batch is not in the capture")
        else:
            _judge_accepted(observation, reporter, append, previous)
    _record_accepted(observation)


def _judge_accepted(
    observation: Observation, reporter: Reporter, append: Append, previous: ProducerState
) -> None:
    batch = append.batch
    if batch.producer_epoch < previous.epoch:
        return
    reporter.count_judged()
    expected = (
        (previous.last_sequence + 1) % SEQUENCE_COUNT
        if batch.producer_epoch == previous.epoch
        else 0
    )
    if batch.base_sequence != expected and not _is_repeated(append, previous):
        found = f"base sequence {batch.base_sequence} is accepted, expected {expected}"
        reporter.report_violation(Side.BROKER, found, message=observation.request, path=append.path)


def _judge_rejected(observation: Observation, reporter: Reporter, append: Append) -> None:
    """Judge a batch rejected as out of order, if the previous batch was accepted."""
    batch = append.batch
    previous = observation.connection.state(_Accepted).get(append.partition_key)
    if append.error != _OUT_OF_ORDER or previous is None or observation.connection.gap_reason:
        return
    if previous[:2] != (batch.producer_id, batch.producer_epoch):
        return
    reporter.count_judged()
    expected = (previous[2] + 1) % SEQUENCE_COUNT
    if batch.base_sequence != expected:
        found = f"base sequence {batch.base_sequence} is sent, expected {expected}"
        reporter.report_violation(Side.CLIENT, found, message=observation.request, path=append.path)


def _record_accepted(observation: Observation) -> None:
    accepted = observation.connection.state(_Accepted)
    for append in _appends(observation):
        batch = append.batch
        if append.error:
            accepted.pop(append.partition_key, None)
        else:
            newest = batch.producer_id, batch.producer_epoch, append.last_sequence
            accepted[append.partition_key] = newest


def _is_repeated(append: Append, previous: ProducerState) -> bool:
    """Return whether a batch has the sequence of one of the last accepted batches."""
    if append.batch.producer_epoch != previous.epoch:
        return False
    return any(sequence == append.batch.base_sequence for sequence, _ in previous.recent)


@rule(
    "T02",
    "Resent batch appended again",
    Severity.ERROR,
    source="ProducerStateEntry.java (findDuplicateBatch): the broker recognises the last five "
    "batches, and answers with their first offset, or DUPLICATE_SEQUENCE_NUMBER",
    asks="A batch with the producer, epoch and base sequence of one of the last five appended "
    "batches is answered with the offset of that batch.",
    example="one batch twice, answered with offset 10 and with offset 12",
    apis=("Produce",),
    screen=Screen(none_judged, rows=_is_not_idempotent),
)
def check_retries_not_appended(observation: Observation, reporter: Reporter) -> None:
    """Report sequences that were appended at two offsets."""
    appended = observation.capture_state.state(_Appended)
    for append, previous in observation.capture_state.state(_Predecessors).appends_of(observation):
        if append.error or append.offset < 0:
            continue
        batch = append.batch
        key = append.partition_key, batch.producer_id, batch.producer_epoch
        recent = appended.get(key) or deque(maxlen=RETAINED_BATCHES)
        appended[key] = recent
        if previous is not None or recent:
            reporter.count_judged()
        is_duplicate = any(s == batch.base_sequence and o != append.offset for s, o in recent)
        if is_duplicate or (previous is not None and _is_repeated(append, previous)):
            found = f"base sequence {batch.base_sequence} is appended again"
            reporter.report_violation(
                Side.BROKER, found, message=observation.request, path=append.path
            )
        if (batch.base_sequence, append.offset) not in recent:
            recent.append((batch.base_sequence, append.offset))


class _Appended(BoundedDict[tuple[PartitionKey, int, int], deque[tuple[int, int]]]):
    """By partition, producer and epoch, the last appended sequences with their offsets."""


class _InFlight(BoundedDict[PartitionKey, deque[tuple[int, int]]]):
    """By partition, the response packets of the last batches, with their producers."""


@rule(
    "T03",
    "Idempotent producer with more than five batches of a partition in flight",
    Severity.WARNING,
    source="ProducerConfig.java (max.in.flight.requests.per.connection); ProducerStateEntry.java: "
    "a broker recognises the last five batches",
    asks="A sixth batch for a partition is sent only after the response to the first.",
    example="six requests for one partition, then their responses",
    apis=("Produce",),
    screen=Screen(none_judged, rows=_is_complete_not_idempotent),
)
def check_five_in_flight(observation: Observation, reporter: Reporter) -> None:
    """Count the batches in flight when a batch was sent."""
    if observation.connection.gap_reason:
        reporter.count_unjudged(observation.connection.gap_reason)
        return
    row = observation.row
    request_packet, response_packet = row.request_packet, row.response_packet
    if request_packet is None or response_packet is None:
        return
    in_flight = observation.connection.state(_InFlight)
    for append in _appends(observation):
        recent = in_flight.get(append.partition_key)
        if recent is None:
            recent = in_flight[append.partition_key] = deque(maxlen=RETAINED_BATCHES)
        reporter.count_judged()
        producer = append.batch.producer_id
        if (
            sum(packet > request_packet and owner == producer for packet, owner in recent)
            == RETAINED_BATCHES
        ):
            found = f"{RETAINED_BATCHES} earlier batches are still without a response"
            reporter.report_violation(
                Side.CLIENT, found, message=observation.request, path=append.path
            )
        recent.append((response_packet, producer))


def _valid_acks(place: FieldPlace) -> Limits | None:
    return (min(_ACKS), max(_ACKS)) if place.declared.name == "acks" else None


def _asks_for_all(partitions: ScreenedPartitions) -> Bools:
    """Let Produce requests pass with acks of all, or with plain batches without producer ids."""
    request, rows = partitions.request, partitions.rows
    acks = np.append(partitions.batches.acks, _ACKS_ALL)[partitions.fields_of(request)]
    return request.all_of(len(partitions), acks == _ACKS_ALL) | _is_not_idempotent(rows)


@rule(
    "T06",
    "Invalid acks, or acks other than all from an idempotent producer",
    Severity.ERROR,
    source="ReplicaManager.scala (isValidRequiredAcks): INVALID_REQUIRED_ACKS; "
    "ProducerConfig.java requires acks=all of idempotent producers, brokers do not: a warning",
    asks="The acks of a Produce request are -1, 0 or 1; with a producer id in its batches, -1.",
    example="acks 2",
    apis=("Produce",),
    screen=Screen(request_judged, limits=_valid_acks, partitions=_asks_for_all),
)
def check_valid_acks(observation: Observation, reporter: Reporter) -> None:
    """Check the acks of a request, also against its batches."""
    if reason := observation.unreadable_reason(response=False):
        reporter.count_unjudged(reason)
        return
    assert observation.request_body is not None
    reporter.count_judged()
    acks = observation.request_body.acks
    if acks not in _ACKS:
        reporter.report_violation(Side.CLIENT, f"acks is {acks}", path="acks")
        return
    batches = [batch for _, field in observation.record_fields for batch in field.batches]
    is_idempotent = any(isinstance(b, RecordBatch) and b.producer_id >= 0 for b in batches)
    if is_idempotent and acks != _ACKS_ALL:
        found = f"acks is {acks} for an idempotent producer"
        reporter.report_violation(Side.CLIENT, found, path="acks", severity=Severity.WARNING)
