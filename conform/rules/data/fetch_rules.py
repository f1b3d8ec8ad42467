"""X, first part: what a Fetch response may hold."""

from __future__ import annotations

from itertools import pairwise

from construct import Container

from conform.evidence.fetch_history import FIRST_WITH_TOPIC_IDS, fetch_request_of, partitions_of
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from dissector.protocol.carried import RecordsField
from dissector.protocol.messages import Message
from dissector.protocol.records import Batch, RecordBatch, UnreadBatch

READ_COMMITTED = 1
_FIRST_WITH_WHOLE_BATCH = 3
_FIRST_WITH_ISOLATION = 4
_UNKNOWN_TOPIC_ID, _INCONSISTENT_TOPIC_ID, _SESSION_TOPIC_ID = 100, 103, 106
_ABORT = "ABORT"


def _is_complete(turn: Observation, say: Reporter) -> bool:
    """Tell whether request and response can be looked at; else say why not."""
    why = turn.unreadable_reason()
    if why:
        say.count_unjudged(why)
    return not why


def _records_fields(turn: Observation) -> list[tuple[Message, RecordsField]]:
    """Return the `records` fields of the response."""
    return [(message, field) for message, field in turn.record_fields if message is turn.response]


def _topic_key(field: RecordsField) -> object:
    return field.topic_id if field.topic is None else field.topic


def _last_offset(batch: Batch) -> int | None:
    """Return the last offset of a batch; None where it can't be told."""
    if isinstance(batch, RecordBatch):
        return batch.base_offset + batch.last_offset_delta
    return None if isinstance(batch, UnreadBatch) else batch.offset


@rule(
    "X01",
    "What is fetched covers the offset that was asked for",
    Severity.ERROR,
    source="UnifiedLog.java (read), LogSegment.java (translateOffset): the first batch whose last "
    "offset is not below the one asked for, whole; compaction may have left a hole there",
    asks="The first batch of a partition does not end before the offset that was asked for, and "
    "each batch ends above the one before it.",
    example="offset 12 is asked for, batches up to offset 9 are returned",
    apis=("Fetch",),
)
def covers_the_offset(turn: Observation, say: Reporter) -> None:
    """Hold the batches against the offset that was asked for."""
    fetching = fetch_request_of(turn)
    if not _is_complete(turn, say) or fetching is None:
        return
    for message, field in _records_fields(turn):
        ends = [end for end in map(_last_offset, field.batches) if end is not None]
        if not ends:
            continue
        offset = fetching.offset_of((_topic_key(field), field.partition))  # type: ignore[arg-type]
        if offset is None:
            say.count_unjudged("the beginning of the fetch session is not in the capture")
            continue
        say.count_judged()
        found = ""
        if ends[0] < offset:
            found = f"offset {offset} was asked for, the first batch ends at {ends[0]}"
        elif falls := [pair for pair in pairwise(ends) if pair[0] >= pair[1]]:
            found = f"a batch that ends at {falls[0][1]} follows one that ends at {falls[0][0]}"
        if found:
            say.report_violation(Side.BROKER, found, message=message, path=field.path)


@rule(
    "X02",
    "At least one whole batch is returned, however large",
    Severity.ERROR,
    source="ReplicaManager.scala (readFromLog, minOneMessage); KIP-74: a client whose limits are "
    "smaller than a batch would never get on",
    asks="From v3 on records that are returned for a partition begin with a whole batch.",
    example="a Fetch v11 response that holds 1,000 bytes of a batch of 5,000",
    apis=("Fetch",),
)
def one_complete_batch(turn: Observation, say: Reporter) -> None:
    """Ask whether anything but a part of a batch is returned."""
    if not _is_complete(turn, say) or (turn.version or 0) < _FIRST_WITH_WHOLE_BATCH:
        return
    for message, field in _records_fields(turn):
        if not field.batches:
            continue
        say.count_judged()
        first = field.batches[0]
        if isinstance(first, UnreadBatch) and first.partial:
            found = f"nothing but {len(first.data)} bytes of a batch"
            say.report_violation(Side.BROKER, found, message=message, path=field.path)


@rule(
    "X03",
    "Log start, last stable offset and high watermark are in order",
    Severity.ERROR,
    source="UnifiedLog.java: logStartOffset <= lastStableOffset <= highWatermark; below the log "
    "start a fetch is answered with OFFSET_OUT_OF_RANGE. A broker reads the high watermark first "
    "(Partition.scala, readRecords), so what is above it is a warning",
    asks="Where a partition has no error, its log start is not above its high watermark nor above "
    "the offset that was asked for, and its last stable offset is not above its high watermark.",
    example="log_start_offset 50 in an answer to a fetch at offset 12, without an error",
    apis=("Fetch",),
)
def offsets_in_order(turn: Observation, say: Reporter) -> None:
    """Hold the offsets that a broker tells of a partition against each other."""
    fetching = fetch_request_of(turn)
    if not _is_complete(turn, say) or fetching is None or turn.response_body is None:
        return
    for index, topic in enumerate(turn.response_body.responses or ()):
        for number, each in enumerate(topic.partitions or ()):
            if each.error_code or each.high_watermark < 0:
                continue
            say.count_judged()
            key = topic.get("topic", topic.get("topic_id")), each.partition_index
            asked = fetching.offset_of(key)
            start, stable = each.get("log_start_offset", -1), each.get("last_stable_offset", -1)
            found, severity = "", Severity.WARNING
            if start > each.high_watermark:
                found = f"log start {start}, high watermark {each.high_watermark}"
            elif stable > each.high_watermark:
                found = f"last stable offset {stable}, high watermark {each.high_watermark}"
            elif asked is not None and start > asked:
                found = f"log start {start}, though offset {asked} was asked for"
                severity = Severity.ERROR
            if found:
                path = f"responses[{index}].partitions[{number}]"
                say.report_violation(Side.BROKER, found, path=path, severity=severity)


