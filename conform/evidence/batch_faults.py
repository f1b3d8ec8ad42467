"""Maps problems of a record batch to the rules that they break, and header fields to offsets."""

from __future__ import annotations

from typing import NamedTuple

from conform.evidence.batch_observation import BatchObservation
from dissector.errors import Problem
from dissector.protocol.records import Batch, LegacyBatch, RecordBatch
from dissector.protocol.records.compression import CODEC_MASK, CODECS

BATCH_FIELDS: dict[str, tuple[int, int | None]] = {
    "base_offset": (0, 8),
    "batch_length": (8, 12),
    "magic": (16, 17),
    "crc": (17, 21),
    "attributes": (21, 23),
    "last_offset_delta": (23, 27),
    "max_timestamp": (35, 43),
    "producer_id": (43, 51),
    "producer_epoch": (51, 53),
    "base_sequence": (53, 57),
    "records_count": (57, 61),
    "records": (61, None),
}
"""Byte ranges of fields in a batch of magic 2."""

MESSAGE_FIELDS: dict[str, tuple[int, int | None]] = {
    "crc": (12, 16),
    "magic": (16, 17),
    "attributes": (17, 18),
}
"""Byte ranges of fields in a message of magic 0 and 1."""

_CODEC_RULES = {2: "B13", 3: "B12"}
"""Rule for a payload that can't be decompressed, by codec; B04 for all other codecs."""

LIMIT_EXCEEDED = ""
"""In place of a rule: the dissector reached a limit, and did not read the batch to its end."""


class BatchFault(NamedTuple):
    """A problem of a batch, and the rule that it breaks (or LIMIT_EXCEEDED)."""

    rule: str
    problem: Problem


def batch_faults(batch: Batch) -> list[BatchFault]:
    """Return the problems of a batch, with their rules."""
    return [BatchFault(_rule_of(batch, problem), problem) for problem in batch.problems]


def _rule_of(batch: Batch, problem: Problem) -> str:
    if problem.kind == "limit":
        return LIMIT_EXCEEDED
    if isinstance(batch, RecordBatch):
        return _rule_of_batch(batch, problem)
    if isinstance(batch, LegacyBatch):
        return _rule_of_message(batch, problem)
    return "B03"


def _rule_of_batch(batch: RecordBatch, problem: Problem) -> str:
    _, _, inside = problem.path.partition("].")
    if inside == "crc":
        return "B01"
    if inside == "records_count" or problem.kind == "trailing":
        return "B04"
    if inside == "records":
        return _rule_of_codec(batch.attributes)
    if problem.kind == "control_key":
        return "B20"
    return "B10" if ".headers" in inside else "B09"


def _rule_of_message(batch: LegacyBatch, problem: Problem) -> str:
    if problem.path.endswith(".crc"):
        return "B02"
    if problem.path.endswith(".offset"):
        return "B06"
    if problem.path.endswith(".value") and problem.kind != "length":
        return _rule_of_codec(batch.attributes)
    return "B03"


def _rule_of_codec(attributes: int) -> str:
    number = attributes & CODEC_MASK
    return "B11" if number not in CODECS else _CODEC_RULES.get(number, "B04")


def has_field(batch: Batch, name: str) -> bool:
    """Return whether the batch has this header field."""
    return name in _fields(batch) and name != "records"


def field_span(observation: BatchObservation, name: str) -> tuple[int, int]:
    """Return the byte range in the frame of a header field; of the batch if it lacks the field."""
    start, end = _fields(observation.batch).get(name, (0, None))
    return observation.span(start, end)


def _fields(batch: Batch) -> dict[str, tuple[int, int | None]]:
    return MESSAGE_FIELDS if isinstance(batch, LegacyBatch) else BATCH_FIELDS
