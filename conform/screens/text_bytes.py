"""Finds texts with certain bytes, on the tape."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from conform.registry.screened_columns import Bools
from dissector.engine.tables.exchange_table import Exchanges
from dissector.engine.tape.tape import Tape

Ints: TypeAlias = NDArray[np.int64]


def text_bytes_are(table: Exchanges, tape: Tape, rows: Ints, wanted: Bools) -> Bools:
    """Return which texts of a tape have one of the wanted bytes; `wanted` has a flag for each."""
    found = np.zeros(len(rows), np.bool_)
    border, start, length = len(table.data), tape.start[rows], np.maximum(tape.value[rows], 0)
    for source, chosen, base in (
        (table.data, start < border, 0),
        (table.carry_over, start >= border, border),
    ):
        texts = np.flatnonzero(chosen & (length > 0))
        lengths = length[texts]
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        at = np.repeat(start[texts] - base - (ends - lengths), lengths) + np.arange(total)
        hits = np.flatnonzero(wanted[source[at]])
        found[texts[np.searchsorted(ends, hits, "right")]] = True
    return found
