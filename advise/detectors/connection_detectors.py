"""Detectors for connections, metadata, logins and refused requests."""

from __future__ import annotations

from collections.abc import Callable

from advise.catalogue.connection_catalogue import (
    CONNECTION_PER_REQUEST,
    DENIED_LOOP,
    HUNG_REQUESTS,
    MANY_TOPICS,
    METADATA_STORM,
    REAUTHENTICATION,
    STALE_LEADER,
    THROTTLING,
    UNKNOWN_TOPIC_LOOP,
)
from advise.detectors.subject_judge import API_KEYS, API_NAMES, Judge, detects, rate_of
from advise.evidence.tally import Total

_PREPARING = {
    API_KEYS[name]
    for name in (
        "ApiVersions",
        "SaslHandshake",
        "SaslAuthenticate",
        "Metadata",
        "InitProducerId",
    )
}
"""What clients send before what they connected for."""

_OF_METADATA = (API_KEYS["Metadata"], API_KEYS["DescribeTopicPartitions"])


@detects(CONNECTION_PER_REQUEST)
def connection_per_request(judge: Judge) -> None:
    """Connections of a client to a broker, and the requests on each."""
    evidence = judge.evidence
    calls = evidence.requests.calls
    own: dict[int, int] = {}
    for row in evidence.totals(calls, "connection", "api"):
        if row["api"] not in _PREPARING:
            own[row["connection"]] = own.get(row["connection"], 0) + row["count"]
    found: dict[tuple[int, int], list[Total]] = {}
    for row in evidence.totals(calls, "client", "broker", "connection"):
        found.setdefault((row["client"], row["broker"]), []).append(row)
    worst: dict[int, tuple[int, Total, int]] = {}
    for (client, broker), rows in found.items():
        total = {
            "count": len(rows),
            "first_ns": min(row["first_ns"] for row in rows),
            "last_ns": max(row["first_ns"] for row in rows),
            "first_packet": min(row["first_packet"] for row in rows),
            "last_packet": max(row["last_packet"] for row in rows),
        }
        for row in judge.enough([total]):
            requests = sum(own.get(one["connection"], 0) for one in rows)
            is_found = requests / len(rows) <= judge.limit("requests")
            is_found &= rate_of(row) * 60 >= judge.limit("rate")
            if is_found and len(rows) > worst.get(client, (0, {"count": 0}, 0))[1]["count"]:
                worst[client] = broker, row, requests
    for client, (broker, row, requests) in worst.items():
        judge.add(
            row,
            judge.subject(client, broker=evidence.names.brokers.name(broker)),
            requests / row["count"],
            "requests",
            "requests of a connection",
            f"{row['count']:,} connections, {rate_of(row) * 60:,.0f} a minute, for "
            f"{requests:,} requests beyond versions, login and metadata",
            f"{row['count'] - 1:,} of {row['count']:,} connections avoidable.",
        )


@detects(METADATA_STORM)
def metadata_storm(judge: Judge) -> None:
    """Metadata requests of a client, and those for the partitions of topics (KIP-966)."""
    evidence = judge.evidence
    asked: dict[int, Total] = {}
    for row in evidence.totals(evidence.requests.calls, "client", "api"):
        if row["api"] in _OF_METADATA:
            before = asked.get(row["client"])
            asked[row["client"]] = _sum(before, row) if before else row
    for row in judge.enough(asked.values()):
        rate = rate_of(row) * 60
        # A request for each connection belongs to connecting, which has an advice of its own.
        is_storm = row["count"] > 3 * len(evidence.connections.get(row["client"], ()))
        if rate >= judge.limit("rate") and is_storm:
            judge.add(
                row,
                judge.subject(row["client"]),
                rate,
                "rate",
                "Metadata requests a minute",
                f"{row['count']:,} Metadata requests, {rate:,.0f} a minute",
                f"{row['bytes']:,} bytes of requests and responses; one each 5 minutes is the "
                "default of clients.",
                [API_NAMES[each] for each in _OF_METADATA],
            )


def _sum(one: Total, other: Total) -> Total:
    """Return the totals of both."""
    return {
        **{name: one[name] + other[name] for name in ("count", "bytes")},
        **{name: min(one[name], other[name]) for name in ("first_ns", "first_packet")},
        **{name: max(one[name], other[name]) for name in ("last_ns", "last_packet")},
        "client": one["client"],
    }


