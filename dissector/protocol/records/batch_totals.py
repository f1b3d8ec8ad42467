"""What the headers of batches say of a `records` field: no record is read or decompressed."""

from __future__ import annotations

from typing import NamedTuple

from dissector.protocol.records import layout
from dissector.protocol.records.compression import codec_name

_MOST_BATCHES = 1000


class BatchTotals(NamedTuple):
    """
    Totals of a `records` field.

    Attributes:
        records: Number of records; of a compressed message of magic 0 or 1, one.
        codec: Compression of the first batch.
        is_cut: Whether the field has more: a batch that is cut off, or many.
    """

    records: int
    codec: str
    is_cut: bool


def batch_totals(data: bytes) -> BatchTotals:
    """Return the totals of a `records` field by the headers of its batches."""
    records, codec, start, batches = 0, "", 0, 0
    while start + layout.MAGIC_AT < len(data) and batches < _MOST_BATCHES:
        size = int.from_bytes(data[start + 8 : start + layout.LENGTH_END], "big", signed=True)
        end = start + layout.LENGTH_END + size
        is_batch = data[start + layout.MAGIC_AT] >= 2
        header = layout.BATCH if is_batch else layout.MESSAGE_0
        if end > len(data) or end < start + header.size:
            break
        found = dict(zip(header.names, header.unpack_from(data, start), strict=True))
        records += max(0, found.get("records_count", 1))
        codec = codec or codec_name(found["attributes"])
        start, batches = end, batches + 1
    return BatchTotals(records, codec or "none", start < len(data))
