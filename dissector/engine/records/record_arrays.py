"""The arrays that kernels of this room read and write, in groups."""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel.arrays import I64, U8
from dissector.kernel.named_rows import NamedRow


class ScanLimits(NamedRow):
    """
    What the scanner reads.

    Attributes:
        wrapped_records: Records that all fields with wrappers may have.
        min_magic: The lowest magic that is read.
    """

    wrapped_records: int
    min_magic: int


class ScanProgress(NamedRow):
    """
    How far the scanner came.

    Attributes:
        fields: The next field.
        batches: Number of batches found.
    """

    fields: int
    batches: int


class FieldArrays(NamedTuple):
    """
    The `records` fields to search for batches.

    Attributes:
        start: Address of each field's content.
        length: Its bytes; 0 for null.
        may_be_cut: Whether its last batch may be cut off.
        state: Receives its state.
        record_limit: Maximum number of records.
        limits: What is read.
    """

    start: I64
    length: I64
    may_be_cut: U8
    state: U8
    record_limit: I64
    limits: ScanLimits


class PayloadArrays(NamedTuple):
    """
    Batches with payloads to read.

    Attributes:
        state: State of each field.
        batch: Numbers of the batches to read.
        start: Address of each payload.
        end: Address behind it.
        first: Row of its first record in the output, and the number of all rows.
    """

    state: U8
    batch: I64
    start: I64
    end: I64
    first: I64


class RecordColumns(NamedTuple):
    """The columns of records; see `record_decoder.Records`."""

    offset: I64
    timestamp: I64
    key: I64
    key_length: I64
    value: I64
    value_length: I64
    header_count: I64
