"""Detectors for consumers."""

from __future__ import annotations

from advise.catalogue.consumer_catalogue import (
    COMMIT_PER_RECORD,
    EMPTY_FETCHES,
    OFFSETS_OUT_OF_RANGE,
    STOPS_POLLING,
)
from advise.detectors.subject_judge import API_KEYS, Judge, detects, rate_of
from advise.evidence.tally import Total

_FETCH = API_KEYS["Fetch"]


@detects(COMMIT_PER_RECORD)
def commit_per_record(judge: Judge) -> None:
    """How far each commit advances the offsets: consumers fetch ahead, so fetches show nothing."""
    evidence = judge.evidence
    advances: dict[tuple[int, int], int] = {}
    for row in evidence.totals(evidence.groups.commits, "client", "group", "topic", "partition"):
        key = row["client"], row["group"]
        advances[key] = advances.get(key, 0) + row["most_offset"] - row["least_offset"]
    for row in judge.enough(evidence.totals(evidence.groups.commit_requests, "client", "group")):
        advanced = advances.get((row["client"], row["group"]), 0)
        advance, rate = advanced / max(row["count"] - 1, 1), rate_of(row)
        if advance <= judge.limit("advance") and rate >= judge.limit("rate"):
            group = evidence.names.groups.name(row["group"])
            kept = round(row["last_ns"] / 5e9) - round(row["first_ns"] / 5e9) + 1
            judge.add(
                row,
                judge.subject(row["client"], group=group),
                advance,
                "advance",
                "offsets that a commit advances",
                f"{row['count']:,} commits, {rate:,.0f} a second, advance the offsets by "
                f"{advanced:,}: {advance:.1f} each",
                f"{max(0, row['count'] - kept):,} of {row['count']:,} commits avoidable with one "
                "each 5 s.",
                ("OffsetCommit",),
            )


@detects(EMPTY_FETCHES)
def empty_fetches(judge: Judge) -> None:
    """Empty answers that come faster than any wait of a broker."""
    evidence = judge.evidence
    worst: dict[int, Total] = {}
    for row in judge.enough(evidence.totals(evidence.data.fetches, "client", "connection")):
        share, rate = row["empty"] / row["count"], rate_of(row, "empty")
        is_found = share >= judge.limit("share") and rate >= judge.limit("rate")
        if is_found and row["empty"] > worst.get(row["client"], {"empty": -1})["empty"]:
            worst[row["client"]] = row
    for client, row in worst.items():
        rate = rate_of(row, "empty")
        judge.add(
            row,
            judge.subject(client),
            rate,
            "rate",
            "empty answers a second",
            f"{row['empty']:,} of {row['count']:,} Fetch requests on a connection found nothing, "
            f"{rate:,.0f} a second, with a wait of at most {row['max_wait_ms']:,} ms",
            f"about {row['empty'] * max(0, 1 - 2 / rate):,.0f} of {row['count']:,} requests "
            "avoidable with a wait of 500 ms.",
            ("Fetch",),
        )


@detects(OFFSETS_OUT_OF_RANGE)
def offsets_out_of_range(judge: Judge) -> None:
    """Fetch requests that were refused for their offset."""
    evidence = judge.evidence
    judge.judged += len(evidence.totals(evidence.data.fetches, "client"))
    for row in evidence.totals(evidence.requests.errors, "client", "api", "error", "topic"):
        error = evidence.names.errors.name(row["error"])
        is_refused = row["api"] == _FETCH and error == "OFFSET_OUT_OF_RANGE"
        if is_refused and row["count"] >= judge.limit("count"):
            judge.add(
                row,
                judge.subject(row["client"], topic=evidence.topic(row["topic"])),
                row["count"],
                "count",
                "refused Fetch requests",
                f"{row['count']:,} Fetch requests refused with {error}",
                apis=("Fetch",),
                more=f"error == {error}",
            )


@detects(STOPS_POLLING)
def stops_polling(judge: Judge) -> None:
    """
    Members that leave when their poll interval has passed, and join again on the connection.

    Java says so in the reason. For others the rebalance timeout of JoinGroup is the poll interval.
    """
    evidence = judge.evidence
    keys = "client", "connection", "group"
    joins = {
        tuple(row[key] for key in keys): row
        for row in evidence.totals(evidence.groups.joins, *keys)
    }
    judge.judged += len(joins)
    found: dict[tuple[int, int], Total] = {}
    for row in evidence.totals(evidence.groups.leaves, *keys):
        joined = joins.get(tuple(row[key] for key in keys))
        times = row["polls"]
        if joined is not None and not times and joined["last_ns"] > row["first_ns"]:
            stayed_ms = (row["first_ns"] - joined["first_ns"]) / 1e6
            # The last one is the end of the consumer if nothing follows.
            left = row["count"] - (row["last_ns"] > joined["last_ns"])
            times = left if 0 < joined["timeout_ms"] <= stayed_ms + 1 else 0
        if times:
            place = row["client"], row["group"]
            before = found.get(place, {"times": 0})["times"]
            found[place] = {**row, "times": before + times}
    for (client, group), row in found.items():
        if row["times"] < judge.limit("count"):
            continue
        judge.add(
            row,
            judge.subject(client, group=evidence.names.groups.name(group)),
            row["times"],
            "count",
            "times that it left",
            f"left its group {row['times']:,} times because it had not polled in time, and "
            "joined again",
            f"{2 * row['times']:,} rebalances avoidable.",
            ("JoinGroup", "LeaveGroup", "ConsumerGroupHeartbeat"),
        )
