"""Rules L: log offsets in the responses to Produce, Fetch, ListOffsets and DeleteRecords."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from conform.evidence.log_extent import (
    TOPIC_CHANGES,
    AppendedRange,
    LogClaim,
    LogExtent,
    LogExtents,
    OffsetBound,
    fetch_results,
    partition_key_of,
)
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.partition_results import PlainBatch
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import Screen, none_judged
from conform.registry.screened_columns import Bools, Ints, ScreenedPartitions
from conform.registry.single_values import NO_REPLICA
from conform.registry.usual_values import field_counts, has_plain_batches, usual_results
from dissector.protocol.headers import PRODUCE
from dissector.protocol.records import RecordBatch

_TOPIC_CHANGES = ("CreateTopics", "DeleteTopics")
_READ_COMMITTED = 1


def _is_incomplete(observation: Observation, reporter: Reporter) -> bool:
    """Return whether an exchange can't be examined; then report why."""
    reason = observation.unreadable_reason() or observation.connection.gap_reason
    if reason:
        reporter.count_unjudged(reason)
    return bool(reason)


@rule(
    "L01",
    "Same offsets assigned to two appends",
    Severity.ERROR,
    source="UnifiedLog.java (append): offsets are assigned from the log end on; a resent batch of "
    "an idempotent producer keeps its offset. Across two connections it is a warning if the topic "
    "is identified by name, as it may have been recreated",
    asks="The offsets in the response to an append were not assigned to another append, and are "
    "above those of all appends answered before the request was sent.",
    example="two batches are both answered with base_offset 7",
    apis=("Produce", *_TOPIC_CHANGES),
)
def check_unique_offsets(observation: Observation, reporter: Reporter) -> None:
    """Compare the offsets of each append with earlier appends."""
    logs = observation.capture_state.state(LogExtents)
    claims = logs.claims_of(observation)
    if observation.api_key != PRODUCE or _is_incomplete(observation, reporter):
        return
    request_ns = observation.row.request_ns or 0
    for claim, log in claims:
        append = claim.append
        if append is None or log is None:
            continue
        reporter.count_judged()
        earlier = _range_not_below(append, log, request_ns)
        if earlier is not None:
            found = (
                f"offset {append.first} is assigned, {earlier.first} to {earlier.end - 1} were "
                "assigned before"
            )
            _report_log(observation, reporter, claim, earlier, found)


def _range_not_below(
    append: AppendedRange, log: LogExtent, request_ns: int
) -> AppendedRange | None:
    """Return the first append that has offsets of another, or was answered before with later."""
    first, end, _, _, producer = append
    if first >= log.ranges_end:
        return None
    for earlier in log.ranges:
        other_first, other_end, _, response_ns, other_producer = earlier
        if first < other_end and (other_first < end or response_ns < request_ns):
            if other_producer == producer and producer[0] >= 0:
                continue  # rule T02 examines resent batches
            return earlier
    return None


def _report_log(
    observation: Observation,
    reporter: Reporter,
    claim: LogClaim,
    earlier: AppendedRange | OffsetBound,
    found: str,
) -> None:
    """Report contradictory offsets: a warning across connections where the topic has no id."""
    is_certain = earlier.connection == observation.connection.number or claim.topic_id is not None
    severity = None if is_certain else Severity.WARNING
    path = f"{claim.path}.{claim.offset_name}" if claim.offset_name else claim.path
    reporter.report_violation(Side.BROKER, found, path=path, severity=severity)


@rule(
    "L02",
    "High watermark or log start goes back",
    Severity.ERROR,
    source="UnifiedLog.java (maybeIncrementHighWatermark, maybeIncrementLogStartOffset); with "
    "acks=all Produce is answered once the high watermark has passed the records",
    asks="The offsets that a broker reports for a partition in Fetch, ListOffsets, Produce and "
    "DeleteRecords are not below those that it reported before the request was sent.",
    example="high watermark 100, then 60",
    apis=("Produce", "Fetch", "ListOffsets", "DeleteRecords", *_TOPIC_CHANGES),
)
def check_log_ends_never_go_back(observation: Observation, reporter: Reporter) -> None:
    """Compare the offsets reported for a log with those reported before."""
    logs = observation.capture_state.state(LogExtents)
    claims = logs.claims_of(observation)
    if observation.api_key in TOPIC_CHANGES or _is_incomplete(observation, reporter):
        return
    request_ns = observation.row.request_ns or 0
    for claim, log in claims:
        if log is None:
            continue
        reporter.count_judged()
        for name, offset, earlier in (
            ("log end", claim.end, log.end),
            ("log start", claim.start, log.start),
        ):
            if offset is None or earlier is None or offset >= earlier.offset:
                continue
            if earlier.response_ns < request_ns:
                found = f"the {name} is {offset}, after {earlier.offset}"
                _report_log(observation, reporter, claim, earlier, found)


def _are_below_ends(partitions: ScreenedPartitions) -> Bools:
    """Let responses pass with batches below the high watermark and the last stable offset."""
    response, fields = partitions.response, partitions.fields_of(partitions.response)
    last_base = np.append(partitions.batches.last_base, 0)[fields]
    is_below = last_base < response.offset
    is_below &= (last_base < response.stable) | (response.stable < 0)
    is_below = response.all_of(len(partitions), is_below | (fields < 0))
    return is_below | partitions.sessions.is_replica


def _consumed_fields(partitions: ScreenedPartitions) -> Ints:
    """Count the partitions with records, those of replicas apart."""
    return np.where(partitions.sessions.is_replica, 0, field_counts(0)(partitions))


