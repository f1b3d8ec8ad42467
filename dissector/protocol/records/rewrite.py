"""
Changes the header of a batch for another broker without touching its compressed records.

A replay must change header fields that are assigned by brokers: producer id, epoch and sequence.
The CRC is updated.
"""

from __future__ import annotations

from dissector.errors import EncodeError
from dissector.protocol.records import layout
from dissector.protocol.records.batch import RecordBatch, with_crc


def rewrite_batch(
    batch: RecordBatch | bytes,
    *,
    base_offset: int | None = None,
    partition_leader_epoch: int | None = None,
    producer_id: int | None = None,
    producer_epoch: int | None = None,
    base_sequence: int | None = None,
) -> bytes:
    """
    Return one batch of magic 2 with other header fields; None leaves a field unchanged.

    The CRC-32C is computed again only if a field that it covers has changed. Base offset and leader
    epoch are not covered, so that brokers can set them.

    Raises:
        EncodeError: The bytes are not exactly one batch of magic 2, or a number does not fit.

    Source: KIP-98, "the CRC covers the data from the attributes to the end of the batch".
    """
    old = batch if isinstance(batch, bytes) else batch.to_bytes()
    header = _header(old)
    before = layout.BATCH.pack(header)
    for name, value in (
        ("base_offset", base_offset),
        ("partition_leader_epoch", partition_leader_epoch),
        ("producer_id", producer_id),
        ("producer_epoch", producer_epoch),
        ("base_sequence", base_sequence),
    ):
        if value is not None:
            setattr(header, name, value)
    after = layout.BATCH.pack(header)
    new = after + old[layout.BATCH.size :]
    covered = slice(layout.BATCH_CRC_FROM, layout.BATCH.size)
    return with_crc(new) if before[covered] != after[covered] else new


def _header(data: bytes) -> RecordBatch:
    """Read the header of bytes that are exactly one batch of magic 2."""
    if len(data) < layout.BATCH.size:
        raise EncodeError(f"{len(data)} bytes are not a batch of magic 2", "batch_length")
    header = RecordBatch(*layout.BATCH.unpack_from(data))
    if header.magic != 2:
        raise EncodeError(f"magic is {header.magic}, only 2 has such a header", "magic")
    if header.batch_length + layout.LENGTH_END != len(data):
        raise EncodeError(
            f"batch_length is {header.batch_length}, there are {len(data)} bytes", "batch_length"
        )
    return header
