"""The arrays that kernels of this room read and write, in groups."""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel.arrays import I32, I64, U8, I64Table


class StepColumns(NamedTuple):
    """The arrays of `StepArrays`."""

    frames: U8
    positions: I64
    sizes: I32
    shapes: I32
    dependencies: I32
    dependency_ends: I64
    is_done: U8
    due_ns: I64


class TemplateArrays(NamedTuple):
    """
    A request template.

    Attributes:
        fields: Its fields; see `request_kernel`.
        partitions: The partitions that the requests write to.
        literals: The constant bytes around the records.
        crcs: The table for CRCs.
    """

    fields: I64
    partitions: I64Table
    literals: U8
    crcs: I64


class WrittenArrays(NamedTuple):
    """
    Receives requests.

    Attributes:
        out: The requests, each with its size.
        request_rows: A row for each request.
        state: Stop reason of the kernel, and number of bytes.
    """

    out: U8
    request_rows: I64Table
    state: I64


class ResponseArrays(NamedTuple):
    """
    The expected response.

    Attributes:
        parts: Its parts.
        literals: Its constant bytes.
        order: For each of its partitions the index in the request.
    """

    parts: I64Table
    literals: U8
    order: I64


class MatchArrays(NamedTuple):
    """
    Receives mappings from responses.

    Attributes:
        request_rows: A row for each request, as the request writer returns it.
        stretches: The stretches of records.
        latest: Scratch space: for each partition its last stretch.
        state: The end of the responses, the number of stretches; input: the size of a response.
    """

    request_rows: I64Table
    stretches: I64Table
    latest: I64
    state: I64
