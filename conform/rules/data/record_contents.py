"""Rules B04 to B06, B08 and B11: batch header fields that describe the records."""

from __future__ import annotations

from itertools import pairwise

from conform.evidence.batch_observation import BatchObservation
from conform.evidence.batch_summaries import (
    SummarizedBatch,
    is_ascending,
    is_dense,
    last_delta_of,
    newest_timestamp_of,
)
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import rule
from conform.registry.rule_screen import one_of_any, one_of_batch
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


def _keeps_all_rules(observation: BatchObservation) -> int | None:
    """Return 1 for a summarised batch that keeps all rules below, None for the slow path."""
    batch = observation.batch
    if batch.__class__ is not SummarizedBatch or observation.message.faults:
        return None
    if batch.attributes & ~_USUAL_BITS or batch.newest_timestamp not in (None, batch.max_timestamp):
        return None
    last = batch.records_count - 1
    if is_produced(observation):
        return 1 if batch.dense and batch.last_offset_delta == last >= 0 else None
    return 1 if batch.ascending and batch.last_offset_delta >= max(last, batch.last_delta) else None


@rule(
    "B04",
    "Wrong count of records",
    Severity.ERROR,
    source="LogValidator.java (validateBatch): 'Record batch for partition ... is invalid'; "
    "DefaultRecordBatch.java: 'Incorrect declared batch size'",
    asks="A produced batch has at least one record; all counted records are present, in a payload "
    "that can be decompressed, and nothing follows them.",
    example="records_count 3 before two records",
    on="batch",
    fast_check=_keeps_all_rules,
    plain_batch=one_of_batch,
)
def check_record_count(observation: BatchObservation, reporter: Reporter) -> None:
    """Check `records_count` against the records of the batch."""
    batch = observation.batch
    if is_produced(observation) and isinstance(batch, RecordBatch) and batch.records_count == 0:
        if not batch.problems:
            reporter.count_judged()
            report_field(
                observation, reporter, "records_count", "a batch without records is produced"
            )
        return
    judge_bytes("B04", is_batch, observation, reporter)


@rule(
    "B05",
    "Last offset delta does not match the records",
    Severity.ERROR,
    source="LogValidator.java (validateBatch): 'Inconsistent batch offset range'",
    asks="In a produced batch the last offset delta is the count of records minus one; in a "
    "fetched batch, from which compaction may have removed records, it is at least that, and at "
    "least the delta of the last record.",
    example="last_offset_delta 0 with two records",
    on="batch",
    fast_check=_keeps_all_rules,
    plain_batch=one_of_batch,
)
def check_last_offset_delta(observation: BatchObservation, reporter: Reporter) -> None:
    """Check `last_offset_delta` against the records."""
    batch = sound_batch(observation, reporter)
    if batch is None:
        return
    reporter.count_judged()
    expected = batch.records_count - 1
    if not is_produced(observation):
        expected = max(expected, last_delta_of(batch))
    delta = batch.last_offset_delta
    if delta < expected or (is_produced(observation) and delta > expected):
        found = f"last_offset_delta is {delta}, the records give {expected}"
        report_field(observation, reporter, "last_offset_delta", found)


@rule(
    "B06",
    "Offsets of records do not increase",
    Severity.ERROR,
    source="LogValidator.java; MemoryRecordsBuilder.java: 'Illegal offset ... following previous "
    "offset'; brokers keep the deltas of uncompressed batches",
    asks="The offset deltas of a produced batch are 0, 1, 2 and so on; in a fetched batch each is "
    "greater than the previous one. The offset of a wrapper is that of its last message.",
    example="offset deltas 0, 0, 1",
    on="batch",
    fast_check=_keeps_all_rules,
    plain_batch=one_of_any,
)
def check_offsets_increase(observation: BatchObservation, reporter: Reporter) -> None:
    """Check the order of the record offsets."""
    if isinstance(observation.batch, LegacyBatch):
        judge_bytes("B06", is_message, observation, reporter)
        return
    batch = sound_batch(observation, reporter)
    if batch is None:
        return
    reporter.count_judged()
    if is_dense(batch) or (not is_produced(observation) and is_ascending(batch)):
        return
    deltas = [record.offset_delta for record in batch.records]
    if is_produced(observation):
        misplaced = [index for index, delta in enumerate(deltas) if delta != index]
    else:
        misplaced = [
            index
            for index, (previous, current) in enumerate(pairwise((-1, *deltas)))
            if previous >= current
        ]
    if misplaced:
        index = misplaced[0]
        found = f"the offset delta of record {index} of {len(deltas)} is {deltas[index]}"
        report_field(observation, reporter, "records", found)


@rule(
    "B08",
    "Maximum timestamp differs from that of the records",
    Severity.WARNING,
    source="DefaultRecordBatch.java (maxTimestamp); LogValidator.java recomputes it, and accepts "
    "LogAppendTime from producers",
    asks="max_timestamp is the greatest timestamp of the records, unless the broker set the time; "
    "only the broker may set it.",
    example="max_timestamp 0 in a batch of records from today",
    on="batch",
    fast_check=_keeps_all_rules,
    plain_batch=one_of_batch,
)
def check_max_timestamp(observation: BatchObservation, reporter: Reporter) -> None:
    """Check `max_timestamp` against the timestamps of the records."""
    batch = sound_batch(observation, reporter)
    if batch is None:
        return
    is_append_time = batch.timestamp_type == "LogAppendTime"
    if is_append_time and not is_produced(observation):
        return
    reporter.count_judged()
    if is_append_time:
        report_field(observation, reporter, "attributes", "LogAppendTime in a produced batch")
        return
    newest = newest_timestamp_of(batch)
    if newest is not None and newest != batch.max_timestamp:
        found = f"max_timestamp is {batch.max_timestamp}, the newest record has {newest}"
        report_field(observation, reporter, "max_timestamp", found)


@rule(
    "B11",
    "Undefined bits in the attributes of a batch",
    Severity.WARNING,
    source="CompressionType.java (forId: IllegalArgumentException); KIP-98 ('unused'), KIP-32",
    asks="The codec is 0 to 4; of the other attribute bits, only those defined for the magic are "
    "set.",
    example="codec 5",
    on="batch",
    fast_check=_keeps_all_rules,
    plain_batch=one_of_any,
)
def check_defined_attributes(observation: BatchObservation, reporter: Reporter) -> None:
    """Check the attributes for unknown codecs and undefined bits."""
    batch = observation.batch
    if isinstance(batch, UnreadBatch):
        return
    if reason := incomplete_reason(observation):
        reporter.count_unjudged(reason)
        return
    if not batch.crc_ok:
        reporter.count_unjudged("the CRC of the batch is wrong")
        return
    reporter.count_judged()
    if batch.attributes & CODEC_MASK not in CODECS:
        report_field(
            observation, reporter, "attributes", f"{batch.codec} is unknown", Severity.ERROR
        )
    elif batch.attributes & ~_USED_BITS[batch.magic]:
        found = f"attributes {batch.attributes & 0xFFFF:#06x} of magic {batch.magic}"
        report_field(observation, reporter, "attributes", found)
