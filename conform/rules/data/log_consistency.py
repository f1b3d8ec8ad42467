"""L: the offsets of a log, as appends, fetches and questions for offsets tell of them."""

from __future__ import annotations

from itertools import pairwise

from conform.evidence.fetch_history import replica_id_of
from conform.evidence.log_extent import AppendedRange, LogClaim, LogExtents, OffsetBound
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from dissector.protocol.records import RecordBatch

_TOPIC_CHANGES = ("CreateTopics", "DeleteTopics")
_READ_COMMITTED = 1


def _is_incomplete(turn: Observation, say: Reporter) -> bool:
    """Tell whether an exchange can't be looked at, and say why."""
    why = turn.unreadable_reason() or turn.connection.gap_reason
    if why:
        say.count_unjudged(why)
    return bool(why)


@rule(
    "L01",
    "An append must get offsets of its own",
    Severity.ERROR,
    source="UnifiedLog.java (append): offsets are given from the log end on; a batch of an "
    "idempotent producer that is sent again keeps its offset. Of a topic that is known by name, "
    "which may have been made anew, and of two connections it is a warning",
    asks="The offsets that an append is answered with were not given to another append, and are "
    "above those of appends that were answered before it was sent.",
    example="two batches are both answered with base_offset 7",
    apis=("Produce", *_TOPIC_CHANGES),
)
def offsets_are_own(turn: Observation, say: Reporter) -> None:
    """Hold each append against those before it."""
    logs = turn.capture_state.state(LogExtents)
    claims = logs.claims_of(turn)
    if turn.exchange.api != "Produce" or _is_incomplete(turn, say):
        return
    sent_ns = turn.exchange.request_time_ns or 0
    for claim in claims:
        made, log = claim.append, logs.extent_of(claim.partition_key, claim.topic_id)
        if made is None or log is None:
            continue
        say.count_judged()
        for before in log.ranges:
            if before.producer == made.producer and made.producer[0] >= 0:
                continue  # T02 looks at batches that are sent again
            overlaps = made.first < before.end and before.first < made.end
            if overlaps or (before.response_ns < sent_ns and made.first < before.end):
                found = (
                    f"offset {made.first} is given, where {before.first} to {before.end - 1} were "
                    "given before"
                )
                _report_log(turn, say, claim, before, found)
                break


def _report_log(
    turn: Observation,
    say: Reporter,
    claim: LogClaim,
    before: AppendedRange | OffsetBound,
    found: str,
) -> None:
    """Say what a broker says wrong of a log: certain where it said otherwise on this connection."""
    is_certain = before.connection == turn.connection.number or claim.topic_id is not None
    severity = None if is_certain else Severity.WARNING
    say.report_violation(Side.BROKER, found, path=claim.path, severity=severity)


@rule(
    "L02",
    "High watermark and log start must not go back",
    Severity.ERROR,
    source="UnifiedLog.java (maybeIncrementHighWatermark, maybeIncrementLogStartOffset); with "
    "acks=all Produce is answered when the high watermark has passed the records",
    asks="What one broker tells of a partition in Fetch, ListOffsets, Produce and DeleteRecords is "
    "not below what it told before the request was sent.",
    example="high watermark 100, then 60",
    apis=("Produce", "Fetch", "ListOffsets", "DeleteRecords", *_TOPIC_CHANGES),
)
def log_ends_never_go_back(turn: Observation, say: Reporter) -> None:
    """Hold what is told of a log against what was told before."""
    logs = turn.capture_state.state(LogExtents)
    claims = logs.claims_of(turn)
    if turn.exchange.api in _TOPIC_CHANGES or _is_incomplete(turn, say):
        return
    sent_ns = turn.exchange.request_time_ns or 0
    for claim in claims:
        log = logs.extent_of(claim.partition_key, claim.topic_id)
        if log is None:
            continue
        say.count_judged()
        for what, now, before in (
            ("log end", claim.end, log.end),
            ("log start", claim.start, log.start),
        ):
            if now is None or before is None or before.response_ns >= sent_ns:
                continue
            if now < before.offset:
                found = f"the {what} is {now}, after {before.offset}"
                _report_log(turn, say, claim, before, found)


