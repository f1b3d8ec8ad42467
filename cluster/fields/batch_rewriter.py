"""Record batches: replacing producer ids and sequences, and comparing records."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from struct import Struct
from typing import NamedTuple

from cluster.fields.refusal import RewriteError
from dissector.protocol.field_roles import Role
from dissector.protocol.records import (
    LegacyBatch,
    LegacyRecord,
    RecordBatch,
    new_batch,
    parse_records,
)
from dissector.protocol.records.batch import with_crc
from dissector.protocol.records.compression import CODEC_MASK, decompress
from dissector.protocol.records.layout import CONTROL, TRANSACTIONAL

PRODUCER_ROLES = (Role.PRODUCER_ID, Role.PRODUCER_EPOCH, Role.SEQUENCE)
"""Roles of the values replaced in batches."""

_BATCH_START = Struct(">qi4xb4xhi")
"""Base offset, length, magic, attributes, last offset delta."""
_PRODUCER_AND_COUNT = Struct(">qhii")
"""Producer id, epoch, base sequence, number of records."""
_PRODUCER_FIELDS = Struct(">qhi")
_LENGTH_END, _MAGIC_AT, _PRODUCER_AT, _COUNT_AT, _HEADER_END = 12, 16, 43, 57, 61
_MAGIC = 2


_Contents = list[tuple[int, object]]


class Producer(NamedTuple):
    """Producer id, epoch and base sequence of a batch of magic 2; -1 each without a producer."""

    producer_id: int
    epoch: int
    sequence: int


class BatchHeader(NamedTuple):
    """
    The header of one batch of a `record_count` field.

    Attributes:
        start: Position of the batch in the field.
        end: Position after it.
        producer: Its producer; None if it is not a complete batch of magic 2.
        record_count: The record count of its header.
        base_offset: Its base offset.
        offset_count: The number of offsets it covers.
        attributes: Codec and flags.
    """

    start: int
    end: int
    producer: Producer | None = None
    record_count: int = 0
    base_offset: int = -1
    offset_count: int = 0
    attributes: int = 0


def batch_headers(data: bytes) -> Iterator[BatchHeader]:
    """Yield the header of each batch of a records field; unreadable rest counts as a batch."""
    start, size = 0, len(data)
    while start + _HEADER_END <= size:
        offset, length, magic, attributes, delta = _BATCH_START.unpack_from(data, start)
        end = start + _LENGTH_END + length
        if magic != _MAGIC or not start + _HEADER_END <= end <= size:
            break
        producer_id, epoch, sequence, count = _PRODUCER_AND_COUNT.unpack_from(
            data, start + _PRODUCER_AT
        )
        producer = Producer(producer_id, epoch, sequence)
        yield BatchHeader(start, end, producer, count, offset, delta + 1, attributes)
        start = end
    if start < size:
        yield BatchHeader(start, size)


def rewrite_batches(data: bytes, substitute: Callable[[Producer, int], Producer]) -> bytes:
    """
    Return a `record_count` field with other producers; payloads stay, CRCs are updated.

    Args:
        data: The field.
        substitute: Maps a producer and its number of records to the new producer.

    Raises:
        Refused: A number of the target does not fit its field in the batch.
    """
    out: list[bytes] = []
    is_changed = False
    for header in batch_headers(data):
        batch, producer = data[header.start : header.end], header.producer
        if producer is not None and producer.producer_id >= 0:
            new = substitute(producer, header.record_count)
            if new != producer:
                is_changed = True
                batch = with_producer(batch, new)
        out.append(batch)
    return b"".join(out) if is_changed else data


def with_producer(batch: bytes, new: Producer) -> bytes:
    """
    Replace the producer in the header of a batch, and update the CRC.

    Raises:
        Refused: A number does not fit its field.
    """
    try:
        numbers = _PRODUCER_FIELDS.pack(*new)
    except struct.error as error:
        raise RewriteError(f"{new} does not fit a record batch: {error}") from None
    return with_crc(b"".join((batch[:_PRODUCER_AT], numbers, batch[_COUNT_AT:])))


def count_records(data: bytes | None) -> int:
    """Return the number of records in a Produce request, and so of offsets."""
    if not data:
        return 0
    found = list(batch_headers(data))
    if all(header.producer is not None for header in found):
        return sum(header.record_count for header in found)
    return sum(len(batch.records) for batch in parse_records(data))


def to_record_batch(data: bytes) -> bytes:
    """
    Convert message sets (magic 0, 1) to the single record batch that Produce requires from v3 on.

    Raises:
        Refused: They can't be decoded.
    """
    batches = parse_records(data, may_be_cut=False)
    if all(isinstance(batch, RecordBatch) for batch in batches):
        return data
    records: list[LegacyRecord] = []
    codec = "none"
    for batch in batches:
        if not isinstance(batch, LegacyBatch) or batch.problems:
            raise RewriteError(
                "message sets that can't be decoded can't be converted to a record batch"
            )
        records += batch.records
        codec = codec if batch.codec == "none" else batch.codec
    return new_batch(records, codec=codec).to_bytes()


class MatchedRun(NamedTuple):
    """A run of equal records: captured base offset, live base offset, and number of records."""

    captured: int
    live: int
    length: int


def match_records(captured: bytes | None, live: bytes | None) -> list[MatchedRun]:
    """Return the runs of records with equal content in two `record_count` fields, in order."""
    if not captured or not live:
        return []
    found = _match_batches(captured, live)
    return _match_contents(_contents(captured), _contents(live)) if found is None else found


def _match_batches(captured: bytes, live: bytes) -> list[MatchedRun] | None:
    """Compare batch by batch, by payload; return None if the batches do not correspond."""
    out: list[MatchedRun] = []
    for captured_header, live_header in zip(
        batch_headers(captured), batch_headers(live), strict=False
    ):
        if is_truncated(captured, captured_header) or is_truncated(live, live_header):
            break
        if not has_equal_payload(captured, captured_header, live, live_header):
            return None
        out.append(
            MatchedRun(
                captured_header.base_offset, live_header.base_offset, captured_header.offset_count
            )
        )
    return out


def is_truncated(data: bytes, header: BatchHeader) -> bool:
    """Return whether a batch is truncated by the size limit of a response (KIP-74)."""
    is_short = header.end - header.start <= _MAGIC_AT
    return header.producer is None and (is_short or data[header.start + _MAGIC_AT] == _MAGIC)


def has_equal_payload(
    captured: bytes, captured_header: BatchHeader, live: bytes, live_header: BatchHeader
) -> bool:
    """Return whether two batches of magic 2 have the same records, apart from their headers."""
    if (
        captured_header.producer is None
        or live_header.producer is None
        or captured_header.offset_count != live_header.offset_count
    ):
        return False
    if (captured_header.attributes ^ live_header.attributes) & (CONTROL | TRANSACTIONAL):
        return False
    payloads = (
        captured[captured_header.start + _HEADER_END : captured_header.end],
        live[live_header.start + _HEADER_END : live_header.end],
    )
    codecs = [each.attributes & CODEC_MASK for each in (captured_header, live_header)]
    if codecs[0] == codecs[1] and payloads[0] == payloads[1]:
        return True
    if captured_header.record_count != live_header.record_count or not any(codecs):
        return False
    plain = [_decompressed(*each) for each in zip(codecs, payloads, strict=True)]
    return plain[0] is not None and plain[0] == plain[1]


def _decompressed(codec: int, payload: bytes) -> bytes | None:
    """Return the decompressed payload; None if it can't be decompressed."""
    if not codec:
        return payload
    data, problem, _ = decompress(codec, payload)
    return None if problem else data


def _match_contents(captured: _Contents, live: _Contents) -> list[MatchedRun]:
    """Match equal records in the order of both, and join those contiguous on both sides."""
    places: dict[object, list[int]] = {}
    for index in range(len(live) - 1, -1, -1):
        places.setdefault(live[index][1], []).append(index)
    out: list[MatchedRun] = []
    next_index = 0
    for offset, content in captured:
        candidates = places.get(content, [])
        while candidates and candidates[-1] < next_index:
            candidates.pop()
        if not candidates:
            continue
        next_index = candidates.pop() + 1
        live_offset = live[next_index - 1][0]
        last = out[-1] if out else None
        if last and (offset - last.captured, live_offset - last.live) == (last.length, last.length):
            out[-1] = last._replace(length=last.length + 1)
        else:
            out.append(MatchedRun(offset, live_offset, 1))
    return out


def _contents(data: bytes) -> _Contents:
    """Return (offset, (key, value, headers)) of all readable data records."""
    return [
        (record.offset, (record.key, record.value, tuple(record.headers)))
        for batch in parse_records(data)
        for record in batch.records
        if not (isinstance(batch, RecordBatch) and batch.control)
    ]
