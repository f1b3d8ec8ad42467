"""The arrays and rows that kernels of this room read and write, in groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dissector.kernel.arrays import I32, I64, U8
from dissector.kernel.named_rows import NamedRow, Rows


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


@dataclass(slots=True)
class TemplateFields(NamedRow):
    """
    What is the same in all requests of a template.

    Attributes:
        shape: Number of the shape.
        api_and_version: API key and version, as in the request.
        growth_bytes: Size difference to the captured request.
        is_compact: Whether sizes of `records` fields are varints.
        replaceable: Roles that may be replaced, as bits.
        last_literal: Position of the literal after the last records.
        last_literal_bytes: Its size.
    """

    shape: int
    api_and_version: int
    growth_bytes: int
    is_compact: bool
    replaceable: int
    last_literal: int
    last_literal_bytes: int


@dataclass(slots=True)
class TemplatePartition(NamedRow):
    """
    A partition that the requests write to.

    Attributes:
        bytes_before: Number of captured bytes before its records.
        literal: Position of the literal that is sent in their place.
        literal_bytes: Its size.
        captured_id: Captured id of the producer that wrote last; -1 for none yet.
        captured_epoch: Its captured epoch.
        live_id: Its id on the target.
        live_epoch: Its epoch there.
        first_sequence: The captured sequence that is 0 on the target; -1 if unknown.
    """

    bytes_before: int
    literal: int
    literal_bytes: int
    captured_id: int = -1
    captured_epoch: int = -1
    live_id: int = -1
    live_epoch: int = -1
    first_sequence: int = -1


class WriterState(NamedRow):
    """
    How far the kernel came.

    Attributes:
        stop_reason: Why it stopped; of `StopReason`.
        size: Written bytes.
        stale_crcs: Number of changed batches that still have their old CRC.
        producer_id: The id of an unknown producer, and
        epoch: its epoch,
        sequence: the sequence of its batch,
        partition: the partition of the batch.
    """

    stop_reason: int
    size: int
    stale_crcs: int
    producer_id: int
    epoch: int
    sequence: int
    partition: int


class WrittenRequest(NamedRow):
    """
    A request that was written.

    Attributes:
        step: Number of its step.
        lag_ns: Its lag.
        latency_ns: Its latency; `ON_SLOW_PATH` if the slow path reports it.
    """

    step: int
    lag_ns: int
    latency_ns: int


class WrittenBatch(NamedRow):
    """
    The records for a partition in a request that was written.

    Attributes:
        record_count: Number of records.
        replaced_roles: Roles that were replaced, as bits.
        start: Begin of the batch in the output.
        end: Its end.
    """

    record_count: int
    replaced_roles: int
    start: int
    end: int


class TemplateArrays(NamedTuple):
    """
    A request template.

    Attributes:
        fields: What is the same in all requests.
        partitions: The partitions that the requests write to.
        literals: The constant bytes around the records.
        crcs: The table for CRCs.
    """

    fields: TemplateFields
    partitions: Rows[TemplatePartition]
    literals: U8
    crcs: I64


class WrittenArrays(NamedTuple):
    """
    Receives requests.

    Attributes:
        out: The requests, each with its size.
        requests: A row for each request.
        batches: A row for each request and partition.
        state: How far the kernel came.
    """

    out: U8
    requests: Rows[WrittenRequest]
    batches: Rows[WrittenBatch]
    state: WriterState


@dataclass(slots=True)
class ResponsePart(NamedRow):
    """
    A part of the expected response.

    Attributes:
        kind: Its kind; of `PartKind`.
        size: Its bytes.
        place: Of a literal its position among the literals; of an offset its position in the
            captured response.
        is_set: Of a time: whether it is set.
    """

    kind: int
    size: int
    place: int = 0
    is_set: bool = False


class Stretch(NamedRow):
    """
    Records that are contiguous in capture and target.

    Attributes:
        partition: Index of the partition in the response.
        captured: First captured offset.
        live: First live offset.
        length: Number of records.
        request: Index of the request with the first of them.
    """

    partition: int
    captured: int
    live: int
    length: int
    request: int


class MatcherState(NamedRow):
    """
    What the kernel expects, and how far it came.

    Attributes:
        response_bytes: The size of each response.
        end: The end of the matched responses.
        stretches: The number of stretches.
    """

    response_bytes: int
    end: int
    stretches: int


class ResponseArrays(NamedTuple):
    """
    The expected response.

    Attributes:
        parts: Its parts.
        literals: Its constant bytes.
        order: For each of its partitions the index in the request.
    """

    parts: Rows[ResponsePart]
    literals: U8
    order: I64


class MatchArrays(NamedTuple):
    """
    Receives mappings from responses.

    Attributes:
        requests: A row for each request, as the request writer returns it.
        batches: A row for each request and partition.
        stretches: The stretches of records.
        latest: Scratch space: for each partition its last stretch.
        state: How far the kernel came.
    """

    requests: Rows[WrittenRequest]
    batches: Rows[WrittenBatch]
    stretches: Rows[Stretch]
    latest: I64
    state: MatcherState