@rule(
    "L03",
    "A consumer must get no records from above the high watermark",
    Severity.WARNING,
    source="UnifiedLog.java (read, FetchIsolation), KIP-98; a broker reads the high watermark "
    "before the records, so it may have risen meanwhile: a warning",
    asks="The batches that a consumer is given begin below the high watermark, and below the last "
    "stable offset if it reads committed records.",
    example="a batch at offset 40, with high watermark 30",
    apis=("Fetch",),
)
def below_high_watermark(turn: Observation, say: Reporter) -> None:
    """Hold the batches of an answer against its offsets."""
    asked, told = turn.request_body, turn.response_body
    if asked is None or told is None:
        say.count_unjudged(turn.unreadable_reason())
        return
    if replica_id_of(asked) >= 0:
        return
    fields = {
        field.path: field for message, field in turn.record_fields if message is turn.response
    }
    stable = asked.get("isolation_level", 0) == _READ_COMMITTED
    for at, topic in enumerate(told.responses or ()):
        for number, each in enumerate(topic.partitions or ()):
            field = fields.get(f"responses[{at}].partitions[{number}].records")
            if each.error_code or field is None:
                continue
            ends = {"high watermark": each.high_watermark}
            if stable:
                ends["last stable offset"] = each.get("last_stable_offset", -1)
            batches = [batch for batch in field.batches if isinstance(batch, RecordBatch)]
            say.count_judged()
            for name, end in ends.items():
                above = [batch.base_offset for batch in batches if 0 <= end <= batch.base_offset]
                if above:
                    found = f"a batch at offset {above[0]}, {name} {end}"
                    say.report_violation(Side.BROKER, found, path=field.path)


@rule(
    "L04",
    "Fetched batches must be those that were appended",
    Severity.ERROR,
    source="DefaultRecordBatch.java: a batch keeps first and last offset, compacted or not; "
    "LeaderEpochFileCache.java: leader epochs of a log only rise",
    asks="A batch at offsets that the same broker gave to an append has the same first and last "
    "offset, and the leader epochs of a log's batches never go down.",
    example="a batch of 3 records was appended at offset 10, offsets 10 to 11 are fetched",
    apis=("Fetch",),
)
def as_appended(turn: Observation, say: Reporter) -> None:
    """Hold the batches of an answer against appends, and against each other."""
    if _is_incomplete(turn, say):
        return
    logs = turn.capture_state.state(LogExtents)
    logs.claims_of(turn)
    for message, field in turn.record_fields:
        batches = [b for b in field.batches if isinstance(b, RecordBatch) and not b.problems]
        name = turn.topic_name(field.topic, field.topic_id)
        log = logs.extent_of(
            (turn.connection.broker.address, name, field.partition), field.topic_id
        )
        say.count_judged()
        found = _epoch_decrease(batches) or (
            _appended_otherwise(batches, list(log.ranges)) if log else ""
        )
        if found:
            say.report_violation(Side.BROKER, found, message=message, path=field.path)


def _epoch_decrease(batches: list[RecordBatch]) -> str:
    """Return where the leader epoch of a batch is below the one before; empty: nowhere."""
    for one, two in pairwise(batch.partition_leader_epoch for batch in batches):
        if 0 <= two < one:
            return f"leader epoch {two} follows {one}"
    return ""


def _appended_otherwise(batches: list[RecordBatch], ranges: list[AppendedRange]) -> str:
    """Return which batch is not what was appended at its offsets; empty: all are."""
    for batch in batches:
        first, end = batch.base_offset, batch.base_offset + batch.last_offset_delta + 1
        for made in ranges:
            if first < made.end and made.first < end and (first, end) != (made.first, made.end):
                return (
                    f"offsets {first} to {end - 1} in a batch, {made.first} to {made.end - 1} were "
                    "appended at once"
                )
    return ""


@rule(
    "L05",
    "ListOffsets must answer the timestamp that was asked",
    Severity.ERROR,
    source="ListOffsetsResponse.json; UnifiedLog.java (fetchOffsetByTimestamp): the first record "
    "whose timestamp is not below the one asked for, else -1",
    asks="The record that is found for a timestamp of 0 or more is not older than that; for the "
    "latest and the earliest offset no timestamp is told, and an offset is.",
    example="timestamp 1000 is asked, a record of timestamp 900 is answered",
    apis=("ListOffsets",),
)
def timestamp_matches(turn: Observation, say: Reporter) -> None:
    """Hold the timestamps of an answer against those of the request."""
    asked, told = turn.request_body, turn.response_body
    if asked is None or told is None:
        say.count_unjudged(turn.unreadable_reason())
        return
    times = {
        (topic.name, each.partition_index): each.timestamp
        for topic in asked.topics or ()
        for each in topic.partitions or ()
    }
    for at, topic in enumerate(told.topics or ()):
        for number, each in enumerate(topic.partitions or ()):
            time = times.get((topic.name, each.partition_index))
            if time is None or each.error_code or "timestamp" not in each:
                continue
            say.count_judged()
            found = ""
            if time >= 0 <= each.offset and each.timestamp < time:
                found = f"timestamp {each.timestamp} is answered, {time} was asked"
            elif time in (-1, -2) and each.timestamp != -1:
                found = f"timestamp {each.timestamp} beside the end of a log"
            elif time in (-1, -2) and each.offset < 0:
                found = f"offset {each.offset} as the end of a log"
            if found:
                path = f"topics[{at}].partitions[{number}]"
                say.report_violation(Side.BROKER, found, path=path)
