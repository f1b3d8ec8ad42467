"""B, second part: batch header fields that describe the records."""

from __future__ import annotations

from itertools import pairwise

from conform.evidence.batch_summaries import (
    SummarizedBatch,
    is_ascending,
    is_dense,
    last_delta_of,
    newest_timestamp_of,
)
from conform.evidence.observation import BatchObservation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import rule
from conform.rules.data.record_batches import (
    incomplete_reason,
    is_batch,
    is_message,
    is_produced,
    judge_bytes,
    report_field,
    sound_batch,
)
from dissector.protocol.records import LegacyBatch, RecordBatch, UnreadBatch
from dissector.protocol.records.compression import CODEC_MASK, CODECS
from dissector.protocol.records.layout import TIMESTAMP_TYPE

_USED_BITS = {0: 0x07, 1: 0x0F, 2: 0x7F}
"""Defined attribute bits by magic."""

_USUAL_BITS = _USED_BITS[2] & ~TIMESTAMP_TYPE


def _keeps_all_rules(turn: BatchObservation) -> int | None:
    """Return 1 for a batch read as columns that keeps all rules below, None for the slow path."""
    batch = turn.batch
    if batch.__class__ is not SummarizedBatch or turn.message.faults:
        return None
    if batch.attributes & ~_USUAL_BITS or batch.newest_timestamp not in (None, batch.max_timestamp):
        return None
    last = batch.records_count - 1
    if is_produced(turn):
        return 1 if batch.dense and batch.last_offset_delta == last >= 0 else None
    return 1 if batch.ascending and batch.last_offset_delta >= max(last, batch.last_delta) else None


@rule(
    "B04",
    "The count of records is right",
    Severity.ERROR,
    source="LogValidator.java (validateBatch): 'Record batch for partition ... is invalid'; "
    "DefaultRecordBatch.java: 'Incorrect declared batch size'",
    asks="A batch that is produced has one record at least; all records that it counts are there, "
    "in a payload that can be decompressed, and nothing follows them.",
    example="records_count 3 in front of two records",
    on="batch",
    fast_check=_keeps_all_rules,
)
def record_count(turn: BatchObservation, say: Reporter) -> None:
    """Check `records_count` against the records of the batch."""
    batch = turn.batch
    if is_produced(turn) and isinstance(batch, RecordBatch) and batch.records_count == 0:
        if not batch.problems:
            say.count_judged()
            report_field(turn, say, "records_count", "a batch without records is produced")
        return
    judge_bytes("B04", is_batch, turn, say)


@rule(
    "B05",
    "The last offset delta fits the records",
    Severity.ERROR,
    source="LogValidator.java (validateBatch): 'Inconsistent batch offset range'",
    asks="In a batch that is produced the last offset delta is the count of records less one; in "
    "one that is fetched, from which compaction may have taken records, it is not less than that.",
    example="last_offset_delta 0 with two records",
    on="batch",
    fast_check=_keeps_all_rules,
)
def last_offset(turn: BatchObservation, say: Reporter) -> None:
    """Check `last_offset_delta` against the records."""
    batch = sound_batch(turn, say)
    if batch is None:
        return
    say.count_judged()
    least = batch.records_count - 1
    if not is_produced(turn):
        least = max(least, last_delta_of(batch))
    delta = batch.last_offset_delta
    if delta < least or (is_produced(turn) and delta > least):
        found = f"last_offset_delta is {delta}, the records give {least}"
        report_field(turn, say, "last_offset_delta", found)


@rule(
    "B06",
    "Offsets go up",
    Severity.ERROR,
    source="LogValidator.java; MemoryRecordsBuilder.java: 'Illegal offset ... following previous "
    "offset'; brokers keep the deltas of batches that are not compressed",
    asks="The offset deltas of a batch that is produced are 0, 1, 2, and so on; of one that is "
    "fetched each is greater than the one before. A wrapper's offset is that of its last message.",
    example="offset deltas 0, 0, 1",
    on="batch",
    fast_check=_keeps_all_rules,
)
def offsets_go_up(turn: BatchObservation, say: Reporter) -> None:
    """Check the order of the record offsets."""
    if isinstance(turn.batch, LegacyBatch):
        judge_bytes("B06", is_message, turn, say)
        return
    batch = sound_batch(turn, say)
    if batch is None:
        return
    say.count_judged()
    if is_dense(batch) or (not is_produced(turn) and is_ascending(batch)):
        return
    deltas = [record.offset_delta for record in batch.records]
    if is_produced(turn):
        wrong = [at for at, delta in enumerate(deltas) if delta != at]
    else:
        wrong = [at for at, (one, two) in enumerate(pairwise((-1, *deltas))) if one >= two]
    if wrong:
        at = wrong[0]
        found = f"the offset delta of record {at} of {len(deltas)} is {deltas[at]}"
        report_field(turn, say, "records", found)


@rule(
    "B08",
    "The maximal timestamp is that of the records",
    Severity.WARNING,
    source="DefaultRecordBatch.java (maxTimestamp); LogValidator.java writes it anew, and does not "
    "mind LogAppendTime from producers",
    asks="max_timestamp is the greatest timestamp of the records, unless the broker set the time; "
    "only the broker sets it.",
    example="max_timestamp 0 in a batch of records from today",
    on="batch",
    fast_check=_keeps_all_rules,
)
def max_timestamp(turn: BatchObservation, say: Reporter) -> None:
    """Check `max_timestamp` against the timestamps of the records."""
    batch = sound_batch(turn, say)
    if batch is None:
        return
    appended = batch.timestamp_type == "LogAppendTime"
    if appended and not is_produced(turn):
        return
    say.count_judged()
    if appended:
        report_field(turn, say, "attributes", "a producer says LogAppendTime")
        return
    newest = newest_timestamp_of(batch)
    if newest is not None and newest != batch.max_timestamp:
        found = f"max_timestamp is {batch.max_timestamp}, the newest record has {newest}"
        report_field(turn, say, "max_timestamp", found)


@rule(
    "B11",
    "Attributes use only bits that have a meaning",
    Severity.WARNING,
    source="CompressionType.java (forId: IllegalArgumentException); KIP-98 ('unused'), KIP-32",
    asks="The codec is 0 to 4; of the other bits of the attributes only those are set that the "
    "magic has a meaning for.",
    example="codec 5",
    on="batch",
    fast_check=_keeps_all_rules,
)
def defined_attributes(turn: BatchObservation, say: Reporter) -> None:
    """Check the attributes for unknown codecs and undefined bits."""
    batch = turn.batch
    if isinstance(batch, UnreadBatch):
        return
    if doubt := incomplete_reason(turn):
        say.count_unjudged(doubt)
        return
    if not batch.crc_ok:
        say.count_unjudged("the CRC of the batch is wrong")
        return
    say.count_judged()
    if batch.attributes & CODEC_MASK not in CODECS:
        report_field(turn, say, "attributes", f"{batch.codec} is unknown", Severity.ERROR)
    elif batch.attributes & ~_USED_BITS[batch.magic]:
        found = f"attributes {batch.attributes & 0xFFFF:#06x} of magic {batch.magic}"
        report_field(turn, say, "attributes", found)
