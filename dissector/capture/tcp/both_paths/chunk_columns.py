"""Columns of the rows of `Chunks` while they are written."""

from __future__ import annotations

CONNECTION, START, LENGTH, PACKET, TIME_NS, RELEASE = range(6)
"""Rows of `ChunkArrays.wide`: columns of `Chunks`."""

SIDE, KIND, ORIGIN = range(3)
"""Rows of `ChunkArrays.narrow`."""

MAX_ROWS_PER_SEGMENT = 2
"""The most rows that one in-order segment yields."""
