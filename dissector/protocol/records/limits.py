"""
How much a `records` field may cost: what a hostile batch can make us allocate.

All limits follow from the bytes of the field as captured. So what all messages of a capture may
give is limited too, in proportion to what is read, and no row depends on windows, files or order.
docs/limits.md has the figures, and why no honest producer meets them.
"""

from __future__ import annotations

from dataclasses import dataclass

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """
    Limits for one `records` field; what goes beyond becomes a problem of its batch.

    Attributes:
        max_decompressed_bytes: All that the batches of the field may give together: five times the
            largest frame (100 MiB). While pieces are joined, twice that is in memory.
        max_ratio: Bytes that one compressed byte of a batch may give. Snappy can reach 21, lz4 255
            and gzip 1,032, so only zstd (up to 32,768) ever meets it.
        free_bytes: Up to here the ratio of a batch does not count.
        field_bytes: What a field may give in any case. A field with a batch has at least 61 bytes,
            so all fields of a capture together keep to about `field_ratio` of its bytes, too.
        field_ratio: Bytes that one byte of a field may give,
        field_ratio_bytes: up to here; beyond, `large_field_ratio` for all of them.
        large_field_ratio: See there.
        max_nesting: Compressed message sets inside one another.
        max_records: Records, and batches, that become Python objects (some 300 bytes each).
        free_records: So many a field may have in any case,
        records_a_byte: and so many for each of its bytes. Records of a batch differ in their
            offsets: of equal ones zstd needs half a byte each, the others at least one,
        many_records: up to here; beyond, one for each `bytes_a_record`.
        bytes_a_record: See there.
        kept_records: Of a field with more records than it may have, so many are kept.
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
        """Return how many bytes a field of this size may give."""
        small = min(self.field_ratio * size, self.field_ratio_bytes)
        most = max(self.field_bytes, small, self.large_field_ratio * size)
        return min(most, self.max_decompressed_bytes)

    def records_of(self, size: int) -> int:
        """Return how many records, and batches, a field of this size may have."""
        few = self.free_records + self.records_a_byte * size
        many = self.many_records + size // self.bytes_a_record
        return min(few, many, self.max_records)


DEFAULT = Limits()


class Budget:
    """
    What is left of the limits while one field is read.

    Attributes:
        limits: The limits.
        max_records: How many records the field may have.
        output_bytes: How many bytes it may still give.
        records: How many records are left.
    """

    __slots__ = ("limits", "max_records", "output_bytes", "records")

    def __init__(self, limits: Limits, field_bytes: int | None = None) -> None:
        """Begin a field of this size; None: of any."""
        self.limits = limits
        if field_bytes is None:
            self.output_bytes, self.max_records = limits.max_decompressed_bytes, limits.max_records
        else:
            self.output_bytes = limits.bytes_of(field_bytes)
            self.max_records = limits.records_of(field_bytes)
        self.records = self.max_records

    def output_for(self, compressed_bytes: int) -> int:
        """Return how many bytes so much compressed input may give now."""
        by_ratio = max(self.limits.free_bytes, self.limits.max_ratio * compressed_bytes)
        return min(self.output_bytes, by_ratio)
