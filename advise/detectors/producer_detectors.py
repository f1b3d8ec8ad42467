"""Detectors for producers."""

from __future__ import annotations

from advise.catalogue.producer_catalogue import (
    ACKS_0,
    HOT_KEY,
    NO_COMPRESSION,
    NOT_IDEMPOTENT,
    OPEN_TRANSACTION,
    PARTITION_SKEW,
    PRODUCER_PER_RECORD,
    TINY_BATCHES,
    TOO_LARGE,
)
from advise.detectors.subject_judge import API_KEYS, Judge, detects, rate_of, seconds_of
from advise.evidence.data_tallies import Trial
from advise.evidence.tally import Total
from advise.registry.advice_report import Subject

_PRODUCE = API_KEYS["Produce"]


def producing_connections(judge: Judge) -> dict[int, Total]:
    """Return the Produce requests of connections, by connection, with their broker."""
    calls = judge.evidence.totals(
        judge.evidence.requests.calls, "client", "connection", "broker", "api"
    )
    return {row["connection"]: row for row in calls if row["api"] == _PRODUCE}


@detects(PRODUCER_PER_RECORD)
def producer_per_record(judge: Judge) -> None:
    """Producers are connections with Produce requests, at the broker that has most of a client."""
    evidence = judge.evidence
    records = {
        row["connection"]: row["records"]
        for row in evidence.totals(evidence.data.produced, "connection")
    }
    by_broker: dict[tuple[int, int], list[Total]] = {}
    for row in producing_connections(judge).values():
        by_broker.setdefault((row["client"], row["broker"]), []).append(row)
    most: dict[int, list[Total]] = {}
    for (client, _), rows in by_broker.items():
        if len(rows) > len(most.get(client, ())):
            most[client] = rows
    for client, rows in most.items():
        total = _in_sequence(rows)
        for row in judge.enough([total]):
            each = sum(records.get(one["connection"], 0) for one in rows) / len(rows)
            rate = rate_of(row) * 60
            if each <= judge.limit("records") and rate >= judge.limit("rate"):
                judge.add(
                    row,
                    judge.subject(client),
                    rate,
                    "rate",
                    "producers a minute",
                    f"{row['count']:,} producers one after the other, {rate:,.0f} a minute, "
                    f"with {each:.1f} records each",
                    f"{row['count'] - 1:,} of {row['count']:,} producers avoidable, each with its "
                    "connections, logins and metadata.",
                    ("Produce", "InitProducerId", "ApiVersions"),
                )


def _in_sequence(rows: list[Total]) -> Total:
    """Return the totals of those connections that began after the one before had ended."""
    chosen: list[Total] = []
    for row in sorted(rows, key=lambda each: each["first_ns"]):
        if not chosen or row["first_ns"] >= chosen[-1]["last_ns"]:
            chosen.append(row)
    first, last = chosen[0], chosen[-1]
    return {
        "count": len(chosen),
        **{name: first[name] for name in ("first_ns", "first_packet")},
        **{name: last[name] for name in ("last_ns", "last_packet")},
    }


@detects(TINY_BATCHES)
def tiny_batches(judge: Judge) -> None:
    """Records a request, of connections that could have waited a moment."""
    evidence = judge.evidence
    produced = {
        row["connection"]: row for row in evidence.totals(evidence.data.produced, "connection")
    }
    worst: dict[int, tuple[float, Total]] = {}
    for row in judge.enough(producing_connections(judge).values()):
        data = produced.get(row["connection"])
        if data is None or data["wrappers"]:
            continue  # the records of compressed message sets are not counted
        each, rate = data["records"] / row["count"], rate_of(row)
        is_found = each <= judge.limit("records") and rate >= judge.limit("rate")
        avoidable = row["count"] - row["bursts"]
        if is_found and avoidable > worst.get(row["client"], (0, {"avoidable": 0}))[1]["avoidable"]:
            worst[row["client"]] = each, {**row, "avoidable": avoidable}
    for client, (each, row) in worst.items():
        judge.add(
            row,
            judge.subject(client),
            each,
            "records",
            "records a request",
            f"{row['count']:,} Produce requests on a connection, {rate_of(row):,.0f} a second, "
            f"with {each:.1f} records each",
            f"{row['avoidable']:,} of {row['count']:,} requests avoidable with a linger of "
            f"{judge.limit('linger_ms'):g} ms.",
            ("Produce",),
        )


@detects(NO_COMPRESSION)
def no_compression(judge: Judge) -> None:
    """Bytes without a codec, where a sample of them compresses."""
    evidence = judge.evidence
    for row in judge.enough(evidence.totals(evidence.data.produced, "client"), "plain_records"):
        trial = evidence.data.trials.get(row["client"], Trial())
        saving = 1 - trial.packed / trial.plain if trial.plain else 0.0
        if row["plain_bytes"] >= judge.limit("bytes") and saving >= judge.limit("saving"):
            saved = row["plain_bytes"] * saving
            judge.add(
                {**row, "count": row["plain_batches"]},
                judge.subject(row["client"]),
                saving,
                "saving",
                "part of the bytes that zstd saves",
                f"{row['plain_batches']:,} of {row['batches']:,} batches without compression, "
                f"{row['plain_bytes']:,} bytes",
                f"zstd saves {saving:.0%} of {trial.batches:,} batches on trial: about "
                f"{saved:,.0f} bytes avoidable, again for each replica and each consumer.",
                ("Produce",),
            )


