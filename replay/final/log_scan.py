"""
Reads a log of the target for its producers: their newest batches, transactions and markers.

Only a bounded part is read. What a log says of its producers is compared with what the target says
elsewhere, so nothing is judged of a part that was not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from cluster.client.cluster import Cluster
from cluster.client.topic_admin import READ_COMMITTED, fetch_partition
from cluster.fields.batch_rewriter import BatchHeader, batch_headers
from dissector.errors import ReplayError
from dissector.protocol.error_codes import error_name
from dissector.protocol.records import iter_records, parse_records
from dissector.protocol.records.layout import CONTROL, TRANSACTIONAL

_MAX_FETCHES = 8
"""Limit of Fetch requests for one log."""

_SEQUENCES = 1 << 31


class Marker(NamedTuple):
    """A transaction marker: its producer id, offset, and whether it commits."""

    producer_id: int
    offset: int
    is_commit: bool


class Aborted(NamedTuple):
    """An aborted transaction in a Fetch response: producer id and first offset."""

    producer_id: int
    first_offset: int


@dataclass(slots=True)
class LogScan:
    """
    What was read of a log.

    Attributes:
        markers: The markers, in order.
        open: Producer id -> first offset of a transaction without a marker so far.
        sequences: Producer id and epoch -> last sequence.
        listed: Aborted transactions that the target listed.
        aborted: Aborted transactions by their markers, if their records came with them.
        committed: Committed ones, in the same way.
        end: The offset after what was read.
        is_whole: Whether the end of the log was reached.
        is_limited: Whether there was more to read.
        stable_end: The last stable offset, if no records below it were returned; else -1.
    """

    markers: list[Marker] = field(default_factory=list)
    open: dict[int, int] = field(default_factory=dict)
    sequences: dict[tuple[int, int], int] = field(default_factory=dict)
    listed: set[Aborted] = field(default_factory=set)
    aborted: set[Aborted] = field(default_factory=set)
    committed: set[Aborted] = field(default_factory=set)
    end: int = 0
    is_whole: bool = False
    is_limited: bool = False
    stable_end: int = -1

    def add(self, records: bytes) -> None:
        """Add the batches of a response."""
        begun: dict[int, int] = {}
        for header in batch_headers(records):
            if header.producer is None:
                break
            self.end = header.base_offset + header.offset_count
            if header.attributes & CONTROL:
                self._add_markers(records[header.start : header.end], header, begun)
            elif header.producer.producer_id >= 0:
                self._add_data(header, begun)

    def _add_data(self, header: BatchHeader, begun: dict[int, int]) -> None:
        assert header.producer is not None
        producer_id, epoch, sequence = header.producer
        last = (sequence + header.offset_count - 1) % _SEQUENCES
        self.sequences[producer_id, epoch] = last
        if header.attributes & TRANSACTIONAL and producer_id not in self.open:
            self.open[producer_id] = begun[producer_id] = header.base_offset

    def _add_markers(self, batch: bytes, header: BatchHeader, begun: dict[int, int]) -> None:
        assert header.producer is not None
        producer_id = header.producer.producer_id
        for row in iter_records(parse_records(batch)):
            if row.control not in ("COMMIT", "ABORT"):
                continue
            is_commit = row.control == "COMMIT"
            self.markers.append(Marker(producer_id, row.offset, is_commit))
            self.open.pop(producer_id, None)
            if producer_id in begun:
                found = Aborted(producer_id, begun.pop(producer_id))
                (self.committed if is_commit else self.aborted).add(found)


async def scan(cluster: Cluster, topic: str, partition: int, start: int, end: int) -> LogScan:
    """
    Read a log of the target as a reader of committed records does.

    Args:
        cluster: The target.
        topic: The topic of the target.
        partition: The partition.
        start: The first offset to read.
        end: The end of the log.

    Raises:
        ReplayError: The target does not return records.
    """
    found = LogScan(end=start)
    for _ in range(_MAX_FETCHES):
        at = found.end
        answer = await fetch_partition(cluster, topic, partition, at, READ_COMMITTED)
        if answer.error_code:
            raise ReplayError(cluster.addresses, f"Fetch: {error_name(answer.error_code)}")
        found.add(answer.records or b"")
        found.listed.update(_listed(answer))
        if found.end >= end:
            break
        if found.end == at:
            stable_end = answer.get("last_stable_offset", -1)
            found.stable_end = stable_end if stable_end > at else -1
            break
    else:
        found.is_limited = True
    found.is_whole = found.end >= end
    return found


def _listed(answer: object) -> Iterator[Aborted]:
    for each in getattr(answer, "aborted_transactions", None) or ():
        yield Aborted(each.producer_id, each.first_offset)