@rule(
    "L03",
    "Records above the high watermark returned to a consumer",
    Severity.WARNING,
    source="UnifiedLog.java (read, FetchIsolation), KIP-98; a broker reads the high watermark "
    "before the records, so it may have risen meanwhile: a warning",
    asks="The batches returned to a consumer begin below the high watermark, and below the last "
    "stable offset if the consumer reads committed records.",
    example="a batch at offset 40, with high watermark 30",
    apis=("Fetch",),
    screen=Screen(
        none_judged,
        limits=usual_results,
        rows=has_plain_batches,
        partitions=_are_below_ends,
        count=_consumed_fields,
    ),
)
def check_below_high_watermark(observation: Observation, reporter: Reporter) -> None:
    """Compare the batches of a response with its high watermark and last stable offset."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    if observation.replica_id > NO_REPLICA:
        return
    fields = {
        field.path: field
        for message, field in observation.record_fields
        if message is observation.response
    }
    reads_committed = request.get("isolation_level", 0) == _READ_COMMITTED
    for topic_index, topic in enumerate(response.responses or ()):
        for partition_index, partition in enumerate(topic.partitions or ()):
            field = fields.get(f"responses[{topic_index}].partitions[{partition_index}].records")
            if partition.error_code or field is None:
                continue
            bounds = {"high watermark": partition.high_watermark}
            if reads_committed:
                bounds["last stable offset"] = partition.get("last_stable_offset", -1)
            batches = [batch for batch in field.batches if isinstance(batch, RecordBatch)]
            reporter.count_judged()
            for name, bound in bounds.items():
                above = [batch.base_offset for batch in batches if 0 <= bound <= batch.base_offset]
                if above:
                    found = f"a batch at offset {above[0]}, {name} {bound}"
                    reporter.report_violation(Side.BROKER, found, path=field.path)


@rule(
    "L04",
    "Fetched batch differs from the appended batch",
    Severity.ERROR,
    source="DefaultRecordBatch.java: a batch keeps first and last offset, compacted or not; "
    "LeaderEpochFileCache.java: leader epochs of a log only increase",
    asks="A batch at offsets that the same broker assigned to an append has the same first and "
    "last offset, and the leader epochs of a log's batches never decrease.",
    example="a batch of 3 records was appended at offset 10, a batch with offsets 10 to 11 is "
    "fetched",
    apis=("Fetch",),
)
def check_as_appended(observation: Observation, reporter: Reporter) -> None:
    """Compare the batches of a response with appends and with each other."""
    if _is_incomplete(observation, reporter):
        return
    logs = observation.capture_state.state(LogExtents)
    logs.claims_of(observation)
    for each in fetch_results(observation):
        if each.batches is None:
            continue
        reporter.count_judged()
        batches = [batch for batch in each.batches if _is_sound(batch)]
        if not batches:
            continue
        log = logs.extent_of(partition_key_of(observation, each), each.topic_id)
        found = _epoch_decrease(batches) or (_appended_otherwise(batches, log) if log else "")
        if found:
            reporter.report_violation(Side.BROKER, found, path=each.records_path)


def _is_sound(batch: object) -> bool:
    if isinstance(batch, PlainBatch):
        return True
    return isinstance(batch, RecordBatch) and not batch.problems


def _epoch_decrease(batches: Sequence[RecordBatch | PlainBatch]) -> str:
    """Return the first decrease of the leader epoch between batches; empty: none."""
    if len(batches) == 1:
        return ""
    for epoch, next_epoch in pairwise(batch.partition_leader_epoch for batch in batches):
        if 0 <= next_epoch < epoch:
            return f"leader epoch {next_epoch} follows {epoch}"
    return ""


def _appended_otherwise(batches: Sequence[RecordBatch | PlainBatch], log: LogExtent) -> str:
    """Return the first batch that differs from the append at its offsets; empty: none."""
    for batch in batches:
        first, end = batch.base_offset, batch.base_offset + batch.last_offset_delta + 1
        if first >= log.ranges_end:
            continue
        for other_first, other_end, _, _, _ in log.ranges:
            if first < other_end and other_first < end and (first, end) != (other_first, other_end):
                return (
                    f"offsets {first} to {end - 1} in a batch, {other_first} to {other_end - 1} "
                    "were appended as one batch"
                )
    return ""


@rule(
    "L05",
    "ListOffsets response does not match the requested timestamp",
    Severity.ERROR,
    source="ListOffsetsResponse.json; UnifiedLog.java (fetchOffsetByTimestamp): the first record "
    "whose timestamp is not below the requested one, else -1",
    asks="The record found for a timestamp of 0 or more is not older than that timestamp; the "
    "response for the latest or the earliest offset contains an offset, but no timestamp.",
    example="timestamp 1000 is requested, a record of timestamp 900 is returned",
    apis=("ListOffsets",),
)
def check_timestamp_matches(observation: Observation, reporter: Reporter) -> None:
    """Compare the timestamps of request and response."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    timestamps = {
        (topic.name, partition.partition_index): partition.timestamp
        for topic in request.topics or ()
        for partition in topic.partitions or ()
    }
    for topic_index, topic in enumerate(response.topics or ()):
        for partition_index, partition in enumerate(topic.partitions or ()):
            requested = timestamps.get((topic.name, partition.partition_index))
            if requested is None or partition.error_code or "timestamp" not in partition:
                continue
            reporter.count_judged()
            found = ""
            if requested >= 0 <= partition.offset and partition.timestamp < requested:
                found = f"timestamp {partition.timestamp} is returned, {requested} was requested"
            elif requested in (-1, -2) and partition.timestamp != -1:
                found = f"timestamp {partition.timestamp} with the start or end of a log"
            elif requested in (-1, -2) and partition.offset < 0:
                found = f"offset {partition.offset} as the start or end of a log"
            if found:
                path = f"topics[{topic_index}].partitions[{partition_index}]"
                reporter.report_violation(Side.BROKER, found, path=path)
