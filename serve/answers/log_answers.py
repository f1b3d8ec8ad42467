"""Answers about partition logs: appends, fetches at any position, and offsets."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from construct import Container

from cluster.fields.batch_rewriter import batch_headers, count_records, to_record_batch
from cluster.fields.refusal import RewriteError
from dissector.protocol.error_codes import error_code
from dissector.protocol.records import RecordBatch, new_message_set, parse_records
from serve.answers.client_request import ClientRequest
from serve.answers.cluster_answers import UNKNOWN_TOPIC
from serve.answers.produced_comparison import counterparts, first_difference
from serve.answers.produced_logs import ProducedLogs
from serve.answers.served_state import ServedState
from serve.recording.captured_log import (
    StoredBatch,
    TopicPartition,
    at_offset,
    split_batches,
)
from serve.recording.served_recording import producer_key

OUT_OF_RANGE = error_code("OFFSET_OUT_OF_RANGE")
_LATEST, _EARLIEST = -1, -2
_FIRST_WITH_BATCHES = 4
"""First version of Fetch with record batches."""
_KEPT_SEQUENCES = 5
"""Number of recent batches per producer for detection of duplicates (KIP-98)."""


class LogAnswers:
    """
    Composes answers to Produce, Fetch and ListOffsets.

    Args:
        state: The served capture.
        report_miss: Called with a request and the missing item.
        follows_producers: Serve the records of clients in partitions with captured producers.
        compares: Compare produced records with the captured ones.
    """

    def __init__(
        self,
        state: ServedState,
        report_miss: Callable[[ClientRequest, str], None],
        *,
        follows_producers: bool = False,
        compares: bool = False,
    ) -> None:
        self._compares = compares
        self._follows_producers = follows_producers
        self._state = state
        self._recording = state.recording
        self._report_miss = report_miss
        self._next_offsets: dict[TopicPartition, int] = {}
        self._accepted: defaultdict[Hashable, int] = defaultdict(int)
        self._errors_given: defaultdict[Hashable, int] = defaultdict(int)
        self._sequences: defaultdict[Hashable, deque[tuple[int, int]]] = defaultdict(
            lambda: deque(maxlen=_KEPT_SEQUENCES)
        )
        self._produced = ProducedLogs()
        self._open_transactions: defaultdict[int, set[TopicPartition]] = defaultdict(set)

    async def produce(self, request: ClientRequest) -> Container | None:
        """Append records; return their offsets, or None for acks = 0."""
        body = request.body
        responses = [
            Container(
                name=topic.name,
                partition_responses=[
                    self._append(request, topic.name, each) for each in topic.partition_data
                ],
            )
            for topic in body.topic_data
        ]
        self._state.announce_append()
        return Container(responses=responses) if body.acks else None

    async def fetch(self, request: ClientRequest) -> Container:
        """Return records; without new ones, wait up to max_wait_ms."""
        answer = self._read(request)
        if not any(_has_news(part) for topic in answer.responses for part in topic.partitions):
            deadline = asyncio.get_running_loop().time() + request.body.max_wait_ms / 1000
            while (left := deadline - asyncio.get_running_loop().time()) > 0:
                await self._state.wait_for_append(left)
                answer = self._read(request)
                if any(_has_news(p) for topic in answer.responses for p in topic.partitions):
                    break
        return answer

    async def list_offsets(self, request: ClientRequest) -> Container:
        """Return offsets by time: captured offsets, or the current log start and end."""
        topics = [
            Container(
                name=topic.name,
                partitions=[self._offset(request, topic.name, each) for each in topic.partitions],
            )
            for topic in request.body.topics
        ]
        return Container(topics=topics)

    async def offset_for_leader_epoch(self, request: ClientRequest) -> Container:
        """Return the end of the log for any epoch; served logs are never truncated."""
        topics = [
            Container(
                topic=topic.topic,
                partitions=[
                    Container(
                        error_code=0,
                        partition=each.partition,
                        leader_epoch=each.leader_epoch,
                        end_offset=self.end((topic.topic, each.partition)),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.body.topics
        ]
        return Container(topics=topics)

    async def delete_records(self, request: ClientRequest) -> Container:
        """Report success without deleting captured records."""
        topics = [
            Container(
                name=topic.name,
                partitions=[
                    Container(
                        partition_index=each.partition_index,
                        low_watermark=max(each.offset, 0),
                        error_code=0,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.body.topics
        ]
        return Container(topics=topics)

    def end(self, place: TopicPartition) -> int:
        """Return the high watermark of a partition."""
        log = self._recording.logs.at(*place)
        if self._is_followed(place):
            return self._next_offset(place)
        return max(log.end, log.high_watermark, self._next_offsets.get(place, 0))

    def end_transaction(self, producer_id: int, epoch: int, *, is_committed: bool) -> None:
        """Append transaction markers to all partitions of an open transaction."""
        for place in self._open_transactions.pop(producer_id, ()):
            at = self._next_offset(place)
            self._next_offsets[place] = at + 1
            self._produced.end_transaction(
                place, (producer_id, epoch), at, is_committed=is_committed
            )
        self._state.announce_append()

    def _append(self, request: ClientRequest, topic: str, part: Container) -> Container:
        place = topic, part.index
        records = part.records or b""
        header = next(batch_headers(records), None)
        producer = header.producer if header is not None else None
        producer_id, epoch = (producer.producer_id, producer.epoch) if producer else (-1, -1)
        key = producer_key(request.body, producer_id, epoch, request.client_id), place
        count = count_records(records)
        error = self._captured_error(key, count)
        if error is not None:
            return Container(error)
        if place not in self._recording.cluster.partitions and place not in self._recording.logs:
            self._report_miss(request, f"partition {part.index} of topic {topic}")
            return _produced(part.index, error=UNKNOWN_TOPIC)
        if producer is not None and producer_id >= 0:
            known = next((o for s, o in self._sequences[key] if s == producer.sequence), None)
            if known is not None:
                return _produced(part.index, base=known)
            self._sequences[key].append((producer.sequence, self._next_offset(place)))
            if request.body.get("transactional_id"):
                self._open_transactions[producer_id].add(place)
        base = self._next_offset(place)
        sent = range(self._accepted[key], self._accepted[key] + count)
        self._accepted[key] += count
        self._next_offsets[place] = base + count
        if self._compares:
            log = self._recording.logs.at(*place)
            offsets: Iterable[int] = range(base, base + count)
            if producer_id >= 0:
                known = self._recording.produced_records.get(key, 0)
                same = range(sent.start, min(sent.stop, known))
                offsets = counterparts(log, (producer_id, epoch), same)
            difference = first_difference(log, records, offsets)
            if difference is not None:
                self._report_miss(request, f"{difference} of {topic}-{part.index}")
        is_transactional = bool(request.body.get("transactional_id"))
        self._store(place, records, base, is_transactional=is_transactional)
        return _produced(part.index, base=base, start=self._recording.logs.at(*place).start)

    def _captured_error(self, key: Hashable, count: int) -> Container | None:
        """Return the captured error at this position of the producer; None without one."""
        errors = self._recording.produce_errors.get(key, [])
        given, accepted = self._errors_given[key], self._accepted[key]
        is_over = accepted >= self._recording.produced_records.get(key, 0)
        if errors and given == len(errors) and is_over and self._ends_with_error(key):
            return errors[-1].result
        if given < len(errors) and errors[given].after_records < accepted + count:
            self._errors_given[key] += 1
            return errors[given].result
        return None

    def _ends_with_error(self, key: Hashable) -> bool:
        last = self._recording.produce_errors[key][-1]
        return last.after_records >= self._recording.produced_records.get(key, 0)

    def _next_offset(self, place: TopicPartition) -> int:
        known = self._next_offsets.get(place)
        if known is None:
            log = self._recording.logs.at(*place)
            first = log.first_produced
            last = max(log.end, log.high_watermark)
            known = self._next_offsets[place] = first if first >= 0 else last
        return known

    def _store(
        self, place: TopicPartition, records: bytes, base: int, *, is_transactional: bool
    ) -> None:
        """Append records to the captured log, or to the produced log that replaces it."""
        log = self._recording.logs.at(*place)
        try:
            batches = list(_placed(to_record_batch(records), base))
        except RewriteError:
            return
        if self._is_followed(place):
            self._produced.append(place, batches, is_transactional=is_transactional)
            return
        for batch in batches:
            if batch.last >= log.end:
                log.add(batch)

    def _is_followed(self, place: TopicPartition) -> bool:
        return self._follows_producers and self._recording.logs.at(*place).first_produced >= 0

    def _read(self, request: ClientRequest) -> Container:
        left_bytes = request.body.get("max_bytes", 1 << 30)
        responses = []
        for topic in request.body.topics:
            parts = []
            for each in topic.partitions:
                part = self._read_partition(request, topic.topic, each, left_bytes)
                left_bytes -= len(part.get("records") or b"")
                parts.append(part)
            responses.append(Container(topic=topic.topic, partitions=parts))
        return Container(responses=responses)

    def _read_partition(
        self, request: ClientRequest, topic: str, wanted: Container, left_bytes: int
    ) -> Container:
        place, position = (topic, wanted.partition), wanted.fetch_offset
        error = self._fetch_error(place, position)
        if error is not None:
            return Container(error)
        if place not in self._recording.cluster.partitions and place not in self._recording.logs:
            self._report_miss(request, f"partition {wanted.partition} of topic {topic}")
            return _fetched(wanted.partition, error=UNKNOWN_TOPIC)
        log, end = self._recording.logs.at(*place), self.end(place)
        if not log.start <= position <= max(end, log.end, log.high_watermark):
            self._report_miss(request, f"offset {position} of {topic}-{wanted.partition}")
            return _fetched(wanted.partition, error=OUT_OF_RANGE)
        produced, is_committed = self._produced.get(place), request.body.get("isolation_level")
        stable, read_end = end, end
        if produced is not None:
            stable = produced.stable_end(end)
            is_produced = position >= produced.start
            log = produced.log if is_produced else log
            read_end = min(end, produced.start) if not is_produced else read_end
        if is_committed:
            read_end = min(read_end, stable)
        records, after = b"", position
        if left_bytes > 0:
            limit = min(left_bytes, wanted.partition_max_bytes)
            records, after = log.read(position, limit, read_end)
            if records and request.version < _FIRST_WITH_BATCHES:
                records = _as_message_set(records, 0 if request.version < 2 else 1)
        start = self._recording.logs.at(*place).start
        part = _fetched(wanted.partition, records=records, end=end, start=start)
        part.last_stable_offset = stable
        if is_committed:
            part.aborted_transactions = [
                Container(producer_id=producer, first_offset=first)
                for producer, first in log.aborted_between(position, after)
            ]
        return part

    def _fetch_error(self, place: TopicPartition, position: int) -> Container | None:
        key = (*place, position)
        errors = self._recording.fetch_errors.get(key, ())
        given = self._errors_given[key]
        if given < len(errors):
            self._errors_given[key] += 1
            return errors[given]
        log = self._recording.logs.at(*place) if place in self._recording.logs else None
        is_outside = log is None or not log.start <= position <= self.end(place)
        return errors[-1] if errors and is_outside else None

    def _offset(self, request: ClientRequest, topic: str, wanted: Container) -> Container:
        place, time = (topic, wanted.partition_index), wanted.timestamp
        history = self._recording.offsets.get((*place, time))
        is_live = time == _LATEST and (place in self._next_offsets or self._follows_producers)
        if history is not None and not is_live:
            found: Container = history.current()
            is_failed = bool(found.error_code)
            if not is_failed:
                history.advance(self._state.reached_ns, is_failed=False)
                found = history.current()
            else:
                history.advance(self._state.reached_ns, is_failed=True)
            return Container(found)
        if place not in self._recording.cluster.partitions and place not in self._recording.logs:
            self._report_miss(request, f"partition {place[1]} of topic {topic}")
            return _listed(place[1], -1, error=UNKNOWN_TOPIC)
        log = self._recording.logs.at(*place)
        if time == _LATEST:
            end = self._next_offsets.get(place, self.end(place))
            produced = self._produced.get(place)
            if produced is not None and request.body.get("isolation_level"):
                end = produced.stable_end(end)
            return _listed(place[1], end)
        if time == _EARLIEST:
            return _listed(place[1], log.start)
        if time >= 0:
            offset, found_ms = log.find_time(time)
            return _listed(place[1], offset, timestamp=found_ms)
        self._report_miss(request, f"offset for time {time} of {topic}-{place[1]}")
        return _listed(place[1], self.end(place))


def _placed(records: bytes, base: int) -> Iterator[StoredBatch]:
    """Yield the batches of a producer with their offsets in the log."""
    for batch in split_batches(records):
        last = base + batch.last - batch.base
        yield batch._replace(base=base, last=last, data=at_offset(batch.data, base))
        base = last + 1


def _has_news(part: Container) -> bool:
    return bool(part.get("records") or part.error_code)


def _produced(index: int, *, error: int | None = 0, base: int = -1, start: int = -1) -> Container:
    return Container(
        index=index,
        error_code=error,
        base_offset=base,
        log_append_time_ms=-1,
        log_start_offset=start,
    )


def _fetched(
    index: int, *, error: int | None = 0, records: bytes = b"", end: int = -1, start: int = -1
) -> Container:
    return Container(
        partition_index=index,
        error_code=error,
        high_watermark=end,
        last_stable_offset=end,
        log_start_offset=start,
        aborted_transactions=None,
        records=records,
    )


def _listed(index: int, offset: int, *, error: int | None = 0, timestamp: int = -1) -> Container:
    return Container(
        partition_index=index,
        error_code=error,
        timestamp=timestamp,
        offset=offset,
    )


def _as_message_set(data: bytes, magic: int) -> bytes:
    """Convert record batches to a message set, for versions of Fetch without batches."""
    batches = parse_records(data)
    if not any(isinstance(batch, RecordBatch) for batch in batches):
        return data
    records: list[Any] = [
        record
        for batch in batches
        if not (isinstance(batch, RecordBatch) and batch.control)
        for record in batch.records
    ]
    return b"".join(
        message.to_bytes()
        for record in records
        for message in new_message_set([record], magic=magic, base_offset=record.offset)
    )
