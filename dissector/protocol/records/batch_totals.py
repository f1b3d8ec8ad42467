"""What the headers of batches say of a `records` field: no record is read or decompressed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dissector.protocol.records import layout
from dissector.protocol.records.batch import has_right_crc
from dissector.protocol.records.compression import codec_name

_MOST_BATCHES = 1000


class BatchTotals(NamedTuple):
    """
    Totals of a `records` field.

    Attributes:
        records: Number of records; of a compressed message of magic 0 or 1, one.
        codec: Compression of the first batch.
        is_cut: Whether the field has more: a batch that is cut off, or many.
        batches: Number of batches.
        first_offset: Offset of the first record, as written; None without a batch.
        last_offset: Offset of the last one.
    """

    records: int
    codec: str
    is_cut: bool
    batches: int = 0
    first_offset: int | None = None
    last_offset: int | None = None


class _Batch(NamedTuple):
    start: int
    end: int
    header: Mapping[str, Any]

    @property
    def is_batch(self) -> bool:
        return "records_count" in self.header

    @property
    def offsets(self) -> tuple[int, int]:
        """The first and the last offset."""
        first = self.header["base_offset" if self.is_batch else "offset"]
        return first, first + self.header.get("last_offset_delta", 0)


def batch_totals(data: bytes) -> BatchTotals:
    """Return the totals of a `records` field by the headers of its batches."""
    found = list(_batches(data))
    if not found:
        return BatchTotals(0, "none", bool(data))
    first, last = found[0], found[-1]
    return BatchTotals(
        sum(max(0, each.header.get("records_count", 1)) for each in found),
        codec_name(first.header["attributes"]) or "none",
        last.end < len(data),
        len(found),
        first.offsets[0],
        last.offsets[1],
    )


def crcs_are_right(data: bytes) -> bool:
    """Return whether the CRCs of all batches of a `records` field fit their bytes."""
    return all(
        has_right_crc(data, each.start, each.end)
        if each.is_batch
        else each.header["crc"] == zlib.crc32(data[each.start + layout.MESSAGE_CRC_FROM : each.end])
        for each in _batches(data)
    )


def _batches(data: bytes) -> Iterator[_Batch]:
    """Yield the whole batches of a field, up to a limit."""
    start = batches = 0
    while start + layout.MAGIC_AT < len(data) and batches < _MOST_BATCHES:
        size = int.from_bytes(data[start + 8 : start + layout.LENGTH_END], "big", signed=True)
        end = start + layout.LENGTH_END + size
        is_batch = data[start + layout.MAGIC_AT] >= 2
        header = layout.BATCH if is_batch else layout.MESSAGE_0
        if end > len(data) or end < start + header.size:
            return
        values = header.unpack_from(data, start)
        yield _Batch(start, end, dict(zip(header.names, values, strict=True)))
        start, batches = end, batches + 1
