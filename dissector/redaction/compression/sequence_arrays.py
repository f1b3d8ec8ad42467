"""The columns of sequences: what blocks of lz4 and snappy consist of."""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel.arrays import I64

SNAPPY, LZ4 = 2, 3
"""Numbers of the codecs."""

MIN_MATCH = 4


class Sequences(NamedTuple):
    """
    Sequences of literals, and of bytes that are copied behind them.

    Attributes:
        literals: Number of literals of each.
        match: Number of bytes copied; 0 only in the last sequence.
        offset: Distance of the copied bytes.
        after: The number of the sequence behind each.
    """

    literals: I64
    match: I64
    offset: I64
    after: I64
