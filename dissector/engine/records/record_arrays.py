"""The arrays that kernels of this room read and write, in groups."""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel.arrays import I64, U8, I64Table

CAPACITY, WRAPPED_LIMIT, MIN_MAGIC = range(3)
"""Indexes of `FieldArrays.limits`."""


class FieldArrays(NamedTuple):
    """
    The `records` fields to search for batches.

    Attributes:
        start: Address of each field's content.
        length: Its bytes; 0 for null.
        may_be_cut: Whether its last batch may be cut off.
        state: Receives its state.
        record_limit: Maximum number of records.
        limits: Columns of the output; records that all fields with wrappers may have; the lowest
            magic that is read.
    """

    start: I64
    length: I64
    may_be_cut: U8
    state: U8
    record_limit: I64
    limits: I64


class PayloadArrays(NamedTuple):
    """
    Batches with payloads to read.

    Attributes:
        table: The columns of all batches of the window; see `batch_table`.
        state: State of each field.
        batch: Numbers of the batches to read.
        start: Address of each payload.
        end: Address behind it.
        first: Row of its first record in the output, and the number of all rows.
    """

    table: I64Table
    state: U8
    batch: I64
    start: I64
    end: I64
    first: I64


class RecordArrays(NamedTuple):
    """The columns of records and of their headers; see `record_decoder.Records`."""

    records: I64Table
    headers: I64Table
