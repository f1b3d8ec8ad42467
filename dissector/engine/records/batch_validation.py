"""
Whether anything is wrong inside the `records` fields of a window.

The batches are found, their CRCs checked, what is compressed decompressed by the libraries, and the
records read by a loop: no Python object for a record. What that does not know (payloads that no
producer writes) goes through `parse_records`, which all agree with.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.records import record_decoder
from dissector.engine.records.batch_scanner import find_batches
from dissector.engine.records.batch_table import INVALID, UNDECIDED
from dissector.engine.records.decompressor import iter_payloads

Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]
Bools: TypeAlias = NDArray[np.bool_]


def invalid_fields(
    data: Bytes, carry_over: Bytes, start: Ints, length: Ints, may_be_cut: Bools
) -> Bools:
    """
    Tell in which `records` fields the Python reader would find any problem.

    Args:
        data: The bytes of a window.
        carry_over: More bytes; their addresses go on where those of `data` end.
        start: Address of each field's content.
        length: Its bytes; a null field has none.
        may_be_cut: Whether the last batch may be cut off.
    """
    found = find_batches(data, carry_over, start, length, may_be_cut, message_sets=True)
    for these in iter_payloads(data, carry_over, found, np.arange(len(found))):
        record_decoder.check_records(data, carry_over, found, these)
    wrong: Bools = found.state == INVALID
    left = np.flatnonzero(found.state == UNDECIDED).tolist()
    return (
        _validate_by_codec(left, data, carry_over, start, length, may_be_cut, wrong)
        if left
        else wrong
    )


def _validate_by_codec(
    left: list[int],
    data: Bytes,
    held: Bytes,
    start: Ints,
    length: Ints,
    may_be_cut: Bools,
    wrong: Bools,
) -> Bools:
    """Ask the Python reader about some fields."""
    from dissector.protocol.records.field import parse_records

    for field in left:
        source, at = data, int(start[field])
        if at >= len(data):
            source, at = held, at - len(data)
        content = source[at : at + int(length[field])].tobytes()
        batches = parse_records(content, may_be_cut=bool(may_be_cut[field]))
        wrong[field] = any(batch.problems for batch in batches)
    return wrong
