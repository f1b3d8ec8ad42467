"""
Bounds of logs that responses report, to be compared with each other and with the logs at the end.

As long as a partition keeps its leader, its high watermark, last stable offset and log start only
grow. So none of them may lie beyond what the log has at the end of the pass, and a request that is
sent after a response may not report less than that did, nor less than the records in it.

Source: Partition.readRecords, UnifiedLog.maybeIncrementHighWatermark and LeaderEpochFileCache of
Kafka 4.0; KIP-101, KIP-207 (ListOffsets after a change of leaders), KIP-320.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, NamedTuple
from uuid import UUID

from construct import Container

from cluster.client.broker_metadata import NO_ID, Leader, Topology
from cluster.client.topic_admin import EARLIEST, LATEST

_BATCH = Struct(">qiib6xi")
"""Base offset, length, partition leader epoch, magic, last offset delta."""
_MAGIC, _LENGTH_END = 2, 12

_MAX_MARKS = 256
"""Newest responses about a log that later ones are compared with."""

_READ_UNCOMMITTED = 0

_NEVER = (1 << 63) - 1

_FETCHED = "responses", "partitions"
_APPENDED = "responses", "partition_responses"
_LISTED = "topics", "partitions"


class Exchange(NamedTuple):
    """
    A request of the replay, and a response of the target.

    Attributes:
        step: The number of its step.
        node: The broker.
        sent_ns: When the request was sent.
        received_ns: When the response arrived.
        request: The body of the request.
        response: The body of the response.
    """

    step: int
    node: int
    sent_ns: int
    received_ns: int
    request: Container
    response: Container


class Reported(NamedTuple):
    """
    A value in a response, in terms of the target.

    Attributes:
        value: The value.
        field: The path of the field below its partition.
        arrays: The names of the arrays of topics and partitions.
        step: The step.
        bound: What it contradicts; -1 for nothing.
    """

    value: int
    field: str
    arrays: tuple[str, str]
    step: int
    bound: int = -1


@dataclass(slots=True)
class LogBounds:
    """
    The bounds that responses reported of one partition.

    Attributes:
        leader: Its leader when they began.
        topic_id: The id of its topic then; None without one.
        end: The highest end: high watermark, last stable offset, offset in ListOffsets.
        start: The highest log start.
        epoch: The highest leader epoch.
        contradiction: The first value that contradicts an earlier response, or its own request.
    """

    leader: Leader | None = None
    topic_id: UUID | None = None
    end: Reported | None = None
    start: Reported | None = None
    epoch: Reported | None = None
    contradiction: Reported | None = None
    _times_ns: list[int] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)

    def is_led_by(self, node: int) -> bool:
        """Return whether a broker leads the partition: only its log start and ends always grow."""
        return self.leader is not None and self.leader.node == node

    def known_end(self, sent_ns: int) -> int:
        """Return the end that the leader had reported before a request; -1 for none."""
        at = bisect_right(self._times_ns, sent_ns)
        return self._ends[at - 1] if at else -1

    def mark(self, received_ns: int, end: int) -> None:
        """Record the end that a response of the leader shows to be readable."""
        if self._ends and (end <= self._ends[-1] or received_ns < self._times_ns[-1]):
            return
        self._times_ns.append(received_ns)
        self._ends.append(end)
        if len(self._ends) > _MAX_MARKS:
            del self._times_ns[: _MAX_MARKS // 2], self._ends[: _MAX_MARKS // 2]

    def add(self, name: str, value: int, *place: Any) -> None:
        """Keep a value if it is the highest of its kind; `place` is the rest of `Reported`."""
        highest = getattr(self, name)
        if value >= 0 and (highest is None or value > highest[0]):
            setattr(self, name, Reported(value, *place))

    def contradict(self, reported: Reported) -> None:
        """Keep a value that contradicts an earlier response, or its own request."""
        self.contradiction = self.contradiction or reported


class BoundsOfLogs:
    """
    The bounds of all logs in one pass, by topic of the target and partition.

    Args:
        target: The metadata of the target.
    """

    def __init__(self, target: Topology) -> None:
        self._target = target
        self.logs: dict[tuple[str, int], LogBounds] = {}
        self._begun_ns: dict[str, int] = {}

    def record(self, api: str, exchange: Exchange) -> None:
        """Record the bounds in a response."""
        reader = _READERS.get(api)
        if reader is not None:
            reader(self, exchange)
        elif api == "CreateTopics":
            self._begin_topics(exchange)

    def end_topic(self, topic: str) -> None:
        """Forget the logs of a topic that is about to be deleted, and all until its next life."""
        self.logs = {place: log for place, log in self.logs.items() if place[0] != topic}
        self._begun_ns[topic] = _NEVER

    def _begin_topics(self, exchange: Exchange) -> None:
        """Expect the logs of deleted topics again that were created anew."""
        for topic in exchange.response.topics if not exchange.request.get("validate_only") else ():
            if topic.name in self._begun_ns and not topic.error_code:
                self._begun_ns[topic.name] = exchange.received_ns

    def _log(self, topic: str, partition: int) -> LogBounds:
        log = self.logs.get((topic, partition))
        if log is None:
            log = self.logs[topic, partition] = LogBounds()
        if log.leader is None:
            # If it is out of date already, the leader at the end is another: then none is judged.
            log.leader = self._target.leader(topic, partition)
            log.topic_id = self._target.topic_id(topic)
        return log

    def _fetch(self, exchange: Exchange) -> None:
        of = _FETCHED, exchange.step
        for topic in exchange.response["responses"]:
            for each, log in self._partitions(exchange, topic, _FETCHED):
                high, start = each["high_watermark"], each.get("log_start_offset", -1)
                log.add("end", high, "high_watermark", *of)
                log.add("end", each.get("last_stable_offset", -1), "last_stable_offset", *of)
                log.add("start", start, "log_start_offset", *of)
                end, epoch = _end_and_epoch(each["records"] or b"")
                log.add("epoch", epoch, "records.leader_epoch", *of)
                if start > 0:
                    self._start(exchange, topic, each, log)
                if log.is_led_by(exchange.node):
                    known = log.known_end(exchange.sent_ns)
                    if 0 <= high < known:
                        log.contradict(Reported(high, "high_watermark", *of, known))
                    log.mark(exchange.received_ns, max(end, high))

    def _start(
        self, exchange: Exchange, topic: Container, given: Container, log: LogBounds
    ) -> None:
        """Record a log start that contradicts the offset that the request asked for."""
        wanted = dict(_wanted(exchange.request))
        key = topic.get("topic") or topic.get("topic_id")
        offset, start = wanted.get((key, given.partition_index), -1), given.log_start_offset
        diverging = given.get("diverging_epoch") or {}
        if 0 <= offset < start and diverging.get("end_offset", -1) < 0:
            log.contradict(Reported(start, "log_start_offset", _FETCHED, exchange.step, offset))

    def _produce(self, exchange: Exchange) -> None:
        for topic in exchange.response.responses:
            for each, log in self._partitions(exchange, topic, _APPENDED):
                start = each.get("log_start_offset", -1)
                log.add("start", start, "log_start_offset", _APPENDED, exchange.step)

    def _list_offsets(self, exchange: Exchange) -> None:
        is_end = exchange.request.get("isolation_level", 0) == _READ_UNCOMMITTED
        times = {
            (topic.name, each.partition_index): each.timestamp
            for topic in exchange.request.topics
            for each in topic.partitions
        }
        for topic in exchange.response.topics:
            for each, log in self._partitions(exchange, topic, _LISTED):
                of, offset = (_LISTED, exchange.step), each.get("offset", -1)
                when = times.get((topic.name, each.partition_index))
                log.add("epoch", each.get("leader_epoch", -1), "leader_epoch", *of)
                log.add("end", offset, "offset", *of)
                if when == EARLIEST:
                    log.add("start", offset, "offset", *of)
                if when == LATEST and is_end and log.is_led_by(exchange.node):
                    known = log.known_end(exchange.sent_ns)
                    if 0 <= offset < known:
                        log.contradict(Reported(offset, "offset", *of, known))
                    log.mark(exchange.received_ns, offset)

    def _epochs(self, exchange: Exchange) -> None:
        for topic in exchange.response.topics:
            for each, log in self._partitions(exchange, topic, _LISTED):
                epoch = each.get("leader_epoch", -1)
                log.add("epoch", epoch, "leader_epoch", _LISTED, exchange.step)

    def _partitions(
        self, exchange: Exchange, topic: Container, arrays: tuple[str, str]
    ) -> Iterator[tuple[Container, LogBounds]]:
        """Yield the partitions without an error, and their bounds."""
        topic_id = topic.get("topic_id") or NO_ID
        name = topic.get("topic") or topic.get("name") or self._target.topic_name(topic_id) or ""
        is_of_life = exchange.sent_ns >= self._begun_ns.get(name, exchange.sent_ns)
        for each in topic[arrays[1]] if name and is_of_life and not topic.get("error_code") else ():
            if not each["error_code"]:
                index = each.get("partition_index", each.get("partition", each.get("index")))
                yield each, self._log(name, index)


_READERS = {
    "Fetch": BoundsOfLogs._fetch,
    "Produce": BoundsOfLogs._produce,
    "ListOffsets": BoundsOfLogs._list_offsets,
    "OffsetForLeaderEpoch": BoundsOfLogs._epochs,
    "Metadata": BoundsOfLogs._epochs,
    "DescribeTopicPartitions": BoundsOfLogs._epochs,
}


def _wanted(request: Mapping[str, Any]) -> Iterator[tuple[tuple[Any, int], int]]:
    """Yield topic, partition and offset that a Fetch asks for."""
    for topic in request["topics"] or ():
        for each in topic["partitions"]:
            key = topic.get("topic") or topic.get("topic_id"), each["partition"]
            yield key, each["fetch_offset"]


def _end_and_epoch(records: bytes) -> tuple[int, int]:
    """Return the offset after the last whole batch, and the highest leader epoch; -1 for none."""
    at, end, highest, size = 0, -1, -1, len(records)
    while at + _BATCH.size <= size:
        base, length, epoch, magic, delta = _BATCH.unpack_from(records, at)
        at += _LENGTH_END + length
        if magic != _MAGIC or length < 0 or at > size:
            break
        end, highest = base + delta + 1, max(highest, epoch)
    return end, highest