@rule(
    "X04",
    "Aborted transactions are listed for those who read committed",
    Severity.ERROR,
    source="FetchResponse.json, UnifiedLog.java (collectAbortedTransactions); "
    "what others are sent is harmless, so a warning; controllers send an empty list",
    asks="With isolation level 1 each transaction whose ABORT marker is among the records is in "
    "the list, from an offset not after its first record there; with level 0 the list is empty.",
    example="records and the ABORT marker of producer 7, and an empty list",
    apis=("Fetch",),
)
def aborted_transactions_listed(turn: Observation, say: Reporter) -> None:
    """Hold the list of aborted transactions against the records."""
    if (turn.version or 0) < _FIRST_WITH_ISOLATION or not _is_complete(turn, say):
        return
    assert turn.request_body is not None
    assert turn.response_body is not None
    committed = turn.request_body.isolation_level == READ_COMMITTED
    batches = {field.path: field.batches for _, field in _records_fields(turn)}
    for index, topic in enumerate(turn.response_body.responses or ()):
        for number, each in enumerate(topic.partitions or ()):
            if each.error_code:
                continue
            say.count_judged()
            path = f"responses[{index}].partitions[{number}]"
            listed = each.aborted_transactions
            if not committed:
                if listed:
                    found = f"{len(listed)} aborted transactions are listed for level 0"
                    place = f"{path}.aborted_transactions"
                    say.report_violation(Side.BROKER, found, path=place, severity=Severity.WARNING)
                continue
            found = _unlisted_abort(batches.get(f"{path}.records", []), listed or [])
            if found:
                say.report_violation(Side.BROKER, found, path=f"{path}.aborted_transactions")


def _unlisted_abort(batches: list[Batch], listed: list[Container]) -> str:
    """Return which aborted transaction among some batches is not in the list; empty: none."""
    begun: dict[int, int] = {}
    for batch in batches:
        if not isinstance(batch, RecordBatch) or not batch.transactional:
            continue
        producer = batch.producer_id
        if not batch.control:
            begun.setdefault(producer, batch.base_offset)
            continue
        first = begun.pop(producer, None)
        kinds = [record.control_type for record in batch.records]
        if first is None or kinds != [_ABORT]:
            continue
        if not any(each.producer_id == producer and each.first_offset <= first for each in listed):
            return f"the transaction of producer {producer} from offset {first} on is not listed"
    return ""


@rule(
    "X07",
    "From v13 on Fetch names topics by id, and before it by name",
    Severity.ERROR,
    source="FetchRequest.json, FetchResponse.json (KIP-516): UNKNOWN_TOPIC_ID (100), "
    "INCONSISTENT_TOPIC_ID (103), FETCH_SESSION_TOPIC_ID_ERROR (106)",
    asks="Errors about topic ids stand only in answers of versions that have ids; each topic of an "
    "answer is one that the request or its session asks for.",
    example="error 100 in Fetch v12",
    apis=("Fetch",),
)
def topics_by_id(turn: Observation, say: Reporter) -> None:
    """Look at the errors of an answer, and at whom they are about."""
    fetching = fetch_request_of(turn)
    if not _is_complete(turn, say) or fetching is None or turn.response_body is None:
        return
    about_ids = (_UNKNOWN_TOPIC_ID, _INCONSISTENT_TOPIC_ID, _SESSION_TOPIC_ID)
    all_known = fetching.is_full or fetching.session is not None
    if all_known:
        say.count_judged()
    else:
        say.count_unjudged("the beginning of the fetch session is not in the capture")
    for at, (key, each) in enumerate(partitions_of(turn.response_body.responses)):
        if (turn.version or 0) < FIRST_WITH_TOPIC_IDS and each.error_code in about_ids:
            say.report_violation(
                Side.BROKER, f"error {each.error_code} in v{turn.version}, entry {at}"
            )
        elif all_known and fetching.offset_of(key) is None:
            found = f"'{key[0]}', partition {key[1]}, was not asked for"
            say.report_violation(Side.BROKER, found, path="responses")


@rule(
    "X09",
    "Who is sent to another replica gets no records",
    Severity.ERROR,
    source="ReplicaManager.scala (readFromLog): with a preferred read replica the log is not read "
    "(KIP-392)",
    asks="Where preferred_read_replica is not -1, the records are empty.",
    example="preferred_read_replica 2 beside records",
    apis=("Fetch",),
)
def no_records_with_preferred_replica(turn: Observation, say: Reporter) -> None:
    """Look for records beside a preferred read replica."""
    if not _is_complete(turn, say) or turn.response_body is None:
        return
    for index, topic in enumerate(turn.response_body.responses or ()):
        for number, each in enumerate(topic.partitions or ()):
            replica = each.get("preferred_read_replica")
            if replica is None:
                continue
            say.count_judged()
            if replica != -1 and each.records:
                path = f"responses[{index}].partitions[{number}].records"
                found = f"{len(each.records)} bytes beside preferred read replica {replica}"
                say.report_violation(Side.BROKER, found, path=path)
