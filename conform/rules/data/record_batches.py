"""Rules B01 to B03, B09, B10, B12 and B13: the bytes of a batch, from clients and brokers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from conform.evidence.batch_faults import LIMIT_EXCEEDED, batch_faults, field_span, has_field
from conform.evidence.batch_observation import BatchObservation
from conform.evidence.reporter import Reporter
from conform.registry.partition_results import PlainBatch
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import (
    BatchShape,
    PlainCount,
    one_of_any,
    one_of_batch,
    one_of_message,
)
from dissector.protocol.headers import PRODUCE
from dissector.protocol.records import LegacyBatch, RecordBatch, UnreadBatch
from dissector.protocol.records.compression import CODEC_MASK

_LZ4, _SNAPPY = 3, 2

Applies = Callable[[Any], bool]


def side_of(observation: BatchObservation) -> Side:
    """Return the side responsible for a batch: in a Fetch response it is the broker."""
    return Side.CLIENT if is_produced(observation) else Side.BROKER


def is_produced(observation: BatchObservation) -> bool:
    """Return whether a batch comes from a producer."""
    return observation.api_key == PRODUCE


def sound_batch(observation: BatchObservation, reporter: Reporter) -> RecordBatch | None:
    """Return a batch of magic 2 without problems; else report it as unjudged and return None."""
    batch = observation.batch
    if not isinstance(batch, RecordBatch):
        return None
    reason = "the batch is damaged" if batch.problems else incomplete_reason(observation)
    if reason:
        reporter.count_unjudged(reason)
        return None
    return batch


def sound_header(
    observation: BatchObservation, reporter: Reporter
) -> RecordBatch | PlainBatch | None:
    """Return the same, of a plain batch only the header."""
    return observation.header or sound_batch(observation, reporter)


def report_field(
    observation: BatchObservation,
    reporter: Reporter,
    field: str,
    found: str,
    severity: Severity | None = None,
) -> None:
    """Report a header field of the batch that violates the rule."""
    reporter.report_violation(
        side_of(observation),
        found,
        path=f"{observation.path}.{field}",
        span=partial(field_span, observation, field),
        severity=severity,
    )


def incomplete_reason(observation: BatchObservation) -> str:
    """Return why bytes may be missing from the batch; empty if its message decodes fully."""
    return observation.connection.incomplete_reason if observation.message.faults else ""


def judge_bytes(
    id: str, applies: Applies, observation: BatchObservation, reporter: Reporter
) -> None:
    """Report the first problem of a batch that violates the rule with this id."""
    batch = observation.batch
    if not applies(batch):
        return
    if reason := incomplete_reason(observation):
        reporter.count_unjudged(reason)
        return
    faults = batch_faults(batch) if batch.problems else []
    crc = next((fault for fault in faults if fault.rule in ("B01", "B02")), None)
    if crc is not None and crc.rule != id:
        reporter.count_unjudged("the CRC of the batch is wrong")
        return
    problems = [fault.problem for fault in faults if fault.rule == id]
    if not problems and any(fault.rule == LIMIT_EXCEEDED for fault in faults):
        reporter.count_unjudged("the batch exceeds the limits of the reader")
        return
    reporter.count_judged()
    for problem in problems[:1]:
        field = problem.path.partition("].")[2]
        span = field_span(observation, field)
        if problem.position is not None and not has_field(batch, field):
            span = observation.span(problem.position - batch.position)
        path = f"{observation.path}.{field}" if field else observation.path
        reporter.report_violation(
            side_of(observation), problem.what, message=observation.message, path=path, span=span
        )


@cache
def _fast_check(applies: Applies) -> Callable[[BatchObservation], int | None]:
    """Return the fast check for batches without problems."""

    def is_plain(observation: BatchObservation) -> int | None:
        if observation.batch.problems or incomplete_reason(observation):
            return None
        return int(applies(observation.batch))

    return is_plain


def _byte_rule(
    id: str,
    title: str,
    source: str,
    asks: str,
    example: str,
    applies: Applies,
    plain_batch: PlainCount = one_of_batch,
) -> None:
    """Register a rule on the bytes of a batch."""
    rule(
        id,
        title,
        Severity.ERROR,
        source=source,
        asks=asks,
        example=example,
        on="batch",
        fast_check=_fast_check(applies),
        plain_batch=plain_batch,
    )(partial(judge_bytes, id, applies))


def is_batch(batch: Any) -> bool:
    """Return whether a batch is of magic 2."""
    return isinstance(batch, RecordBatch)


def is_message(batch: Any) -> bool:
    """Return whether a batch is a message of magic 0 or 1, with any messages inside it."""
    return isinstance(batch, LegacyBatch)


def _is_complete(batch: Any) -> bool:
    return not isinstance(batch, UnreadBatch) or not batch.partial or bool(batch.problems)


def _has_codec(number: int) -> Applies:
    return lambda batch: not _is_unread(batch) and batch.attributes & CODEC_MASK == number


def _plain_of_codec(number: int) -> PlainCount:
    def count(shape: BatchShape) -> int:
        return int(shape.codec == number)

    return count


def _is_unread(batch: Any) -> bool:
    return isinstance(batch, UnreadBatch)


_byte_rule(
    "B01",
    "Wrong CRC of a record batch",
    "DefaultRecordBatch.java (ensureValid, computeChecksum)",
    "The CRC-32C of a batch of magic 2 is that of its bytes from the attributes to the end.",
    "a CRC over the whole batch, or CRC-32 in place of CRC-32C",
    is_batch,
)
_byte_rule(
    "B02",
    "Wrong CRC of a message",
    "LegacyRecord.java (computeChecksum)",
    "The CRC-32 of a message of magic 0 or 1 is that of its bytes from the magic to the end; so "
    "are those of the messages inside a wrapper.",
    "an inner message whose CRC was not computed",
    is_message,
    one_of_message,
)
_byte_rule(
    "B03",
    "Unknown magic, or a batch of the wrong size",
    "DefaultRecordBatch.java and LegacyRecord.java (ensureValid); ByteBufferLogInputStream.java",
    "The magic is 0, 1 or 2. A batch of magic 2 has at least 49 bytes after its length, a message "
    "14 (magic 0) or 22; key and value fill it. Only records sent by a broker may end within a "
    "batch.",
    "a Produce request with a truncated last batch",
    _is_complete,
    one_of_any,
)
_byte_rule(
    "B09",
    "Length of a record differs from that of its fields",
    "DefaultRecord.java (readFrom): 'Invalid record size', 'Found invalid record structure'",
    "The length of a record is that of its fields: key, value and headers end where the record "
    "ends.",
    "a record of length 20 whose headers end after 18 bytes",
    is_batch,
)
_byte_rule(
    "B10",
    "Wrong count of record headers, or a header without a key",
    "DefaultRecord.java (readHeaders): 'Invalid negative header key size'",
    "The count of headers is 0 or more, and that many headers fit into the record; the key of a "
    "header is not null.",
    "a header with key length -1",
    is_batch,
)
_byte_rule(
    "B12",
    "Payload marked as lz4 is not a valid lz4 frame",
    "Lz4BlockInputStream.java; KAFKA-3160: only readers of magic 0 accept a wrong header checksum",
    "A payload with codec 3 consists of lz4 frames; from magic 1 on, the checksum of their "
    "headers is right.",
    "a bare lz4 block without a frame",
    _has_codec(_LZ4),
    _plain_of_codec(_LZ4),
)
_byte_rule(
    "B13",
    "Payload marked as snappy is neither xerial-framed nor raw snappy",
    "SnappyInputStream of snappy-java, which accepts both",
    "A payload with codec 2 is a stream of xerial blocks, or one raw snappy block.",
    "the framing format of Google's snappy",
    _has_codec(_SNAPPY),
    _plain_of_codec(_SNAPPY),
)
