"""
Logs of partitions, as far as a capture shows them: appends, log start and high watermark.

Topics that are known by name alone may be deleted and recreated; once a capture shows that topics
are created or deleted, all state of logs is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID
from weakref import ref

from conform.evidence.bounded_memory import Newest
from conform.evidence.fetch_history import partitions
from conform.evidence.observation import Turn
from conform.evidence.producer_appends import Place
from dissector.protocol.records import RecordBatch

_MOST_LOGS = 10_000
_MOST_RANGES = 50
"""Limit of the appends kept for one partition."""

_LATEST, _EARLIEST = -1, -2
_ALL = -1


class Range(NamedTuple):
    """
    One append.

    Attributes:
        first: Its first offset.
        end: The offset behind its last.
        talk: Number of the connection on which it was produced.
        told_ns: Time of the response.
        producer: Producer id, epoch and sequence, which identify a batch.
    """

    first: int
    end: int
    talk: int
    told_ns: int
    producer: tuple[int, int, int]


class Bound(NamedTuple):
    """A lower bound of a log's end or start, with the time and connection of the response."""

    offset: int
    told_ns: int
    talk: int


@dataclass(slots=True)
class Log:
    """
    The log of one partition at one broker.

    Attributes:
        ranges: The newest appends.
        end: The highest high watermark in a response, or proved by an append with acks = -1.
        start: The highest log start.
        topic_id: Id of the topic, where a message carries it.
    """

    ranges: deque[Range] = field(default_factory=lambda: deque(maxlen=_MOST_RANGES))
    end: Bound | None = None
    start: Bound | None = None
    topic_id: UUID | None = None


class Claim(NamedTuple):
    """A statement of an exchange about a log: its end or start at the broker, or an append."""

    place: Place
    topic_id: UUID | None
    path: str
    end: int | None = None
    start: int | None = None
    append: Range | None = None


class Logs(Newest[Place, Log]):
    """The logs that a capture shows; an exchange takes effect after all rules have examined it."""

    def __init__(self) -> None:
        super().__init__(_MOST_LOGS)
        self._turn: Callable[[], Turn | None] = lambda: None
        self._claims: list[Claim] = []
        self._told: tuple[int, int] = (0, 0)

    def at(self, turn: Turn) -> list[Claim]:
        """Apply the statements of the previous exchange; return those of this one."""
        if self._turn() is not turn:
            for claim in self._claims:
                self._take(claim)
            self._turn, self._claims = ref(turn), _claims(turn)
            self._told = turn.exchange.response_time_ns or 0, turn.talk.number
            if turn.exchange.api in ("CreateTopics", "DeleteTopics"):
                self.clear()
        return self._claims

    def of(self, place: Place, topic_id: UUID | None) -> Log | None:
        """Return the log at a place; None where it is unknown or the topic was recreated since."""
        log = self.get(place)
        if log is not None and topic_id and log.topic_id and topic_id != log.topic_id:
            return None
        return log

    def _take(self, claim: Claim) -> None:
        log = self.of(claim.place, claim.topic_id)
        if log is None:
            log = self[claim.place] = Log()
        log.topic_id = claim.topic_id or log.topic_id
        told_ns, talk = self._told
        if claim.append is not None:
            log.ranges.append(claim.append)
        if claim.end is not None and (log.end is None or claim.end >= log.end.offset):
            log.end = Bound(claim.end, told_ns, talk)
        if claim.start is not None and (log.start is None or claim.start >= log.start.offset):
            log.start = Bound(claim.start, told_ns, talk)


def _claims(turn: Turn) -> list[Claim]:
    """Return the statements of an exchange about logs."""
    asked, told = turn.asked, turn.told
    if asked is None or told is None or turn.exchange.response_time_ns is None:
        return []
    if turn.exchange.api == "Produce":
        return _of_produce(turn, asked, told)
    if turn.exchange.api == "Fetch":
        return _of_fetch(turn, told)
    if turn.exchange.api == "ListOffsets" and turn.version:
        return _of_list_offsets(turn, asked, told)
    if turn.exchange.api == "DeleteRecords":
        broker = turn.talk.broker.address
        return [
            Claim(
                (broker, topic.name, each.partition_index),
                None,
                f"topics[{at}].partitions[{number}].low_watermark",
                start=each.low_watermark,
            )
            for at, topic in enumerate(told.topics or ())
            for number, each in enumerate(topic.partitions or ())
            if not each.error_code and each.low_watermark >= 0
        ]
    return []


def _of_produce(turn: Turn, asked: Any, told: Any) -> list[Claim]:
    answers = {
        (topic.get("name", topic.get("topic_id")), each.index): (
            each,
            f"responses[{at}].partition_responses[{number}].base_offset",
        )
        for at, topic in enumerate(told.responses or ())
        for number, each in enumerate(topic.partition_responses or ())
    }
    found = []
    for _, carried in turn.carried:
        topic = carried.topic_id if carried.topic is None else carried.topic
        answer, path = answers.get((topic, carried.partition), (None, ""))
        batch = carried.batches[0] if len(carried.batches) == 1 else None
        if answer is None or answer.error_code or answer.base_offset < 0 or topic is None:
            continue
        if isinstance(batch, RecordBatch) and batch.last_offset_delta >= 0:
            end = answer.base_offset + batch.last_offset_delta + 1
            producer = batch.producer_id, batch.producer_epoch, batch.base_sequence
            told_ns = turn.exchange.response_time_ns or 0
            made = Range(answer.base_offset, end, turn.talk.number, told_ns, producer)
            name = turn.topic_name(carried.topic, carried.topic_id)
            place = turn.talk.broker.address, name, carried.partition
            start = answer.get("log_start_offset", -1)
            found.append(
                Claim(
                    place,
                    carried.topic_id,
                    path,
                    end if asked.acks == _ALL else None,
                    start if start >= 0 else None,
                    made,
                )
            )
    return found


def _of_fetch(turn: Turn, told: Any) -> list[Claim]:
    found = []
    for at, topic in enumerate(told.responses or ()):
        topic_id = topic.get("topic_id")
        name = turn.topic_name(topic.get("topic"), topic_id)
        for number, ((_, partition), each) in enumerate(partitions([topic])):
            if each.error_code or each.high_watermark < 0:
                continue
            start = each.get("log_start_offset", -1)
            place = turn.talk.broker.address, name, partition
            path = f"responses[{at}].partitions[{number}]"
            first = start if start >= 0 else None
            found.append(Claim(place, topic_id, path, each.high_watermark, first))
    return found


def _of_list_offsets(turn: Turn, asked: Any, told: Any) -> list[Claim]:
    times = {
        (topic.name, each.partition_index): each.timestamp
        for topic in asked.topics or ()
        for each in topic.partitions or ()
    }
    found = []
    for at, topic in enumerate(told.topics or ()):
        for number, each in enumerate(topic.partitions or ()):
            time = times.get((topic.name, each.partition_index))
            if each.error_code or each.offset < 0:
                continue
            place = turn.talk.broker.address, topic.name, each.partition_index
            path = f"topics[{at}].partitions[{number}].offset"
            if time == _LATEST and not asked.get("isolation_level"):
                found.append(Claim(place, None, path, end=each.offset))
            elif time == _EARLIEST:
                found.append(Claim(place, None, path, start=each.offset))
    return found
