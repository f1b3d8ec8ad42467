"""
Matches Fetch responses that have the captured batches in the captured partitions.

All else in them must be as captured, but for what differs in every log: offsets, epochs, producers,
watermarks. Other responses are left to the full comparison.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from struct import Struct
from typing import Any, NamedTuple

from construct import Container

from cluster.fields.field_layout import Scope
from dissector.protocol.field_roles import Role
from dissector.protocol.records.batch import has_right_crc
from dissector.protocol.records.layout import CONTROL
from replay.mapping.id_map import IdMap
from replay.mapping.offset_map import PartitionOffsets
from replay.mapping.reader_accounts import ReturnedRecords
from replay.model.offset_ranges import Ranges
from replay.templates.fetch_bodies import SharedTopics

_BATCH = Struct(">qi4xb4xhi16xqh4xi")
"""
Base offset, length, magic, attributes, last offset delta, producer id and epoch, number of records.
"""

_LENGTH_END, _MAGIC = 12, 2
_FROM_ATTRIBUTES, _TO_PRODUCER, _COUNT_AT = 21, 43, 57
"""Attributes, delta and times lie between the first two; number and records from the third on."""

_BOUNDS = ("high_watermark", "last_stable_offset", "log_start_offset")
_MATCHED = frozenset({"partition_index", "records", *_BOUNDS})
_EXCEPT_TOPICS = frozenset({"topic", "topic_id", "partitions"})


class Run(NamedTuple):
    """Consecutive records: their first offset on both sides, and their number."""

    captured: int
    live: int
    length: int


_TopicRuns = list[list[tuple[int, list[Run]]]]
"""Of each topic the partitions with records, and their runs."""

_MAX_PAIRS = 128
_NOWHERE = Scope()


class _Pair(NamedTuple):
    """
    Topics of both sides that were matched before.

    Attributes:
        topics: The captured ones, kept so that their identity remains theirs.
        others: Those of the target, kept as well.
        revision: That of the producers' mapping.
        runs: The records; None if the sides do not match.
    """

    topics: list[Container]
    others: list[Container]
    revision: int
    runs: _TopicRuns | None


class FetchedLog(NamedTuple):
    """The records of a partition, by its captured topic."""

    topic: str
    partition: int
    runs: list[Run]


class FetchMatcher:
    """
    Matches Fetch responses with the captured ones; pairs that others had before, only once.

    Args:
        ids: The id mapping.
    """

    def __init__(self, ids: IdMap) -> None:
        self._ids = ids
        self._known: dict[tuple[int, int], _Pair] = {}

    def match(
        self, captured: Container, live: Container, unasked: Collection[tuple[Any, int]]
    ) -> list[FetchedLog] | None:
        """
        Match a Fetch response with the captured one.

        Args:
            captured: The body of the captured response.
            live: The body of the target's response, in the same version.
            unasked: Topic (name or id, as captured) and partition of what was not asked for.

        Returns:
            The partitions with records; None if the response needs the full comparison.
        """
        if live.get("error_code") or captured.get("error_code") or live.get("throttle_time_ms"):
            return None
        if (live.get("session_id", 0) == 0) != (captured.get("session_id", 0) == 0):
            return None
        topics, others = captured["responses"], live["responses"]
        if unasked:
            topics = list(_asked(topics, unasked))
        runs = self._runs(topics, others)
        if runs is None:
            return None
        found: list[FetchedLog] = []
        for topic, other, of_partitions in zip(topics, others, runs, strict=True):
            title = _title(topic, other, self._ids)
            if title is None:
                return None
            found += (FetchedLog(title, number, each) for number, each in of_partitions)
        return found

    def _runs(self, topics: list[Container], others: list[Container]) -> _TopicRuns | None:
        """Return the records of topics, apart from their names; None if they do not match."""
        if topics.__class__ is not SharedTopics or others.__class__ is not SharedTopics:
            return _match_topics(topics, others, self._ids)
        key, revision = (id(topics), id(others)), self._ids.producers.revision
        known = self._known.get(key)
        if known is None or known.revision != revision:
            runs = _match_topics(topics, others, self._ids)
            if len(self._known) >= _MAX_PAIRS:
                del self._known[next(iter(self._known))]
            known = self._known[key] = _Pair(topics, others, revision, runs)
        return known.runs


def _match_topics(
    topics: list[Container], others: list[Container], ids: IdMap
) -> _TopicRuns | None:
    if len(topics) != len(others):
        return None
    found: _TopicRuns = []
    for topic, other in zip(topics, others, strict=True):
        if len(topic["partitions"]) != len(other["partitions"]):
            return None
        of_partitions = []
        for before, after in _paired(topic["partitions"], other["partitions"]):
            runs = None if after is None else _match_partition(before, after, ids)
            if runs is None:
                return None
            if runs:
                of_partitions.append((before["partition_index"], runs))
        found.append(of_partitions)
    return found


def learn_fetch(found: list[FetchedLog], ids: IdMap) -> list[ReturnedRecords] | None:
    """Learn the offsets of records; None if others were known: that needs the full comparison."""
    returned = []
    for topic, partition, runs in found:
        log, offsets = ids.offsets.log(topic, partition), Ranges()
        for run in runs:
            if not _has_learned(log, run):
                return None
            offsets.add(run.captured, run.captured + run.length)
        returned.append(ReturnedRecords(topic, partition, offsets, offsets))
    return returned


def _has_learned(log: PartitionOffsets, run: Run) -> bool:
    captured, live, length = run
    if log.has_run(captured, live, length):
        return True
    appended_at = log.appended.live_at(captured)
    if appended_at is not None and appended_at != live:
        return False
    log.learn(captured, live, length)
    return log.has_run(captured, live, length)


def _asked(topics: list[Container], unasked: Collection[tuple[Any, int]]) -> Iterator[Container]:
    """Yield the topics with the partitions that were asked for."""
    for topic in topics:
        name = topic.get("topic") or topic.get("topic_id")
        asked = [each for each in topic.partitions if (name, each.partition_index) not in unasked]
        if asked or not topic.partitions:
            yield Container({**topic, "partitions": asked})


def _title(topic: Container, other: Container, ids: IdMap) -> str | None:
    """Return the captured name of a topic that both sides have; None if they differ."""
    name = topic.get("topic")
    if name:
        return name if other.get("topic") == ids.names.topic(name) else None
    topic_id = topic.get("topic_id")
    if topic_id is None or ids.captured(Role.TOPIC_ID, other.get("topic_id"), _NOWHERE) != topic_id:
        return None
    return ids.captured_topics.topic_name(topic_id)


def _paired(
    partitions: list[Container], others: list[Container]
) -> list[tuple[Container, Container | None]]:
    """Return the partitions of a topic with those of the target, which come in any order."""
    by_number = {each["partition_index"]: each for each in others}
    return [(each, by_number.pop(each["partition_index"], None)) for each in partitions]


def _match_partition(before: Container, after: Container, ids: IdMap) -> list[Run] | None:
    """Return the records of a partition; None if the two do not match."""
    for name, value in before.items():
        other = after.get(name)
        if value is other:  # also small numbers
            continue
        if name in _BOUNDS:
            if other is None or (value < 0) != (other < 0):
                return None
        elif name not in _MATCHED and not _are_equal(value, other):
            return None
    records, others = before["records"] or b"", after["records"] or b""
    if len(records) != len(others):
        return None
    runs = _match_batches(records, others, ids)
    if runs and any(0 <= after.get(name, -1) < runs[0].live for name in _BOUNDS[:2]):
        return None  # readable up to an offset before these records
    return runs


def _are_equal(value: Any, other: Any) -> bool:
    """Compare values of a field; structs as dicts, many times as fast as by their own method."""
    return bool(dict.__eq__(value, other) if isinstance(value, dict) else value == other)


def _match_batches(captured: bytes, live: bytes, ids: IdMap) -> list[Run] | None:
    at, size, runs = 0, len(captured), []
    while at < size:
        if size - at < _BATCH.size:
            return None
        offset, length, magic, attributes, delta, producer, epoch, count = _BATCH.unpack_from(
            captured, at
        )
        to, live_length, live_magic, _, _, live_producer, live_epoch, _ = _BATCH.unpack_from(
            live, at
        )
        end = at + _LENGTH_END + length
        if magic != _MAGIC or not at + _BATCH.size <= end <= size or delta + 1 != count:
            return None
        start, stop, rest = at + _FROM_ATTRIBUTES, at + _TO_PRODUCER, at + _COUNT_AT
        if (
            captured[start:stop] != live[start:stop]
            or captured[rest:end] != live[rest:end]
            or (live_length, live_magic) != (length, magic)
            or attributes & CONTROL
        ):
            return None
        if not _is_written_by((producer, epoch), (live_producer, live_epoch), ids):
            return None
        if not has_right_crc(live, at, end):
            return None
        runs.append(Run(offset, to, count))
        at = end
    return runs


def _is_written_by(producer: tuple[int, int], other: tuple[int, int], ids: IdMap) -> bool:
    """Return whether a producer of the target may be the captured one."""
    if producer[0] < 0 or other[0] < 0:
        return producer[0] < 0 and other[0] < 0
    known = ids.producers.live(*producer)
    return known is None or known == other