@detects(MANY_TOPICS)
def many_topics(judge: Judge) -> None:
    """Metadata responses with many topics."""
    evidence = judge.evidence
    found: dict[int, dict[str, int]] = {}
    for row in evidence.totals(evidence.cluster.metadata, "client", "topics"):
        judge.judged += 1
        if row["topics"] >= judge.limit("topics"):
            before = found.get(row["client"], {**row, "count": 0, "bytes": 0})
            found[row["client"]] = {
                **before,
                "topics": max(before["topics"], row["topics"]),
                "count": before["count"] + row["count"],
                "bytes": before["bytes"] + row["bytes"],
            }
    for client, total in found.items():
        if total["count"] >= judge.limit("count"):
            judge.add(
                total,
                judge.subject(client),
                total["topics"],
                "topics",
                "topics in a response",
                f"{total['count']:,} Metadata requests for up to {total['topics']:,} topics",
                f"{total['bytes']:,} bytes of responses.",
                ("Metadata",),
            )


def _loops(judge: Judge, is_wanted: Callable[[str], bool], what: str) -> None:
    """Add the clients that go on with requests that have some errors."""
    evidence = judge.evidence
    errors = evidence.names.errors
    rows = evidence.totals(evidence.requests.errors, "client", "error", "topic")
    for row in judge.enough(row for row in rows if is_wanted(errors.name(row["error"]))):
        error = errors.name(row["error"])
        judge.add(
            row,
            judge.subject(row["client"], topic=evidence.topic(row["topic"])),
            row["count"],
            "count",
            "refused requests",
            f"{row['count']:,} requests {what} with {error}, {rate_of(row):.1f} a second",
            f"{row['count']:,} requests avoidable.",
            more=f"error == {error}",
        )
    if not evidence.requests.errors.by("client"):
        judge.judged += 1


@detects(UNKNOWN_TOPIC_LOOP)
def unknown_topic_loop(judge: Judge) -> None:
    """Requests for unknown topics."""
    _loops(
        judge,
        {"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"}.__contains__,
        "answered",
    )


@detects(DENIED_LOOP)
def denied_loop(judge: Judge) -> None:
    """Requests without rights."""
    _loops(judge, lambda error: error.endswith("_AUTHORIZATION_FAILED"), "denied")


@detects(STALE_LEADER)
def stale_leader(judge: Judge) -> None:
    """Requests to a broker that does not lead the partition."""
    wanted = {"NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "LEADER_NOT_AVAILABLE"}
    _loops(judge, wanted.__contains__, "refused")


@detects(REAUTHENTICATION)
def reauthentication(judge: Judge) -> None:
    """Lifetimes of sessions in SaslAuthenticate responses."""
    evidence = judge.evidence
    for row in judge.enough(evidence.totals(evidence.cluster.lifetimes, "client", "lifetime_ms")):
        lifetime = row["lifetime_ms"] / 1000
        if lifetime < judge.limit("lifetime"):
            judge.add(
                row,
                judge.subject(row["client"]),
                lifetime,
                "lifetime",
                "seconds that a session lives",
                f"{row['count']:,} logins whose sessions live {lifetime:,.1f} s",
                f"about {3600 / max(lifetime, 0.001):,.0f} logins an hour on each connection.",
                ("SaslAuthenticate",),
            )


@detects(HUNG_REQUESTS)
def hung_requests(judge: Judge) -> None:
    """Requests without an answer until their connection, or the capture, ended, or too late."""
    evidence = judge.evidence
    judge.judged += 1
    for row in evidence.totals(evidence.requests.hung, "client", "broker", "api"):
        if row["count"] >= judge.limit("count"):
            api = API_NAMES.get(row["api"], str(row["api"]))
            seconds = row["wait_ms"] / 1000
            judge.add(
                row,
                judge.subject(row["client"], broker=evidence.names.brokers.name(row["broker"])),
                seconds,
                "seconds",
                "seconds without an answer",
                f"{row['count']:,} {api} requests without an answer, for up to {seconds:,.0f} s",
                apis=(api,) if row["api"] in API_NAMES else (),
                more=f"(status == unanswered or latency_ms >= {judge.limit('seconds') * 1000:g})",
            )


@detects(THROTTLING)
def throttling(judge: Judge) -> None:
    """Throttle times in responses."""
    evidence = judge.evidence
    judge.judged += 1
    for row in evidence.totals(evidence.requests.throttles, "client", "api"):
        is_found = row["count"] >= judge.limit("count")
        if is_found and row["milliseconds"] >= judge.limit("milliseconds"):
            api = API_NAMES[row["api"]]
            judge.add(
                row,
                judge.subject(row["client"]),
                row["milliseconds"],
                "milliseconds",
                "milliseconds of throttle time",
                f"{row['count']:,} {api} answers with a throttle time, "
                f"of {row['longest']:,} ms at most",
                f"{row['milliseconds'] / 1000:,.1f} s of waiting in sum.",
                (api,),
                "response.throttle_time_ms > 0",
            )