@detects(NOT_IDEMPOTENT)
def not_idempotent(judge: Judge) -> None:
    """Records without a producer id."""
    evidence = judge.evidence
    rows = evidence.totals(evidence.data.produced, "client")
    for row in judge.enough(rows, "records"):
        share = row["unnumbered"] / max(row["records"], 1)
        if share >= judge.limit("share"):
            judge.add(
                {**row, "count": row["batches"]},
                judge.subject(row["client"]),
                share,
                "share",
                "part of the records without a producer id",
                f"{row['unnumbered']:,} of {row['records']:,} records without a producer id",
                apis=("Produce",),
            )


@detects(ACKS_0)
def acks_0(judge: Judge) -> None:
    """Produce requests that expect no response."""
    evidence = judge.evidence
    for row in judge.enough(evidence.totals(evidence.data.unacknowledged, "client")):
        judge.add(
            row,
            judge.subject(row["client"]),
            row["count"],
            "count",
            "Produce requests with acks=0",
            f"{row['count']:,} Produce requests with acks=0",
            apis=("Produce",),
            more="request.acks == 0",
        )


@detects(TOO_LARGE)
def too_large(judge: Judge) -> None:
    """Batches that brokers refused."""
    wanted = {"MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"}
    evidence = judge.evidence
    if any(producing_connections(judge)):
        judge.judged += 1
    for row in evidence.totals(evidence.requests.errors, "client", "api", "error", "topic"):
        error = evidence.names.errors.name(row["error"])
        if error in wanted and row["count"] >= judge.limit("count"):
            judge.add(
                row,
                judge.subject(row["client"], topic=evidence.topic(row["topic"])),
                row["count"],
                "count",
                "refused Produce requests",
                f"{row['count']:,} Produce requests refused with {error}",
                apis=("Produce",),
                more=f"error == {error}",
            )


@detects(PARTITION_SKEW)
def partition_skew(judge: Judge) -> None:
    """The fullest partition of a topic, compared with an equal share."""
    evidence = judge.evidence
    totals = {row["topic"]: row for row in evidence.totals(evidence.data.produced, "topic")}
    fullest: dict[int, Total] = {}
    seen: dict[int, int] = {}
    for row in evidence.totals(evidence.data.produced, "topic", "partition"):
        seen[row["topic"]] = seen.get(row["topic"], 0) + 1
        if row["records"] > fullest.get(row["topic"], {"records": -1})["records"]:
            fullest[row["topic"]] = row
    for row in judge.enough(totals.values(), "records"):
        topic = row["topic"]
        partitions = max(seen[topic], evidence.cluster.partitions.get(topic, 0))
        share = fullest[topic]["records"] / max(row["records"], 1)
        # Two partitions never differ from equal shares by more than 2 times.
        least = min(judge.limit("times"), 0.9 * partitions)
        if partitions > 1 and share * partitions >= least:
            judge.add(
                {**fullest[topic], "count": fullest[topic]["records"]},
                Subject(topic=evidence.topic(topic)),
                share * partitions,
                "times",
                "times of an equal share",
                f"partition {fullest[topic]['partition']} of {partitions} has {share:.0%} of "
                f"{row['records']:,} records",
                f"The work of {partitions} partitions is done at the pace of one: "
                f"{share * partitions:.1f} times of an equal share.",
                ("Produce",),
            )


@detects(HOT_KEY)
def hot_key(judge: Judge) -> None:
    """The most frequent key in a sample of a topic's records."""
    evidence = judge.evidence
    totals = {row["topic"]: row for row in evidence.totals(evidence.data.produced, "topic")}
    for topic, keys in evidence.keys.of_topic().items():
        sampled = sum(count for count, _ in keys)
        if topic not in totals:
            continue
        for row in judge.enough([{**totals[topic], "count": sampled}]):
            count, key = keys[0]
            share = count / sampled
            if len(keys) > 1 and share >= judge.limit("share"):
                text = key[:64].decode("utf-8", "backslashreplace")
                judge.add(
                    row,
                    Subject(topic=evidence.topic(topic)),
                    share,
                    "share",
                    "part of the sampled records",
                    f"the key {text} is on {share:.0%} of {sampled:,} sampled records, "
                    f"of {len(keys):,} keys",
                    apis=("Produce",),
                )


@detects(OPEN_TRANSACTION)
def open_transaction(judge: Judge) -> None:
    """Transactions whose last write came after their last end."""
    evidence = judge.evidence
    ends = {
        row["transaction"]: row["last_ns"]
        for row in evidence.totals(evidence.groups.ends, "transaction")
    }
    for row in evidence.totals(evidence.groups.writes, "client", "transaction"):
        waited = {**row, "first_ns": row["last_ns"], "last_ns": evidence.span.end_ns}
        judge.judged += 1
        is_open = row["last_ns"] > ends.get(row["transaction"], 0)
        if is_open and seconds_of(waited) >= judge.limit("seconds"):
            name = evidence.names.transactions.name(row["transaction"])
            judge.add(
                {**waited, "first_packet": row["last_packet"]},
                judge.subject(row["client"]),
                seconds_of(waited),
                "seconds",
                "seconds without an end",
                f"transaction {name} still open {seconds_of(waited):,.0f} s after its last write",
                apis=("Produce", "AddPartitionsToTxn", "EndTxn"),
            )
