"""Rules X01 to X04, X07 and X09: the contents of Fetch responses."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from construct import Container

from conform.evidence.fetch_history import (
    FIRST_WITH_TOPIC_IDS,
    fetch_request_of,
    first_ends_in_session,
    partitions_of,
    starts_in_session,
)
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import Screen, none_judged, one_judged
from conform.registry.screened_columns import Bools, ScreenedPartitions
from conform.registry.usual_values import (
    answers_whole_request,
    field_counts,
    has_plain_batches,
    is_answered_fetch,
    partition_counts,
    usual_results,
)
from dissector.protocol.messages import Message
from dissector.protocol.records import Batch, RecordBatch, UnreadBatch
from dissector.protocol.records_fields import RecordsField

READ_COMMITTED = 1
_FIRST_WITH_WHOLE_BATCH = 3
_FIRST_WITH_ISOLATION = 4
_FIRST_WITH_PREFERRED_REPLICA = 11
_UNKNOWN_TOPIC_ID, _INCONSISTENT_TOPIC_ID, _SESSION_TOPIC_ID = 100, 103, 106
_ABORT = "ABORT"
_UNKNOWN_SESSION = "the beginning of the fetch session is not in the capture"


def _is_complete(observation: Observation, reporter: Reporter) -> bool:
    """Return whether request and response can be examined; else report why not."""
    reason = observation.unreadable_reason()
    if reason:
        reporter.count_unjudged(reason)
    return not reason


def _records_fields(observation: Observation) -> list[tuple[Message, RecordsField]]:
    """Return the `records` fields of the response."""
    return [
        (message, field)
        for message, field in observation.record_fields
        if message is observation.response
    ]


def _topic_key(field: RecordsField) -> object:
    return field.topic_id if field.topic is None else field.topic


def _last_offset(batch: Batch) -> int | None:
    """Return the last offset of a batch; None for an unread batch."""
    if isinstance(batch, RecordBatch):
        return batch.base_offset + batch.last_offset_delta
    return None if isinstance(batch, UnreadBatch) else batch.offset


def _covers_offsets(partitions: ScreenedPartitions) -> Bools:
    """Let responses pass whose batches begin at the requested offsets, and ascend."""
    response, fields = partitions.response, partitions.fields_of(partitions.response)
    first_end = np.append(partitions.batches.first_end, 0)[fields]
    is_good = first_end >= partitions.requested
    is_good |= partitions.sessions.is_known[response.row]
    is_good &= np.append(partitions.batches.is_ascending, False)[fields]
    is_covered = response.all_of(len(partitions), is_good | (fields < 0))
    return answers_whole_request(partitions) & is_covered


def _are_offsets_in_order(partitions: ScreenedPartitions) -> Bools:
    """Let responses pass in which log start, stable offset and high watermark are in order."""
    response = partitions.response
    is_good = response.start <= partitions.requested
    is_good |= partitions.sessions.is_known[response.row]
    is_good &= (response.start <= response.offset) & (response.stable <= response.offset)
    return answers_whole_request(partitions) & response.all_of(len(partitions), is_good)


@rule(
    "X01",
    "Fetched batches do not cover the requested offset",
    Severity.ERROR,
    source="UnifiedLog.java (read), LogSegment.java (translateOffset): the first batch is the "
    "first whose last offset is not below the requested one, complete; compaction may have left a "
    "gap there",
    asks="The first batch of a partition does not end before the requested offset, and each batch "
    "ends after the previous one.",
    example="offset 12 is requested, batches up to offset 9 are returned",
    apis=("Fetch",),
    screen=Screen(
        none_judged,
        limits=usual_results,
        rows=has_plain_batches,
        partitions=_covers_offsets,
        in_session=True,
        count=field_counts(1),
    ),
)
def check_requested_offset_covered(observation: Observation, reporter: Reporter) -> None:
    """Compare the batches with the requested offset, and their order."""
    fetch_request = fetch_request_of(observation)
    if not _is_complete(observation, reporter) or fetch_request is None:
        return
    shown = first_ends_in_session(observation) if reporter.is_screened else None
    if shown is not None:
        for _, requested in shown:
            _count_by_offset(reporter, requested)
        return
    for message, field in _records_fields(observation):
        ends = [end for end in map(_last_offset, field.batches) if end is not None]
        if not ends:
            continue
        offset = fetch_request.offset_of((_topic_key(field), field.partition))  # type: ignore[arg-type]
        _count_by_offset(reporter, offset)
        if offset is None:
            continue
        found = ""
        if ends[0] < offset:
            found = f"offset {offset} was requested, the first batch ends at {ends[0]}"
        elif decreases := [pair for pair in pairwise(ends) if pair[0] >= pair[1]]:
            found = (
                f"a batch that ends at {decreases[0][1]} follows one that ends at {decreases[0][0]}"
            )
        if found:
            reporter.report_violation(Side.BROKER, found, message=message, path=field.path)


def _count_by_offset(reporter: Reporter, requested: int | None) -> None:
    """Count a case that the requested offset decides, if it was captured."""
    if requested is None:
        reporter.count_unjudged(_UNKNOWN_SESSION)
    else:
        reporter.count_judged()


@rule(
    "X02",
    "Fetch returns records without a complete batch",
    Severity.ERROR,
    source="ReplicaManager.scala (readFromLog, minOneMessage); KIP-74: a client whose limits are "
    "smaller than a batch would make no progress",
    asks="From v3 on, the records returned for a partition begin with a complete batch, however "
    "large.",
    example="a Fetch v11 response that contains 1,000 bytes of a batch of 5,000",
    apis=("Fetch",),
    screen=Screen(
        none_judged, rows=has_plain_batches, count=field_counts(1, _FIRST_WITH_WHOLE_BATCH)
    ),
)
def check_one_complete_batch(observation: Observation, reporter: Reporter) -> None:
    """Report records that consist of an incomplete batch only."""
    version = observation.version or 0
    if not _is_complete(observation, reporter) or version < _FIRST_WITH_WHOLE_BATCH:
        return
    for message, field in _records_fields(observation):
        if not field.batches:
            continue
        reporter.count_judged()
        first = field.batches[0]
        if isinstance(first, UnreadBatch) and first.partial:
            found = f"only {len(first.data)} bytes of a batch"
            reporter.report_violation(Side.BROKER, found, message=message, path=field.path)


@rule(
    "X03",
    "Log start, last stable offset or high watermark out of order",
    Severity.ERROR,
    source="UnifiedLog.java: logStartOffset <= lastStableOffset <= highWatermark; a fetch below "
    "the log start is answered with OFFSET_OUT_OF_RANGE. A broker reads the high watermark first "
    "(Partition.scala, readRecords), so an offset above it is a warning",
    asks="In a partition without an error, the log start is not above the high watermark or the "
    "requested offset, and the last stable offset is not above the high watermark.",
    example="log_start_offset 50 in the response to a fetch at offset 12, without an error",
    apis=("Fetch",),
    screen=Screen(
        none_judged,
        limits=usual_results,
        partitions=_are_offsets_in_order,
        in_session=True,
        count=partition_counts(),
    ),
)
def check_offset_order(observation: Observation, reporter: Reporter) -> None:
    """Compare the offsets of each partition with each other and with the requested offset."""
    fetch_request = fetch_request_of(observation)
    if not _is_complete(observation, reporter) or fetch_request is None:
        return
    shown = starts_in_session(observation) if reporter.is_screened else None
    if shown is not None:
        for _ in range(shown):
            reporter.count_judged()
        return
    response = observation.response_body
    assert response is not None
    for topic_index, topic in enumerate(response.responses or ()):
        for partition_index, partition in enumerate(topic.partitions or ()):
            if partition.error_code or partition.high_watermark < 0:
                continue
            reporter.count_judged()
            key = topic.get("topic", topic.get("topic_id")), partition.partition_index
            requested = fetch_request.offset_of(key)
            start, stable = (
                partition.get("log_start_offset", -1),
                partition.get("last_stable_offset", -1),
            )
            found, severity = "", Severity.WARNING
            if start > partition.high_watermark:
                found = f"log start {start}, high watermark {partition.high_watermark}"
            elif stable > partition.high_watermark:
                found = f"last stable offset {stable}, high watermark {partition.high_watermark}"
            elif requested is not None and start > requested:
                found = f"log start {start}, offset {requested} was requested"
                severity = Severity.ERROR
            if found:
                path = f"responses[{topic_index}].partitions[{partition_index}]"
                reporter.report_violation(Side.BROKER, found, path=path, severity=severity)


@rule(
    "X04",
    "Aborted transactions not listed as the isolation level requires",
    Severity.ERROR,
    source="FetchResponse.json, UnifiedLog.java (collectAbortedTransactions); a list for level 0 "
    "is harmless, so a warning; controllers send an empty list",
    asks="With isolation level 1, the list contains each transaction whose ABORT marker is among "
    "the records, with a first offset not above that of its first record there; with level 0, the "
    "list is empty.",
    example="records and the ABORT marker of producer 7, with an empty list",
    apis=("Fetch",),
    screen=Screen(
        none_judged,
        limits=usual_results,
        rows=has_plain_batches,
        count=partition_counts(_FIRST_WITH_ISOLATION),
    ),
)
def check_aborted_transactions_listed(observation: Observation, reporter: Reporter) -> None:
    """Compare the list of aborted transactions with the records."""
    version = observation.version or 0
    if version < _FIRST_WITH_ISOLATION or not _is_complete(observation, reporter):
        return
    request, response = observation.request_body, observation.response_body
    assert request is not None
    assert response is not None
    reads_committed = request.isolation_level == READ_COMMITTED
    batches = {field.path: field.batches for _, field in _records_fields(observation)}
    for topic_index, topic in enumerate(response.responses or ()):
        for partition_index, partition in enumerate(topic.partitions or ()):
            if partition.error_code:
                continue
            reporter.count_judged()
            path = f"responses[{topic_index}].partitions[{partition_index}]"
            listed = partition.aborted_transactions
            if not reads_committed:
                if listed:
                    found = f"{len(listed)} aborted transactions are listed for isolation level 0"
                    list_path = f"{path}.aborted_transactions"
                    reporter.report_violation(
                        Side.BROKER, found, path=list_path, severity=Severity.WARNING
                    )
                continue
            found = _unlisted_abort(batches.get(f"{path}.records", []), listed or [])
            if found:
                reporter.report_violation(Side.BROKER, found, path=f"{path}.aborted_transactions")


def _unlisted_abort(batches: list[Batch], listed: list[Container]) -> str:
    """Return which aborted transaction of the batches is missing from the list; empty: none."""
    first_offsets: dict[int, int] = {}
    listed_offsets: dict[int, int] = {}
    for each in listed:
        known = listed_offsets.setdefault(each.producer_id, each.first_offset)
        listed_offsets[each.producer_id] = min(known, each.first_offset)
    for batch in batches:
        if not isinstance(batch, RecordBatch) or not batch.transactional:
            continue
        producer = batch.producer_id
        if not batch.control:
            first_offsets.setdefault(producer, batch.base_offset)
            continue
        first = first_offsets.pop(producer, None)
        kinds = [record.control_type for record in batch.records]
        if first is None or kinds != [_ABORT]:
            continue
        if listed_offsets.get(producer, first + 1) > first:
            return f"the transaction of producer {producer} from offset {first} on is not listed"
    return ""


@rule(
    "X07",
    "Topic id error below v13, or a topic that was not requested",
    Severity.ERROR,
    source="FetchRequest.json, FetchResponse.json (KIP-516): UNKNOWN_TOPIC_ID (100), "
    "INCONSISTENT_TOPIC_ID (103), FETCH_SESSION_TOPIC_ID_ERROR (106)",
    asks="Errors about topic ids occur only in versions with topic ids (v13 and later); each "
    "topic of a response was requested, by the request or by its session.",
    example="error 100 in a Fetch v12 response",
    apis=("Fetch",),
    screen=Screen(
        one_judged, limits=usual_results, partitions=answers_whole_request, in_session=True
    ),
)
def check_topic_ids(observation: Observation, reporter: Reporter) -> None:
    """Check topic id errors against the version, and partitions against the requested ones."""
    fetch_request = fetch_request_of(observation)
    if not _is_complete(observation, reporter) or fetch_request is None:
        return
    topic_id_errors = (_UNKNOWN_TOPIC_ID, _INCONSISTENT_TOPIC_ID, _SESSION_TOPIC_ID)
    is_session_known = fetch_request.is_full or fetch_request.session is not None
    if is_session_known:
        reporter.count_judged()
    else:
        reporter.count_unjudged(_UNKNOWN_SESSION)
        if reporter.is_screened:
            return  # there is no error
    response = observation.response_body
    assert response is not None
    for index, (key, partition) in enumerate(partitions_of(response.responses)):
        if (
            observation.version or 0
        ) < FIRST_WITH_TOPIC_IDS and partition.error_code in topic_id_errors:
            reporter.report_violation(
                Side.BROKER,
                f"error {partition.error_code} in v{observation.version}, entry {index}",
            )
        elif is_session_known and fetch_request.offset_of(key) is None:
            found = f"'{key[0]}', partition {key[1]}, was not requested"
            reporter.report_violation(Side.BROKER, found, path="responses")


@rule(
    "X09",
    "Records returned together with a preferred read replica",
    Severity.ERROR,
    source="ReplicaManager.scala (readFromLog): with a preferred read replica the log is not read "
    "(KIP-392)",
    asks="Where preferred_read_replica is not -1, the records are empty.",
    example="preferred_read_replica 2 with records",
    apis=("Fetch",),
    screen=Screen(
        none_judged,
        limits=usual_results,
        rows=is_answered_fetch,
        count=partition_counts(_FIRST_WITH_PREFERRED_REPLICA),
    ),
)
def check_no_records_with_preferred_replica(observation: Observation, reporter: Reporter) -> None:
    """Report records returned together with a preferred read replica."""
    response = observation.response_body
    if not _is_complete(observation, reporter) or response is None:
        return
    for topic_index, topic in enumerate(response.responses or ()):
        for partition_index, partition in enumerate(topic.partitions or ()):
            replica = partition.get("preferred_read_replica")
            if replica is None:
                continue
            reporter.count_judged()
            if replica != -1 and partition.records:
                path = f"responses[{topic_index}].partitions[{partition_index}].records"
                found = f"{len(partition.records)} bytes with preferred read replica {replica}"
                reporter.report_violation(Side.BROKER, found, path=path)
