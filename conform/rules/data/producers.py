"""T, first part: idempotent producers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from weakref import ref

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
from dissector.protocol.records import RecordBatch

_OUT_OF_ORDER = 45
_ACKS = (-1, 0, 1)
_ACKS_ALL = -1


class _Predecessors:
    """The batches of an exchange, each with what it follows directly: found once for all rules."""

    def __init__(self) -> None:
        self._turn: Callable[[], Observation | None] = lambda: None
        self._found: list[tuple[Append, ProducerState | None]] = []
        self._runs = AppendHistory()

    def of(self, turn: Observation) -> list[tuple[Append, ProducerState | None]]:
        if self._turn() is not turn:
            for append, _ in self._found:
                if not append.error and append.offset >= 0:
                    self._runs.record(append)
            self._turn = ref(turn)
            self._found = [(append, self._runs.producer_of(append)) for append in appends(turn)]
        return self._found


def _appends(turn: Observation) -> list[Append]:
    return [append for append, _ in turn.capture_state.state(_Predecessors).of(turn)]


class _Accepted(BoundedDict[PartitionKey, tuple[int, int, int]]):
    """Producer, epoch and last sequence of the batch before, where it was taken."""


@rule(
    "T01",
    "Sequences of a producer go up without a gap",
    Severity.ERROR,
    source="ProducerAppendInfo.java (checkSequence): OUT_OF_ORDER_SEQUENCE_NUMBER; "
    "DefaultRecordBatch.java (incrementSequence)",
    asks="The base sequence of a batch is the one behind the last sequence of the same producer, "
    "epoch and partition, after 2147483647 it is 0, and in a new epoch it is 0. Brokers refuse "
    "any other.",
    example="sequences 0 to 9, then 12 to 14, at offsets that follow each other",
    apis=("Produce",),
)
def sequences_go_up(turn: Observation, say: Reporter) -> None:
    """Hold each batch against the one that it follows in the log, or on the connection."""
    for append, before in turn.capture_state.state(_Predecessors).of(turn):
        if append.error:
            _judge_refused(turn, say, append)
        elif before is None:
            say.count_unjudged("what the producer appended before is not in the capture")
        else:
            _judge_accepted(say, append, before)
    _record_accepted(turn)


def _judge_accepted(say: Reporter, append: Append, before: ProducerState) -> None:
    batch = append.batch
    if batch.producer_epoch < before.epoch:
        return
    say.count_judged()
    due = (before.last_sequence + 1) % SEQUENCE_COUNT if batch.producer_epoch == before.epoch else 0
    if batch.base_sequence != due and not _is_repeated(append, before):
        found = f"base sequence {batch.base_sequence} is taken, where {due} is due"
        say.report_violation(Side.BROKER, found, message=append.message, path=append.path)


def _judge_refused(turn: Observation, say: Reporter, append: Append) -> None:
    """Judge a batch that the broker refused as out of order, if the one before it was taken."""
    batch = append.batch
    before = turn.connection.state(_Accepted).get(append.partition_key)
    if append.error != _OUT_OF_ORDER or before is None or turn.connection.gap_reason:
        return
    if before[:2] != (batch.producer_id, batch.producer_epoch):
        return
    say.count_judged()
    due = (before[2] + 1) % SEQUENCE_COUNT
    if batch.base_sequence != due:
        found = f"base sequence {batch.base_sequence} is sent, where {due} is due"
        say.report_violation(Side.CLIENT, found, message=append.message, path=append.path)


def _record_accepted(turn: Observation) -> None:
    accepted = turn.connection.state(_Accepted)
    for append in _appends(turn):
        batch = append.batch
        if append.error:
            accepted.pop(append.partition_key, None)
        else:
            last = batch.producer_id, batch.producer_epoch, append.last_sequence
            accepted[append.partition_key] = last


def _is_repeated(append: Append, before: ProducerState) -> bool:
    """Tell whether a batch has the sequence of one that is remembered."""
    if append.batch.producer_epoch != before.epoch:
        return False
    return any(sequence == append.batch.base_sequence for sequence, _ in before.recent)


@rule(
    "T02",
    "A batch that is sent again is not appended again",
    Severity.ERROR,
    source="ProducerStateEntry.java (findDuplicateBatch): the last five batches are known again, "
    "and answered with their first offset, or DUPLICATE_SEQUENCE_NUMBER",
    asks="A batch with the producer, epoch and base sequence of one of the last five that were "
    "appended is answered with the offset of that one.",
    example="one batch twice, answered with offset 10 and with offset 12",
    apis=("Produce",),
)
def retries_not_appended(turn: Observation, say: Reporter) -> None:
    """Look for sequences that were appended at two offsets."""
    taken = turn.capture_state.state(_Appended)
    for append, before in turn.capture_state.state(_Predecessors).of(turn):
        if append.error or append.offset < 0:
            continue
        batch = append.batch
        key = append.partition_key, batch.producer_id, batch.producer_epoch
        recent = taken.get(key) or deque(maxlen=RETAINED_BATCHES)
        taken[key] = recent
        if before is not None or recent:
            say.count_judged()
        is_again = any(s == batch.base_sequence and o != append.offset for s, o in recent)
        if is_again or (before is not None and _is_repeated(append, before)):
            found = f"base sequence {batch.base_sequence} is appended again"
            say.report_violation(Side.BROKER, found, message=append.message, path=append.path)
        if (batch.base_sequence, append.offset) not in recent:
            recent.append((batch.base_sequence, append.offset))


class _Appended(BoundedDict[tuple[PartitionKey, int, int], deque[tuple[int, int]]]):
    """By place, producer and epoch the last sequences that were appended, with their offsets."""


class _InFlight(BoundedDict[PartitionKey, deque[tuple[int, int]]]):
    """Of each partition the packets in which the last batches were answered, by their producer."""


@rule(
    "T03",
    "An idempotent producer has at most five batches of a partition under way",
    Severity.WARNING,
    source="ProducerConfig.java (max.in.flight.requests.per.connection); ProducerStateEntry.java: "
    "a broker knows five batches again",
    asks="A sixth batch for a partition is sent only after the first was answered.",
    example="six requests for one partition, then their answers",
    apis=("Produce",),
)
def five_in_flight(turn: Observation, say: Reporter) -> None:
    """Count the batches that were not answered yet when a batch was sent."""
    if turn.connection.gap_reason:
        say.count_unjudged(turn.connection.gap_reason)
        return
    asked, done = turn.exchange.request_packet, turn.exchange.response_packet
    if asked is None or done is None:
        return
    flights = turn.connection.state(_InFlight)
    for append in _appends(turn):
        before = flights.get(append.partition_key)
        if before is None:
            before = flights[append.partition_key] = deque(maxlen=RETAINED_BATCHES)
        say.count_judged()
        producer = append.batch.producer_id
        if sum(end > asked and owner == producer for end, owner in before) == RETAINED_BATCHES:
            found = f"{RETAINED_BATCHES} batches were not answered yet"
            say.report_violation(Side.CLIENT, found, message=append.message, path=append.path)
        before.append((done, producer))


@rule(
    "T06",
    "Acks are -1, 0 or 1, and all of them for an idempotent producer",
    Severity.ERROR,
    source="ReplicaManager.scala (isValidRequiredAcks): INVALID_REQUIRED_ACKS; ProducerConfig.java "
    "holds idempotent producers to acks=all, brokers do not: a warning",
    asks="The acks of a Produce request are -1, 0 or 1; with a producer id in its batches, -1.",
    example="acks 2",
    apis=("Produce",),
)
def valid_acks(turn: Observation, say: Reporter) -> None:
    """Look at the acks of a request."""
    if why := turn.unreadable_reason(response=False):
        say.count_unjudged(why)
        return
    assert turn.request_body is not None
    say.count_judged()
    acks = turn.request_body.acks
    if acks not in _ACKS:
        say.report_violation(Side.CLIENT, f"acks is {acks}", path="acks")
        return
    batches = [batch for _, carried in turn.record_fields for batch in carried.batches]
    idempotent = any(isinstance(b, RecordBatch) and b.producer_id >= 0 for b in batches)
    if idempotent and acks != _ACKS_ALL:
        found = f"acks is {acks} for an idempotent producer"
        say.report_violation(Side.CLIENT, found, path="acks", severity=Severity.WARNING)
