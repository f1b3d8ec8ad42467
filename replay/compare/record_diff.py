"""
Record diff: compares the records of two responses by their captured offsets.

Batches with identical payloads are compared by their headers alone; only the records of others are
materialised. More or fewer records at either end are not a difference, as a poll returns as soon as
it has data: `log_balance` compares them at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import add
from typing import Any, NamedTuple

from cluster.fields.batch_rewriter import (
    BatchHeader,
    batch_headers,
    has_equal_payload,
    is_truncated,
)
from dissector.protocol.records import Row, iter_records, parse_records
from dissector.protocol.records.batch import has_right_crc, timestamp_type
from dissector.protocol.records.layout import CONTROL, DELETE_HORIZON, TIMESTAMP_TYPE
from dissector.view.json.body import mask_record_row
from dissector.view.text.value_text import text_or_hex
from replay.compare.batch_producers import compare_producers
from replay.mapping.offset_map import PartitionOffsets
from replay.mapping.producer_ids import ProducerMap
from replay.model.offset_ranges import Range, Ranges
from replay.model.outcome import Difference

_COMPARED = ("key", "value", "headers", "control")
_TIMES = "timestamp_ms"
_UNSET = (None, -1)

_BASE_TIME, _NEWEST_TIME = 27, 35
"""Positions of the base timestamp and the maximal timestamp in a batch."""

RETURNED_TWICE = "returned a second time"
"""Description of records that one response has twice."""

TIMES = (_TIMES, "timestamp_type")
"""The fields of a record that differ even if both sides have the same record."""


@dataclass(slots=True)
class RecordDiff:
    """
    The comparison of two `record_count` fields.

    Attributes:
        differences: Differing, missing and duplicate records.
        same_extent: Whether both have the same offsets.
        captured: The offsets of the captured records, without control records.
        live: The offsets of the target's records, as captured offsets.
        starts: The untranslated first offsets of both sides; None if one has no records.
    """

    differences: list[Difference]
    same_extent: bool
    captured: Ranges
    live: Ranges
    starts: tuple[int, int] | None


def compare_records(
    path: str,
    topic: str | None,
    captured: bytes | None,
    live: bytes | None,
    log: PartitionOffsets | None,
    show_secrets: bool = False,
    producers: ProducerMap | None = None,
) -> RecordDiff:
    """
    Compare two `record_count` fields.

    Args:
        path: Path of the field.
        topic: The captured topic.
        captured: The captured field.
        live: The field of the target.
        log: The offset mapping of the partition.
        show_secrets: Whether credentials in Kafka's own records may be shown.
        producers: The mapping of producers; without it they are not compared.
    """
    translate = log.captured_offset if log else _identity
    captured_records, live_records = _ResponseRecords(), _ResponseRecords()
    captured_records.read(captured, _identity)
    differences = live_records.read(live, translate, path, log)
    differences += wrong_crcs(path, live, log, captured)
    before, after, begin = (
        captured_records.extent(),
        live_records.extent(),
        captured_records.first_batch_end(),
    )
    same_extent = before == after and captured_records.controls == live_records.controls
    for first in sorted(captured_records.batches.keys() & live_records.batches.keys()):
        pair = captured_records.batches[first], live_records.batches[first]
        if producers is not None and log is not None:
            headers, known = (pair[0].header, pair[1].header), (log.appended, producers)
            differences += compare_producers(f"{path}[{first}]", *headers, *known)
        if has_equal_payload(pair[0].data, pair[0].header, pair[1].data, pair[1].header):
            differences += _headers(f"{path}[{first}]", *pair)
            del captured_records.batches[first], live_records.batches[first]
    captured_records.materialise(after)
    live_records.materialise(before)
    secret = "" if show_secrets else topic or ""
    for offset in sorted(captured_records.rows.keys() & live_records.rows.keys()):
        at = f"{path}[{offset}]"
        differences += _record(at, captured_records.rows[offset], live_records.rows[offset], secret)
    differences += _missing_records(path, before, after, begin, log)
    starts = None
    if captured_records.start is not None and live_records.start is not None:
        starts = captured_records.start, live_records.start
    return RecordDiff(differences, same_extent, before, after, starts)


def wrong_crcs(
    path: str, live: bytes | None, log: PartitionOffsets | None, captured: bytes | None = None
) -> Iterator[Difference]:
    """
    Yield the batches of the target with a wrong CRC, which clients refuse.

    Args:
        path: Path of the field.
        live: The field of the target.
        log: The offset mapping of the partition.
        captured: The captured field: batches that are damaged there as well are no difference.
    """
    found = _damaged(live, log.captured_offset if log else _identity)
    for first in sorted(found - _damaged(captured, _identity)) if found else ():
        yield Difference(f"{path}[{first}].crc", "right", "wrong")


def _damaged(data: bytes | None, translate: Callable[[int], int]) -> set[int]:
    """Return the first offsets of batches, and of messages of magic 0 and 1, with a wrong CRC."""
    found = set()
    for header in batch_headers(data) if data else ():
        assert data is not None
        if header.producer is not None:
            if not has_right_crc(data, header.start, header.end):
                found.add(translate(header.base_offset))
        elif not is_truncated(data, header):
            batches = parse_records(data[header.start :])
            damaged = (each.records for each in batches if not getattr(each, "crc_ok", True))
            found.update(translate(each[0].offset) for each in damaged if each)
    return found


def data_offsets(
    data: bytes | None, log: PartitionOffsets | None = None, *, controls: bool = False
) -> Ranges:
    """
    Return the offsets of the records in a `record_count` field.

    Args:
        data: The field.
        log: For a field of the target: the mapping to captured offsets.
        controls: Whether control records count too.
    """
    side = _ResponseRecords()
    side.read(data, log.captured_offset if log else _identity)
    found = side.extent()
    for offset in sorted(side.controls) if controls else ():
        found.add(offset, offset + 1)
    return found


class _Batch(NamedTuple):
    """A batch of records with consecutive offsets."""

    header: BatchHeader
    data: bytes
    offsets: Range

    def time_at(self, at: int) -> int:
        begin = self.header.start + at
        return int.from_bytes(self.data[begin : begin + 8], "big", signed=True)


class _Record(NamedTuple):
    """A record; `is_appended`: its timestamp is LogAppendTime, set by the broker."""

    row: Row
    is_appended: bool


@dataclass(slots=True)
class _ResponseRecords:
    """
    The records of one response, by captured offsets.

    Attributes:
        batches: Batches that need not be decoded, by their first offset.
        rows: The records of all others.
        controls: The offsets of control batches.
        start: The untranslated offset of the first record; None without any.
    """

    batches: dict[int, _Batch] = field(default_factory=dict)
    rows: dict[int, _Record] = field(default_factory=dict)
    controls: set[int] = field(default_factory=set)
    start: int | None = None

    def read(
        self,
        data: bytes | None,
        translate: Callable[[int], int],
        path: str = "",
        log: PartitionOffsets | None = None,
    ) -> list[Difference]:
        """Read the batches of a field; return the duplicates."""
        duplicates: list[Difference] = []
        for header in batch_headers(data) if data else ():
            assert data is not None
            if is_truncated(data, header):
                continue
            first = translate(header.base_offset)
            is_control = bool(header.attributes & CONTROL)
            if log is not None and not is_control and header.producer is not None:
                appended_at = log.appended.live_at(first)
                if appended_at is not None and appended_at != header.base_offset:
                    duplicates.append(
                        _duplicate(
                            path, first, header, f"although they were appended at {appended_at}"
                        )
                    )
                    continue
            if first in self.batches:
                duplicates.append(_duplicate(path, first, header, RETURNED_TWICE))
            self._begin_at(header.base_offset)
            end = translate(header.base_offset + header.offset_count - 1) + 1
            if (
                header.producer is not None
                and header.record_count == header.offset_count == end - first
            ):
                self.batches[first] = _Batch(header, data, Range(first, end))
                if is_control:
                    self.controls.add(first)
            else:
                self._add_rows(data[header.start : header.end], translate)
        return duplicates

    def _begin_at(self, offset: int) -> None:
        self.start = offset if self.start is None else min(self.start, offset)

    def _add_rows(self, data: bytes, translate: Callable[[int], int]) -> None:
        for batch in parse_records(data):
            is_appended = bool(getattr(batch, "attributes", 0) & TIMESTAMP_TYPE)
            for row in iter_records([batch]):
                offset = translate(row.offset)
                self.rows[offset] = _Record(row, is_appended)
                self._begin_at(row.offset)
                if row.control:
                    self.controls.add(offset)

    def materialise(self, others: Ranges) -> None:
        """Decode the batches that have offsets in common with `others`, and control batches."""
        for first, batch in sorted(self.batches.items()):
            if first in self.controls or any(others.within(*batch.offsets)):
                del self.batches[first]
                data = batch.data[batch.header.start : batch.header.end]
                self._add_rows(data, partial(add, first - batch.header.base_offset))

    def first_batch_end(self) -> int:
        """Return the end of the first batch or of leading rows; if rows follow, the batch start."""
        if not self.batches:
            return max(self.rows, default=-1) + 1
        first = min(self.batches)
        if not self.rows:
            return self.batches[first].offsets.end
        return max(self.rows) + 1 if min(self.rows) < first else first

    def extent(self) -> Ranges:
        """Return the offsets of the records, without control records."""
        found = Ranges()
        for first, batch in self.batches.items():
            if first not in self.controls:
                found.add(*batch.offsets)
        for offset, record in self.rows.items():
            if not record.row.control:
                found.add(offset, offset + 1)
        return found


def _identity(offset: int) -> int:
    return offset


def _duplicate(path: str, first: int, header: BatchHeader, why: str) -> Difference:
    """Return the difference for records of the target that are duplicates."""
    captured_range, live_range = (
        Range(start, start + max(header.offset_count, 1)) for start in (first, header.base_offset)
    )
    description = f"{_count(live_range)} more, at {live_range} of the target, {why}"
    return Difference(f"{path}[{captured_range}]", _count(captured_range), description)


def _headers(path: str, captured: _Batch, live: _Batch) -> Iterator[Difference]:
    """Yield the differences of timestamps in the headers of two batches with equal records."""
    flags = captured.header.attributes, live.header.attributes
    types = [timestamp_type(each) for each in flags]
    if flags[0] & CONTROL or (flags[0] | flags[1]) & DELETE_HORIZON:
        return
    if types[0] != types[1]:
        yield Difference(f"{path}.timestamp_type", types[0], types[1])
        return
    at = _NEWEST_TIME if flags[0] & TIMESTAMP_TYPE else _BASE_TIME
    yield from _times(path, captured.time_at(at), live.time_at(at), bool(flags[0] & TIMESTAMP_TYPE))


def _times(path: str, before: int, after: int, is_appended: bool) -> Iterator[Difference]:
    """Yield a difference of timestamps; for LogAppendTime, only if just one of them is set."""
    if before != after and not (is_appended and (before in _UNSET) == (after in _UNSET)):
        yield Difference(f"{path}.{_TIMES}", before, after)


def _missing_records(
    path: str, before: Ranges, after: Ranges, begin: int, log: PartitionOffsets | None
) -> Iterator[Difference]:
    """
    Yield captured records missing on the target before others that it returns.

    Args:
        path: Path of the field.
        before: The captured offsets.
        after: The offsets of the target.
        begin: End of the first captured batch, which may begin before the fetch offset.
        log: The offset mapping of the partition.
    """
    if not len(before) or not len(after):
        return
    if after.end <= before.start or before.end <= after.start:
        yield Difference(path, _extent(before), _extent(after))
        return
    for hole in before.without(after):
        is_requested = hole.start > before.start or hole.end >= begin
        excused = log is not None and log.appended.is_unwritten(*hole)
        if hole.start < after.end and is_requested and not excused:
            yield Difference(
                f"{path}[{hole}]", _count(hole), "no records, although later ones were returned"
            )


def _count(offsets: Range) -> str:
    return f"{offsets.size:,} record{'s' * (offsets.size != 1)}"


def _extent(offsets: Ranges) -> str:
    count = f"{offsets.size:,} record{'s' * (offsets.size != 1)}"
    return f"{count}, offsets {offsets.start} to {offsets.end - 1}"


def _record(path: str, before: _Record, after: _Record, topic: str) -> Iterator[Difference]:
    """Yield the differences of two records; contents of control records are ignored."""
    captured, live = before.row, after.row
    names = ("control",) if captured.control and live.control else _COMPARED
    if any(getattr(captured, name) != getattr(live, name) for name in names):
        shown = [_shown(row, topic) for row in (captured, live)]
        for name in names:
            if getattr(captured, name) != getattr(live, name):
                yield Difference(f"{path}.{name}", shown[0][name], shown[1][name])
    if captured.control or captured.timestamp_ms is None or live.timestamp_ms is None:
        return  # magic 0 has no timestamps
    if before.is_appended != after.is_appended:
        types = [timestamp_type(each.is_appended and TIMESTAMP_TYPE) for each in (before, after)]
        yield Difference(f"{path}.timestamp_type", types[0], types[1])
    else:
        yield from _times(path, captured.timestamp_ms, live.timestamp_ms, before.is_appended)


def _shown(row: Row, topic: str) -> dict[str, Any]:
    record: dict[str, Any] = {"key": row.key, "value": row.value}
    if topic:
        mask_record_row(topic, record)
    return {
        "key": text_or_hex(record["key"]),
        "value": text_or_hex(record["value"]),
        "headers": [[key, text_or_hex(value)] for key, value in row.headers],
        "control": row.control,
    }
