"""How much a `records` field may cost: what a hostile batch can make us allocate."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """
    Limits for one `records` field; what goes beyond becomes a problem of its batch.

    Attributes:
        max_decompressed_bytes: All that the batches of the field may give together: five times the
            largest frame (100 MiB). While pieces are joined, twice that is in memory.
        max_ratio: Bytes that one compressed byte may give. Snappy can reach 21, lz4 255 and gzip
            1,032, so only zstd (up to 32,768) ever meets it.
        free_bytes: Up to here the ratio is not asked: a batch of equal values is small and honest.
        max_nesting: Compressed message sets inside one another.
        max_records: Records, and batches, that become Python objects (some 300 bytes each).
    """

    max_decompressed_bytes: int = 512 * MIB
    max_ratio: int = 2000
    free_bytes: int = 32 * MIB
    max_nesting: int = 2
    max_records: int = 4_000_000


DEFAULT = Limits()


class Budget:
    """What is left of the limits while one field is read."""

    __slots__ = ("limits", "output_bytes", "records")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.output_bytes = limits.max_decompressed_bytes
        self.records = limits.max_records

    def output_for(self, compressed_bytes: int) -> int:
        """Return how many bytes so much compressed input may give now."""
        by_ratio = max(self.limits.free_bytes, self.limits.max_ratio * compressed_bytes)
        return min(self.output_bytes, by_ratio)
