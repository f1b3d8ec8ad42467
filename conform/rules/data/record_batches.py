"""B, first part: rules on the bytes of a batch, independent of the sender."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from conform.evidence.batch_faults import LIMIT_EXCEEDED, batch_faults, field_span, has_field
from conform.evidence.observation import BatchObservation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from dissector.protocol.records import LegacyBatch, RecordBatch, UnreadBatch
from dissector.protocol.records.compression import CODEC_MASK

_LZ4, _SNAPPY = 3, 2

Applies = Callable[[Any], bool]


def side_of(turn: BatchObservation) -> Side:
    """Return the side responsible for a batch: in a Fetch response it is the broker."""
    return Side.CLIENT if turn.message.kind == "request" else Side.BROKER


def is_produced(turn: BatchObservation) -> bool:
    """Return whether a batch comes from a producer."""
    return turn.message.kind == "request"


def sound_batch(turn: BatchObservation, say: Reporter) -> RecordBatch | None:
    """Return a batch of magic 2 without problems; else report it as unjudged and return None."""
    batch = turn.batch
    if not isinstance(batch, RecordBatch):
        return None
    why = "the batch is damaged" if batch.problems else incomplete_reason(turn)
    if why:
        say.count_unjudged(why)
        return None
    return batch


def report_field(
    turn: BatchObservation, say: Reporter, field: str, found: str, severity: Severity | None = None
) -> None:
    """Report a header field of the batch as breaking the rule."""
    say.report_violation(
        side_of(turn),
        found,
        message=turn.message,
        path=f"{turn.path}.{field}",
        span=field_span(turn, field),
        severity=severity,
    )


def incomplete_reason(turn: BatchObservation) -> str:
    """Return why bytes may be missing from the batch; empty if its message decodes fully."""
    return turn.connection.incomplete_reason if turn.message.faults else ""


def judge_bytes(id: str, applies: Applies, turn: BatchObservation, say: Reporter) -> None:
    """Report the first problem of a batch that breaks a rule."""
    batch = turn.batch
    if not applies(batch):
        return
    if doubt := incomplete_reason(turn):
        say.count_unjudged(doubt)
        return
    faults = batch_faults(batch) if batch.problems else []
    crc = next((fault for fault in faults if fault.rule in ("B01", "B02")), None)
    if crc is not None and crc.rule != id:
        say.count_unjudged("the CRC of the batch is wrong")
        return
    mine = [fault.problem for fault in faults if fault.rule == id]
    if not mine and any(fault.rule == LIMIT_EXCEEDED for fault in faults):
        say.count_unjudged("the batch is larger than what is read of one")
        return
    say.count_judged()
    for problem in mine[:1]:
        inside = problem.path.partition("].")[2]
        place = field_span(turn, inside)
        if problem.position is not None and not has_field(batch, inside):
            place = turn.span(problem.position - batch.position)
        path = f"{turn.path}.{inside}" if inside else turn.path
        say.report_violation(
            side_of(turn), problem.what, message=turn.message, path=path, span=place
        )


@cache
def _fast_check(applies: Applies) -> Callable[[BatchObservation], int | None]:
    """Return the fast check for batches without problems."""

    def is_plain(turn: BatchObservation) -> int | None:
        if turn.batch.problems or incomplete_reason(turn):
            return None
        return int(applies(turn.batch))

    return is_plain


def _byte_rule(id: str, title: str, source: str, asks: str, example: str, applies: Applies) -> None:
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
    )(partial(judge_bytes, id, applies))


def is_batch(batch: Any) -> bool:
    """Return whether it is a batch of magic 2."""
    return isinstance(batch, RecordBatch)


def is_message(batch: Any) -> bool:
    """Return whether it is a message of magic 0 or 1, with any messages inside it."""
    return isinstance(batch, LegacyBatch)


def _is_complete(batch: Any) -> bool:
    return not isinstance(batch, UnreadBatch) or not batch.partial or bool(batch.problems)


def _has_codec(number: int) -> Applies:
    return lambda batch: not _is_unread(batch) and batch.attributes & CODEC_MASK == number


def _is_unread(batch: Any) -> bool:
    return isinstance(batch, UnreadBatch)


_byte_rule(
    "B01",
    "The CRC of a record batch is right",
    "DefaultRecordBatch.java (ensureValid, computeChecksum)",
    "The CRC-32C of a batch of magic 2 is that of its bytes from the attributes to its end.",
    "a CRC over the whole batch, or CRC-32 in place of CRC-32C",
    is_batch,
)
_byte_rule(
    "B02",
    "The CRC of a message is right",
    "LegacyRecord.java (computeChecksum)",
    "The CRC-32 of a message of magic 0 or 1 is that of its bytes from the magic to its end; so "
    "are those of the messages inside a wrapper.",
    "an inner message whose CRC was not computed",
    is_message,
)
_byte_rule(
    "B03",
    "Batches have a known magic, and the size that they say",
    "DefaultRecordBatch.java and LegacyRecord.java (ensureValid); ByteBufferLogInputStream.java",
    "The magic is 0, 1 or 2. A batch of magic 2 has 49 bytes behind its length at least, a "
    "message 14 (magic 0) or 22; key and value fill it. Only what a broker sends may end in the "
    "middle of a batch.",
    "a Produce request whose last batch is cut off",
    _is_complete,
)
_byte_rule(
    "B09",
    "A record is as long as it says",
    "DefaultRecord.java (readFrom): 'Invalid record size', 'Found invalid record structure'",
    "The length of a record is that of its fields: key, value and headers end where it ends.",
    "a record of length 20 whose headers end after 18 bytes",
    is_batch,
)
_byte_rule(
    "B10",
    "Headers of records are counted right, and have keys",
    "DefaultRecord.java (readHeaders): 'Invalid negative header key size'",
    "The count of headers is 0 or more and no more than fit; the key of a header is not null.",
    "a header with key length -1",
    is_batch,
)
_byte_rule(
    "B12",
    "What is said to be lz4 is a valid frame",
    "Lz4BlockInputStream.java; KAFKA-3160: only readers of magic 0 forgive the header's checksum",
    "A payload with codec 3 is lz4 frames; from magic 1 on the checksum of their header is right.",
    "a bare lz4 block without a frame",
    _has_codec(_LZ4),
)
_byte_rule(
    "B13",
    "What is said to be snappy is snappy, framed as xerial does or bare",
    "SnappyInputStream of snappy-java, which takes both",
    "A payload with codec 2 is a stream of xerial's blocks, or one bare snappy block.",
    "the framing format of Google's snappy",
    _has_codec(_SNAPPY),
)
