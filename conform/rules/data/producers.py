"""T, first part: idempotent producers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from weakref import ref

from conform.evidence.bounded_memory import Newest
from conform.evidence.observation import Turn
from conform.evidence.producer_appends import (
    RETAINED,
    SEQUENCES,
    Append,
    Place,
    Producer,
    Runs,
    appends,
)
from conform.evidence.reporter import Say
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from dissector.protocol.records import RecordBatch

_OUT_OF_ORDER = 45
_ACKS = (-1, 0, 1)
_ACKS_ALL = -1


class _Predecessors:
    """The batches of an exchange, each with what it follows directly: found once for all rules."""

    def __init__(self) -> None:
        self._turn: Callable[[], Turn | None] = lambda: None
        self._found: list[tuple[Append, Producer | None]] = []
        self._runs = Runs()

    def of(self, turn: Turn) -> list[tuple[Append, Producer | None]]:
        if self._turn() is not turn:
            for append, _ in self._found:
                if not append.error and append.offset >= 0:
                    self._runs.take(append)
            self._turn = ref(turn)
            self._found = [(append, self._runs.known(append)) for append in appends(turn)]
        return self._found


def _appends(turn: Turn) -> list[Append]:
    return [append for append, _ in turn.world.state(_Predecessors).of(turn)]


class _Accepted(Newest[Place, tuple[int, int, int]]):
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
def sequences_go_up(turn: Turn, say: Say) -> None:
    """Hold each batch against the one that it follows in the log, or on the connection."""
    for append, before in turn.world.state(_Predecessors).of(turn):
        if append.error:
            _judge_refused(turn, say, append)
        elif before is None:
            say.unjudged("what the producer appended before is not in the capture")
        else:
            _judge_accepted(say, append, before)
    _record_accepted(turn)


def _judge_accepted(say: Say, append: Append, before: Producer) -> None:
    batch = append.batch
    if batch.producer_epoch < before.epoch:
        return
    say.judged()
    due = (before.last + 1) % SEQUENCES if batch.producer_epoch == before.epoch else 0
    if batch.base_sequence != due and not _is_repeated(append, before):
        found = f"base sequence {batch.base_sequence} is taken, where {due} is due"
        say.broken(Side.BROKER, found, message=append.message, path=append.path)


def _judge_refused(turn: Turn, say: Say, append: Append) -> None:
    """Judge a batch that the broker refused as out of order, if the one before it was taken."""
    batch = append.batch
    before = turn.talk.state(_Accepted).get(append.place)
    if append.error != _OUT_OF_ORDER or before is None or turn.talk.torn:
        return
    if before[:2] != (batch.producer_id, batch.producer_epoch):
        return
    say.judged()
    due = (before[2] + 1) % SEQUENCES
    if batch.base_sequence != due:
        found = f"base sequence {batch.base_sequence} is sent, where {due} is due"
        say.broken(Side.CLIENT, found, message=append.message, path=append.path)


def _record_accepted(turn: Turn) -> None:
    accepted = turn.talk.state(_Accepted)
    for append in _appends(turn):
        batch = append.batch
        if append.error:
            accepted.pop(append.place, None)
        else:
            last = batch.producer_id, batch.producer_epoch, append.last_sequence
            accepted[append.place] = last


def _is_repeated(append: Append, before: Producer) -> bool:
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
def retries_not_appended(turn: Turn, say: Say) -> None:
    """Look for sequences that were appended at two offsets."""
    taken = turn.world.state(_Appended)
    for append, before in turn.world.state(_Predecessors).of(turn):
        if append.error or append.offset < 0:
            continue
        batch = append.batch
        key = append.place, batch.producer_id, batch.producer_epoch
        recent = taken.get(key) or deque(maxlen=RETAINED)
        taken[key] = recent
        if before is not None or recent:
            say.judged()
        is_again = any(s == batch.base_sequence and o != append.offset for s, o in recent)
        if is_again or (before is not None and _is_repeated(append, before)):
            found = f"base sequence {batch.base_sequence} is appended again"
            say.broken(Side.BROKER, found, message=append.message, path=append.path)
        if (batch.base_sequence, append.offset) not in recent:
            recent.append((batch.base_sequence, append.offset))


class _Appended(Newest[tuple[Place, int, int], deque[tuple[int, int]]]):
    """By place, producer and epoch the last sequences that were appended, with their offsets."""


class _InFlight(Newest[Place, deque[tuple[int, int]]]):
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
def five_in_flight(turn: Turn, say: Say) -> None:
    """Count the batches that were not answered yet when a batch was sent."""
    if turn.talk.torn:
        say.unjudged(turn.talk.torn)
        return
    asked, done = turn.exchange.request_packet, turn.exchange.response_packet
    if asked is None or done is None:
        return
    flights = turn.talk.state(_InFlight)
    for append in _appends(turn):
        before = flights.get(append.place)
        if before is None:
            before = flights[append.place] = deque(maxlen=RETAINED)
        say.judged()
        producer = append.batch.producer_id
        if sum(end > asked and owner == producer for end, owner in before) == RETAINED:
            found = f"{RETAINED} batches were not answered yet"
            say.broken(Side.CLIENT, found, message=append.message, path=append.path)
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
def valid_acks(turn: Turn, say: Say) -> None:
    """Look at the acks of a request."""
    if why := turn.lacks(response=False):
        say.unjudged(why)
        return
    assert turn.asked is not None
    say.judged()
    acks = turn.asked.acks
    if acks not in _ACKS:
        say.broken(Side.CLIENT, f"acks is {acks}", path="acks")
        return
    batches = [batch for _, carried in turn.carried for batch in carried.batches]
    idempotent = any(isinstance(b, RecordBatch) and b.producer_id >= 0 for b in batches)
    if idempotent and acks != _ACKS_ALL:
        found = f"acks is {acks} for an idempotent producer"
        say.broken(Side.CLIENT, found, path="acks", severity=Severity.WARNING)
