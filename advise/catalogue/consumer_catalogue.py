"""Advices on consumers."""

from __future__ import annotations

from advise.registry.advice import Rank, advice

COMMIT_PER_RECORD = advice(
    "commit-per-record",
    Rank.COSTLY,
    "Offsets committed for each record",
    what="A consumer commits so often that a commit advances offsets by a record or so.",
    cost="Each commit is a record in __consumer_offsets, replicated, before the next record is "
    "processed; the coordinator works as much as the leaders of the topic.",
    settings=(
        "commitAsync() for each poll() or every few seconds; or enable.auto.commit=true",
        "enable.auto.commit=true with offset store, or commit every few seconds",
        "AutoCommitMarks, or CommitRecords for each PollFetches",
        "MarkMessage with Consumer.Offsets.AutoCommit.Interval; no Commit() for each message",
        "commit() for each poll(), or enable_auto_commit=True",
        "eachBatch, or autoCommitInterval and autoCommitThreshold",
    ),
    source="Kafka's documentation of enable.auto.commit; Javadoc of KafkaConsumer (offset control)",
    count=(50, "commits of a client for a group"),
    seconds=(2, "seconds from the first to the last"),
    rate=(5, "commits a second"),
    advance=(1.5, "offsets that a commit advances, on average, at most"),
)

EMPTY_FETCHES = advice(
    "empty-fetches",
    Rank.COSTLY,
    "Fetch requests that find nothing, in quick succession",
    what="A consumer asks for records again and again, and nearly all answers are empty: it does "
    "not let the broker wait for records.",
    cost="Brokers, network and the client work without any record moved.",
    settings=(
        "fetch.max.wait.ms=500, fetch.min.bytes=1 or more",
        "fetch.wait.max.ms=500, fetch.min.bytes=1 or more",
        "kgo.FetchMaxWait(5*time.Second), kgo.FetchMinBytes(1)",
        "Consumer.MaxWaitTime=500*time.Millisecond, Consumer.Fetch.Min=1",
        "fetch_max_wait_ms=500, fetch_min_bytes=1 or more",
        "maxWaitTimeInMs: 5000, minBytes: 1",
    ),
    source="Kafka's documentation of fetch.max.wait.ms and fetch.min.bytes",
    count=(100, "Fetch requests of a connection"),
    seconds=(5, "seconds from the first to the last"),
    rate=(8, "empty answers a second on one connection"),
    share=(0.8, "part of the answers that are empty"),
)

OFFSETS_OUT_OF_RANGE = advice(
    "offsets-out-of-range",
    Rank.RISKY,
    "A consumer asks for offsets that the log does not have",
    what="Fetch requests are refused with OFFSET_OUT_OF_RANGE, and the consumer goes to the begin "
    "or the end of the log.",
    cost="Records between the old and the new position are skipped or read twice: retention was "
    "shorter than the consumer's delay, or the topic was created anew.",
    settings=(
        "auto.offset.reset=earliest or by_duration, retention longer than the lag",
        "auto.offset.reset=earliest or error, retention longer than the lag",
        "kgo.ConsumeResetOffset, retention longer than the lag",
        "Consumer.Offsets.Initial=OffsetOldest, ResetInvalidOffsets, retention longer than the lag",
        "auto_offset_reset='earliest', retention longer than the lag",
        "fromBeginning: true, retention longer than the lag",
    ),
    source="Kafka's documentation of auto.offset.reset; KIP-842, KIP-1106",
    count=(1, "refused Fetch requests"),
)

STOPS_POLLING = advice(
    "stops-polling",
    Rank.COSTLY,
    "A consumer leaves its group because it stopped polling",
    what="A consumer leaves its group when max.poll.interval.ms has passed since its last poll(), "
    "and joins again later.",
    cost="Its partitions move to others and back: two rebalances, and records of the last poll() "
    "are processed twice.",
    settings=(
        "max.poll.records lower, max.poll.interval.ms higher, or pause() and another thread",
        "max.poll.interval.ms higher, or work in another thread with pause()",
        "PollRecords with a limit; kgo.RebalanceTimeout higher; BlockRebalanceOnPoll with care",
        "Consumer.Group.Rebalance.Timeout higher, Consumer.MaxProcessingTime",
        "max_poll_records lower, max_poll_interval_ms higher",
        "heartbeat() within eachBatch, sessionTimeout higher",
    ),
    source="KIP-62 (max.poll.interval.ms), KIP-800 (the reason in LeaveGroup)",
    count=(1, "times that it left"),
)
"""Java and librdkafka send max.poll.interval.ms as the rebalance timeout of JoinGroup."""
