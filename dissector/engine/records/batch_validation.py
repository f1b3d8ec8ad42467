"""
Whether the `records` fields of a window hold anything invalid.

The batches are found, their CRCs checked, compressed payloads decompressed by the libraries, and
the records read by a kernel, without a Python object for a record. Payloads that the kernel does
not handle (no known producer writes them) go through `parse_records`, which defines validity.
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
    Return the `records` fields with problems according to the Python reader.

    Args:
        data: The bytes of a window.
        carry_over: Bytes carried over from earlier windows; their addresses continue those of
            `data`.
        start: Address of each field's content.
        length: Bytes of each field's content; 0 for null.
        may_be_cut: Whether the last batch may be cut off.
    """
    batches = find_batches(data, carry_over, start, length, may_be_cut, message_sets=True)
    for payloads in iter_payloads(data, carry_over, batches, np.arange(len(batches))):
        record_decoder.check_records(data, carry_over, batches, payloads)
    invalid: Bools = batches.state == INVALID
    undecided = np.flatnonzero(batches.state == UNDECIDED).tolist()
    return (
        _validate_by_codec(undecided, data, carry_over, start, length, may_be_cut, invalid)
        if undecided
        else invalid
    )


def _validate_by_codec(
    fields: list[int],
    data: Bytes,
    carry_over: Bytes,
    start: Ints,
    length: Ints,
    may_be_cut: Bools,
    invalid: Bools,
) -> Bools:
    """Set `invalid` for the given fields by the Python reader."""
    from dissector.protocol.records.field import parse_records

    for field in fields:
        source, at = data, int(start[field])
        if at >= len(data):
            source, at = carry_over, at - len(data)
        content = source[at : at + int(length[field])].tobytes()
        batches = parse_records(content, may_be_cut=bool(may_be_cut[field]))
        invalid[field] = any(batch.problems for batch in batches)
    return invalid
