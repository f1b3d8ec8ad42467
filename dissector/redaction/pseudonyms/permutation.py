"""
Keyed permutations of the numbers below any bound: one to one without a table.

A Feistel network over the next even number of bits, with an output permuted again until it is in
the domain ("cycle walking"), with SHAKE-256 as round function.

Source: NIST SP 800-38G (format-preserving encryption), Black and Rogaway, "Ciphers with Arbitrary
Finite Domains" (2002).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import shake_256

_ROUNDS = 10
_CACHED = 1 << 10
_MAX_WALK = 100_000
"""Steps of a walk; the share of legal values is never so small that a cycle takes as many."""


class Permutation:
    """
    Keyed permutations, a different one for each label.

    Attributes:
        head: Returns the bytes before the data in `digest` for a label: keyed.
    """

    def __init__(self, key: bytes) -> None:
        self._key = shake_256(b"kafkashark redaction\0" + key).digest(32)
        self.head: Callable[[str], bytes] = lru_cache(_CACHED)(self._head)

    def digest(self, label: str, data: bytes, size: int) -> bytes:
        """Return `size` keyed bytes that depend on the data: the same for the same data."""
        return shake_256(self.head(label) + data).digest(size)

    def _head(self, label: str) -> bytes:
        name = label.encode()
        return b"".join((self._key, len(name).to_bytes(2, "big"), name))

    def permute(
        self, label: str, value: int, bound: int, is_legal: Callable[[int], bool] | None = None
    ) -> int:
        """
        Return the image of a value below `bound`.

        Args:
            label: Selects the permutation.
            value: 0 to `bound - 1`, and legal.
            bound: The number of values.
            is_legal: Limits the permutation to some values.
        """
        half = max((max(bound - 1, 1).bit_length() + 1) // 2, 1)
        for _ in range(_MAX_WALK):
            value = self._feistel(f"{label} {bound}", value, half)
            if value < bound and (is_legal is None or is_legal(value)):
                return value
        raise AssertionError("the walk ends where it began, at a legal value")

    def _feistel(self, label: str, value: int, half: int) -> int:
        mask, size = (1 << half) - 1, (half + 7) // 8
        left, right = value >> half, value & mask
        for round_number in range(_ROUNDS):
            source = bytes((round_number,)) + right.to_bytes(size, "big")
            mixed = int.from_bytes(self.digest(label, source, size), "big") & mask
            left, right = right, left ^ mixed
        return left << half | right
