"""
The sizes of the canonical forms of messages, from the tape.

Nothing in a message is smaller than its canonical form. So the sum of all canonical sizes is that
of the message only if each length, count, tag and size is written with the fewest bytes, and if
nothing else is there, such as unknown tags. The tape tells the rest: that tags ascend, and that the
sizes of tagged fields are right.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from conform.screens.layout_table import LayoutColumns
from conform.screens.message_layout import ANY_VALUE, ZERO_ID, varint_sizes
from conform.screens.text_bytes import text_bytes_are
from dissector.engine.tables.exchange_table import Exchanges
from dissector.engine.tape.tape import Tape

Ints: TypeAlias = NDArray[np.int64]

NOT_CANONICAL = -1
"""In place of a size: no size is canonical."""

_NO_ZERO = np.arange(256) > 0


def canonical_sizes(
    table: Exchanges, tape: Tape, at: Ints, columns: LayoutColumns, layouts: Ints
) -> Ints:
    """
    Return the size of the canonical form of each message; NOT_CANONICAL with a tagged default.

    `at` are the rows of the fields in the columns of layouts.
    """
    size = columns.size[at] + columns.unit_size[at] * np.maximum(tape.value, 0)
    is_compact = columns.is_compact[at]
    size[is_compact] += varint_sizes(tape.value[is_compact] + 1)
    tagged = np.flatnonzero(columns.is_tagged[at])
    with_default = tape.message[:0]
    if len(tagged):
        # A tagged field is a run of rows: others are in none, or begin with a first row as well.
        first = np.flatnonzero(columns.tag_size[at[tagged]])
        row = tagged[first]
        content = np.add.reduceat(size[tagged], first)
        size[row] += columns.tag_size[at[row]] + varint_sizes(content)
        is_set = np.logical_or.reduceat(_is_set(table, tape, tagged, at, columns), first)
        with_default = tape.message[row[~is_set]]
    sums = np.bincount(tape.message, size, len(layouts)).astype(np.int64)
    sums += columns.base_size[layouts]
    sums[with_default] = NOT_CANONICAL
    return sums


def _is_set(
    table: Exchanges, tape: Tape, rows: Ints, at: Ints, columns: LayoutColumns
) -> NDArray[np.bool_]:
    """Return of which rows the value is surely not the default."""
    default, value = columns.default[at[rows]], tape.value[rows]
    is_set: NDArray[np.bool_] = (value != default) & (default != ANY_VALUE)
    ids = np.flatnonzero(default == ZERO_ID)
    is_set[ids] = text_bytes_are(table, tape, rows[ids], _NO_ZERO)
    return is_set
