"""Probes of Metadata and DescribeCluster."""

from __future__ import annotations

from conform.probe.probe_registry import ProbeContext, probe
from conform.probe.probe_reporter import ProbeReporter


@probe(
    "P14",
    "Metadata tells all topics where it is asked for all, and none where for none",
    source="MetadataRequest.json: v0 [] is all; from v1 null is all, [] is none",
    asks="No topics for an empty list from v1 on; the same topics for null as v0 has for [].",
    example="Metadata v9 with an empty list of topics is answered with every topic",
)
async def all_or_no_topics(probed: ProbeContext, say: ProbeReporter) -> None:
    """Request no topics, and all topics."""
    for version in probed.target.versions("Metadata", since=1):
        said = await probed.target.request("Metadata", {"topics": []}, version)
        if say.check_readable(said):
            there = len(said.field("topics"))
            say.check(
                there == 0, f"{said}: {there} topics, where none was asked for", said, "topics"
            )
    if not probed.target.allow_writes:
        say.unjudged("whether all are told: there is no topic of our own to look for")
        return
    topic = await probed.fixtures.topic("quiet")
    for version in probed.target.versions("Metadata"):
        fields = {"topics": None, "allow_auto_topic_creation": False}
        said = await probed.target.request("Metadata", fields, version)
        if say.check_readable(said):
            named = {each.name for each in said.field("topics")}
            say.check(topic.name in named, f"{said}: our topic is not among all", said, "topics")


@probe(
    "P15",
    "Brokers, controller and coordinators are told with addresses",
    source="MetadataResponse.json, DescribeClusterResponse.json",
    asks="Each broker once, with a host and a port; the same from Metadata and DescribeCluster.",
    example="a broker has port 0, or stands twice in the list",
)
async def broker_addresses(probed: ProbeContext, say: ProbeReporter) -> None:
    """Compare the brokers in Metadata with those in DescribeCluster."""
    said = await probed.target.request("Metadata", {"topics": []})
    if not say.check_readable(said):
        return
    listed = [(each.node_id, each.host, each.port) for each in said.field("brokers")]
    say.check(bool(listed), f"{said}: no brokers", said, "brokers")
    ids = [node for node, _, _ in listed]
    say.check(len(set(ids)) == len(ids), f"{said}: brokers {ids} are not unique", said, "brokers")
    wrong = [each for each in listed if not each[1] or not 0 < each[2] < 65536]
    say.check(not wrong, f"{said}: no addresses: {wrong}", said, "brokers")
    if probed.target.versions("DescribeCluster"):
        other = await probed.target.request("DescribeCluster", {"endpoint_type": 1})
        if say.check_error(other, "error_code", "NONE"):
            told = sorted((each.broker_id, each.host, each.port) for each in other.field("brokers"))
            what = f"{other}: brokers {told}, where {said} has {sorted(listed)}"
            say.check(told == sorted(listed), what, other, "brokers")
