"""Detectors for groups."""

from __future__ import annotations

from advise.catalogue.group_catalogue import (
    CLASSIC_GROUP,
    COMMITS_IN_REBALANCES,
    REBALANCE_LOOP,
    ZOMBIE_MEMBERS,
)
from advise.detectors.subject_judge import API_KEYS, Judge, detects, seconds_of
from advise.registry.advice_report import Subject

_EPOCH_HEARTBEAT, _JOIN = API_KEYS["ConsumerGroupHeartbeat"], API_KEYS["JoinGroup"]
_REFUSALS = {
    "REBALANCE_IN_PROGRESS",
    "ILLEGAL_GENERATION",
    "UNKNOWN_MEMBER_ID",
    "STALE_MEMBER_EPOCH",
}
_FENCED = {
    *("FENCED_INSTANCE_ID", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"),
    *("FENCED_MEMBER_EPOCH", "UNRELEASED_INSTANCE_ID"),
}


@detects(REBALANCE_LOOP)
def rebalance_loop(judge: Judge) -> None:
    """Generations of a group in the time in which it was seen, with the timeline's reasons."""
    evidence = judge.evidence
    seen = {row["group"]: row for row in evidence.totals(evidence.groups.seen, "group")}
    totals = []
    for row in evidence.totals(evidence.groups.generations, "group"):
        rebalances = row["most_generation"] - row["least_generation"]
        totals.append({**seen.get(row["group"], row), "count": rebalances})
    for row in judge.enough(totals):
        rate = row["count"] / seconds_of(row) * 60
        if rate < judge.limit("rate"):
            continue
        group = evidence.names.groups.name(row["group"])
        reasons = evidence.explanations.reasons.get(group)
        why = ", ".join(f"{cause} ({n})" for cause, n in reasons.most_common(3)) if reasons else ""
        judge.add(
            row,
            Subject(group=group),
            rate,
            "rate",
            "rebalances a minute",
            f"{row['count']:,} rebalances in {seconds_of(row):,.0f} s"
            + (f", because: {why}" if why else ""),
            f"its members stopped {row['count']:,} times, on average after "
            f"{seconds_of(row) / row['count']:.1f} s of work.",
            ("JoinGroup", "SyncGroup", "LeaveGroup", "ConsumerGroupHeartbeat"),
        )


@detects(COMMITS_IN_REBALANCES)
def commits_in_rebalances(judge: Judge) -> None:
    """Commits of a generation that is over."""
    evidence = judge.evidence
    judge.judged += len(evidence.totals(evidence.groups.commit_requests, "client"))
    commits = {API_KEYS["OffsetCommit"], API_KEYS["TxnOffsetCommit"]}
    refused: dict[int, dict[str, int]] = {}
    for row in evidence.totals(evidence.requests.errors, "client", "api", "error"):
        error = evidence.names.errors.name(row["error"])
        if row["api"] in commits and error in _REFUSALS:
            before = refused.get(row["client"])
            refused[row["client"]] = {**(before or row)}
            refused[row["client"]]["count"] = row["count"] + (before or {"count": 0})["count"]
    for client, total in refused.items():
        if total["count"] >= judge.limit("count"):
            judge.add(
                total,
                judge.subject(client),
                total["count"],
                "count",
                "refused commits",
                f"{total['count']:,} commits refused because the group had moved on",
                apis=("OffsetCommit", "TxnOffsetCommit"),
                more="error in {" + ", ".join(sorted(_REFUSALS)) + "}",
            )


@detects(CLASSIC_GROUP)
def classic_group(judge: Judge) -> None:
    """Joins of classic consumer groups at brokers that offer ConsumerGroupHeartbeat."""
    evidence = judge.evidence
    calls = evidence.totals(evidence.requests.calls, "connection", "broker", "api")
    brokers = {row["connection"]: row["broker"] for row in calls if row["api"] == _JOIN}
    found: dict[int, dict[str, int]] = {}
    for row in evidence.totals(evidence.groups.joins, "connection", "group", "is_epoch"):
        if row["is_epoch"] or row["connection"] not in brokers:
            continue
        offers = evidence.offers.offers.get(evidence.names.brokers.name(brokers[row["connection"]]))
        if offers is None:
            judge.unjudged["the broker's versions are not in the capture"] += 1
            continue
        judge.judged += 1
        if _EPOCH_HEARTBEAT in offers:
            before = found.get(row["group"])
            found[row["group"]] = {**(before or row)}
            found[row["group"]]["count"] = row["count"] + (before or {"count": 0})["count"]
            found[row["group"]]["last_ns"] = row["last_ns"]
    for group, total in found.items():
        if total["count"] >= judge.limit("count"):
            judge.add(
                total,
                Subject(group=evidence.names.groups.name(group)),
                total["count"],
                "count",
                "joins",
                f"{total['count']:,} joins with the classic protocol, at a broker that offers "
                "ConsumerGroupHeartbeat",
                apis=("JoinGroup",),
            )


@detects(ZOMBIE_MEMBERS)
def zombie_members(judge: Judge) -> None:
    """Requests of those that the broker has fenced."""
    evidence = judge.evidence
    judge.judged += 1
    for row in evidence.totals(evidence.requests.errors, "client", "error"):
        error = evidence.names.errors.name(row["error"])
        if error in _FENCED and row["count"] >= judge.limit("count"):
            judge.add(
                row,
                judge.subject(row["client"]),
                row["count"],
                "count",
                "refused requests",
                f"{row['count']:,} requests refused with {error}",
                more=f"error == {error}",
            )
