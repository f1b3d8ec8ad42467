"""
Finds messages with lists in which two items may have the same key, on the tape.

Keys are compared by 64-bit digests. Two keys with the same digest count as the same key, so a
message without equal digests has none. The digests differ in each process, so that no capture can
be made to have equal ones.
"""

from __future__ import annotations

from secrets import randbits
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from conform.screens.layout_table import LayoutColumns
from dissector.engine.tables.exchange_table import Exchanges
from dissector.engine.tape.tape import Tape

Ints: TypeAlias = NDArray[np.int64]
Digests: TypeAlias = NDArray[np.uint64]

_SEED = np.uint64(randbits(64))
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(32)


def messages_with_repeats(table: Exchanges, tape: Tape, at: Ints, layouts: LayoutColumns) -> Ints:
    """
    Return the messages in which two items of a list may be equal, or a key is null or zero.

    `at` are the rows of the fields in the columns of layouts.
    """
    rows = np.flatnonzero(layouts.list_of[at])
    if not len(rows):
        return rows
    field, value = at[rows], tape.value[rows]
    digest = value.astype(np.uint64)
    has_content = layouts.has_content[field]
    digest[has_content] = content_digests(table, tape, rows[has_content])
    is_empty = has_content & ((value <= 0) | (digest == 0))
    part = mixed(digest + mixed(field))
    # The parts of an item's key, which other lists may separate, are added.
    owner = np.stack([tape.message[rows], tape.item[rows]], axis=1).astype(np.int64)
    _, first, index = np.unique(
        owner[:, 0] << 32 | owner[:, 1], return_index=True, return_inverse=True
    )
    key = np.zeros(len(first), np.uint64)
    np.add.at(key, index, part)
    for place in (layouts.list_of[field], tape.around[rows], tape.message[rows]):
        key = mixed(key + mixed(place[first]))
    message = tape.message[rows][first]
    order = np.argsort(key)
    is_repeated = key[order][1:] == key[order][:-1]
    repeated: Ints = np.concatenate([message[order][1:][is_repeated], tape.message[rows][is_empty]])
    return repeated


def mixed(values: NDArray[Any]) -> Digests:
    """Return digests of numbers."""
    digests: Digests = (values.astype(np.uint64) + _SEED) * _FACTOR
    digests ^= digests >> _FOLD
    return digests * _FACTOR


def content_digests(table: Exchanges, tape: Tape, rows: Ints) -> Digests:
    """Return digests of texts and ids; 0 for what has no byte but 0."""
    digests = np.zeros(len(rows), np.uint64)
    start, lengths = tape.start[rows], np.maximum(tape.value[rows], 0)
    border = len(table.data)
    for source, chosen, base in (
        (table.data, start < border, 0),
        (table.carry_over, start >= border, border),
    ):
        at = np.flatnonzero(chosen & (lengths > 0))
        if not len(at):
            continue
        length = lengths[at]
        begin = np.cumsum(length) - length
        place = np.arange(int(length.sum())) - np.repeat(begin, length)
        content = source[np.repeat(start[at] - base, length) + place].astype(np.uint64)
        digests[at] = np.add.reduceat(content * mixed(place), begin)
    return digests
