"""Probes of Metadata and DescribeCluster."""

from __future__ import annotations

from conform.probe.probe_registry import ProbeContext, probe
from conform.probe.probe_reporter import ProbeReporter


@probe(
    "P14",
    "Metadata without all topics, or with topics where none was requested",
    source="MetadataRequest.json: v0 [] is all; from v1 null is all, [] is none",
    asks="No topics for an empty list from v1 on; all topics for null from v1 on, and for [] in "
    "v0.",
    example="Metadata v9 with an empty list of topics is answered with every topic",
)
async def probe_all_or_no_topics(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Request no topics, and all topics."""
    for version in context.target.versions("Metadata", since=1):
        exchange = await context.target.request("Metadata", {"topics": []}, version)
        if reporter.check_readable(exchange):
            count = len(exchange.field("topics"))
            reporter.check(
                count == 0,
                f"{exchange}: {count} topics, though none was requested",
                exchange,
                "topics",
            )
    if not context.target.allow_writes:
        reporter.count_unjudged("a request for all topics: no known topic to look for")
        return
    topic = await context.fixtures.topic("quiet")
    for version in context.target.versions("Metadata"):
        fields = {"topics": None, "allow_auto_topic_creation": False}
        exchange = await context.target.request("Metadata", fields, version)
        if reporter.check_readable(exchange):
            names = {each.name for each in exchange.field("topics")}
            reporter.check(
                topic.name in names,
                f"{exchange}: the topic of the probes is missing",
                exchange,
                "topics",
            )


@probe(
    "P15",
    "Brokers without addresses, or listed differently",
    source="MetadataResponse.json, DescribeClusterResponse.json",
    asks="Each broker once, with a host and a port; the same brokers from Metadata and "
    "DescribeCluster.",
    example="a broker has port 0, or is listed twice",
)
async def probe_broker_addresses(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Compare the brokers in Metadata and in DescribeCluster."""
    exchange = await context.target.request("Metadata", {"topics": []})
    if not reporter.check_readable(exchange):
        return
    listed = [(each.node_id, each.host, each.port) for each in exchange.field("brokers")]
    reporter.check(bool(listed), f"{exchange}: no brokers", exchange, "brokers")
    node_ids = [node_id for node_id, _, _ in listed]
    reporter.check(
        len(set(node_ids)) == len(node_ids),
        f"{exchange}: brokers {node_ids} are not unique",
        exchange,
        "brokers",
    )
    invalid = [each for each in listed if not each[1] or not 0 < each[2] < 65536]
    reporter.check(not invalid, f"{exchange}: invalid addresses: {invalid}", exchange, "brokers")
    if context.target.versions("DescribeCluster"):
        other = await context.target.request("DescribeCluster", {"endpoint_type": 1})
        if reporter.check_error(other, "error_code", "NONE"):
            described = sorted(
                (each.broker_id, each.host, each.port) for each in other.field("brokers")
            )
            found = f"{other}: brokers {described}, but {exchange} has {sorted(listed)}"
            reporter.check(described == sorted(listed), found, other, "brokers")
