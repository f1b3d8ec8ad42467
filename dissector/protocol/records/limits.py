"""
Limits on the cost of a `records` field, against hostile batches.

All limits follow from the bytes of the field as captured. So the output of all messages of a
capture is limited too, in proportion to its size, and no row depends on windows, files or order.
docs/limits.md has the figures, and why no honest producer exceeds them.
"""

from __future__ import annotations

from dataclasses import dataclass

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """
    Limits for one `records` field; a batch beyond them has a problem.

    Attributes:
        max_decompressed_bytes: Output of all batches of the field together: five times the largest
            frame (100 MiB). While chunks are joined, twice that is in memory.
        max_ratio: Output bytes for one compressed byte of a batch. Snappy can reach 21, lz4 255 and
            gzip 1,032, so only zstd (up to 32,768) ever exceeds it.
        free_bytes: Up to here the ratio of a batch does not count.
        field_bytes: Output that a field may have in any case. A field with a batch has at least 61
            bytes, so all fields of a capture together keep to about `field_ratio` of its bytes,
            too.
        field_ratio: Output bytes for one byte of a field,
        field_ratio_bytes: up to here; beyond, `large_field_ratio` for all of them.
        large_field_ratio: See there.
        max_nesting: Depth of nested compressed message sets.
        max_records: Records, and batches, that become Python objects (some 300 bytes each).
        free_records: Records that a field may have in any case,
        records_a_byte: and more for each of its bytes. Records of a batch differ in their offsets:
            zstd needs half a byte for each of equal ones, the others at least one,
        many_records: up to here; beyond, one for each `bytes_a_record`.
        bytes_a_record: See there.
        kept_records: Of a field with too many records, this many are kept.
    """

    max_decompressed_bytes: int = 512 * MIB
    max_ratio: int = 2000
    free_bytes: int = 32 * MIB
    field_bytes: int = 64 * KIB
    field_ratio: int = 1100
    field_ratio_bytes: int = 32 * MIB
    large_field_ratio: int = 64
    max_nesting: int = 2
    max_records: int = 4_000_000
    free_records: int = 200
    records_a_byte: int = 3
    many_records: int = 150_000
    bytes_a_record: int = 16
    kept_records: int = 10_000

    def bytes_of(self, size: int) -> int:
        """Return the maximal output of a field of this size in bytes."""
        small = min(self.field_ratio * size, self.field_ratio_bytes)
        most = max(self.field_bytes, small, self.large_field_ratio * size)
        return min(most, self.max_decompressed_bytes)

    def records_of(self, size: int) -> int:
        """Return the maximum number of records, and of batches, in a field of this size."""
        few = self.free_records + self.records_a_byte * size
        many = self.many_records + size // self.bytes_a_record
        return min(few, many, self.max_records)


DEFAULT = Limits()


class Budget:
    """
    The remaining limits while one field is read.

    Attributes:
        limits: The limits.
        max_records: Maximum number of records in the field.
        output_bytes: Remaining bytes of output.
        records: Remaining number of records.
    """

    __slots__ = ("limits", "max_records", "output_bytes", "records")

    def __init__(self, limits: Limits, field_bytes: int | None = None) -> None:
        """Start a field of this size; None: of any."""
        self.limits = limits
        if field_bytes is None:
            self.output_bytes, self.max_records = limits.max_decompressed_bytes, limits.max_records
        else:
            self.output_bytes = limits.bytes_of(field_bytes)
            self.max_records = limits.records_of(field_bytes)
        self.records = self.max_records

    def output_for(self, compressed_bytes: int) -> int:
        """Return the maximum number of bytes the compressed input may be decompressed to."""
        if self.output_bytes <= self.limits.free_bytes:
            return self.output_bytes
        by_ratio = max(self.limits.free_bytes, self.limits.max_ratio * compressed_bytes)
        return min(self.output_bytes, by_ratio)
