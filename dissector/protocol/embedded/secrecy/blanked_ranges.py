"""Ranges of bytes that are secret."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence


def overlaps_secret(ranges: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """
    Return whether bytes [start, end) overlap a range.

    Args:
        ranges: As returned by `masking.secret_ranges`: in order, and disjoint.
        start: Of the bytes.
        end: Of the bytes.
    """
    before_end = bisect_left(ranges, (end,))
    return before_end > 0 and ranges[before_end - 1][1] > start


def merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges in order, those that overlap as one, without empty ones."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if start >= end:
            continue
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
