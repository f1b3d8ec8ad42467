"""Probes of requests by administrators: topics, settings, partitions."""

from __future__ import annotations

import asyncio

from conform.probe.probe_fixtures import NO_ID
from conform.probe.probe_registry import ProbeContext, probe
from conform.probe.probe_reporter import ProbeReporter
from conform.probe.probe_target import NotJudged
from conform.probe.raw_exchange import RawExchange
from dissector.protocol.error_codes import error_name

_TOPIC_RESOURCE = 2
_TIMEOUT_MS = 10_000
_PATIENCE_S, _PAUSE_S = 2.0, 0.1


def _new_topic(name: str, partitions: int = 1, replicas: int = 1) -> dict[str, object]:
    return {"name": name, "num_partitions": partitions, "replication_factor": replicas}


@probe(
    "P42",
    "Invalid topics not rejected one by one",
    source="ReplicationControlManager.createTopics; Topic.validate",
    asks="TOPIC_ALREADY_EXISTS (36), INVALID_TOPIC_EXCEPTION (17), INVALID_PARTITIONS (37), "
    "INVALID_REPLICATION_FACTOR (38) for each name; validate_only creates no topic.",
    example="a topic called 'a topic' is created",
    writes=True,
)
async def probe_invalid_topics(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Send invalid topics, and a valid one, to be validated only."""
    existing = await context.fixtures.topic("quiet")
    topic_name = context.fixtures.topic_name
    cases = {
        existing.name: "TOPIC_ALREADY_EXISTS",
        topic_name("not a name"): "INVALID_TOPIC_EXCEPTION",
        topic_name("x" * 250): "INVALID_TOPIC_EXCEPTION",
        topic_name("no-partitions"): "INVALID_PARTITIONS",
        topic_name("replicas"): "INVALID_REPLICATION_FACTOR",
        topic_name("validated"): "NONE",
    }
    counts = {topic_name("no-partitions"): (0, 1), topic_name("replicas"): (1, 999)}
    topics = [_new_topic(name, *counts.get(name, (1, 1))) for name in cases]
    fields = {"topics": topics, "timeout_ms": _TIMEOUT_MS, "validate_only": True}
    for version in context.target.versions("CreateTopics", since=1):
        exchange = await context.target.request("CreateTopics", fields, version)
        if not reporter.check_readable(exchange):
            continue
        errors = {each.name: error_name(each.error_code) for each in exchange.field("topics")}
        for name, error in cases.items():
            found = errors.get(name)
            suffix = name.removeprefix(context.fixtures.prefix)[:20]
            reporter.check(
                found == error,
                f"{exchange} of '{suffix}': {found}, not {error}",
                exchange,
                "topics",
            )
    exchange = await _topic_metadata(context, topic_name("validated"))
    reporter.check_error(exchange, "topics[0].error_code", "UNKNOWN_TOPIC_OR_PARTITION")


async def _topic_metadata(context: ProbeContext, name: str) -> RawExchange:
    fields = {
        "topics": [{"name": name, "topic_id": NO_ID}],
        "allow_auto_topic_creation": False,
    }
    return await context.target.request(
        "Metadata", fields, context.target.newest_version("Metadata", since=4)
    )


@probe(
    "P43",
    "Topic settings not returned or not changed",
    source="ConfigHelper.describeConfigs; KIP-133, KIP-339, KIP-226",
    asks="Each setting of the topic with its value; after IncrementalAlterConfigs the new value.",
    example="DescribeConfigs lists no settings",
    writes=True,
)
async def probe_settings(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Read a setting, change it, read it again; change an unknown one."""
    topic = await context.fixtures.topic("settings", {"retention.ms": "3600000"})
    for version in context.target.versions("DescribeConfigs"):
        await _check_setting(context, reporter, topic.name, version, "3600000")
    if not context.target.versions("IncrementalAlterConfigs"):
        return
    change = {"name": "retention.ms", "config_operation": 0, "value": "7200000"}
    resource = {"resource_type": _TOPIC_RESOURCE, "resource_name": topic.name}
    fields = {"resources": [{**resource, "configs": [change]}]}
    exchange = await context.target.request("IncrementalAlterConfigs", fields)
    if reporter.check_error(exchange, "responses[0].error_code", "NONE"):
        newest = context.target.newest_version("DescribeConfigs")
        await _check_setting(context, reporter, topic.name, newest, "7200000")
    unknown = {"name": "no.such.setting", "config_operation": 0, "value": "1"}
    unknown_fields = {"resources": [{**resource, "configs": [unknown]}], "validate_only": True}
    exchange = await context.target.request("IncrementalAlterConfigs", unknown_fields)
    reporter.check_error(exchange, "responses[0].error_code", "INVALID_CONFIG")


async def _check_setting(
    context: ProbeContext, reporter: ProbeReporter, name: str, version: int, value: str
) -> None:
    resource = {"resource_type": _TOPIC_RESOURCE, "resource_name": name, "configuration_keys": None}
    loop = asyncio.get_running_loop()
    deadline = loop.time() + min(_PATIENCE_S, context.target.timeout_s)
    while True:
        exchange = await context.target.request(
            "DescribeConfigs", {"resources": [resource]}, version
        )
        listed = {each.name: each.value for each in exchange.field("results[0].configs") or ()}
        found = listed.get("retention.ms")
        # A broker receives a change from its controller with a short delay.
        if found == value or loop.time() > deadline:
            break
        await asyncio.sleep(_PAUSE_S)
    if reporter.check_error(exchange, "results[0].error_code", "NONE"):
        description = f"{exchange}: {len(listed)} settings, retention.ms {found!r}, not {value!r}"
        reporter.check(found == value, description, exchange, "results[0].configs")


@probe(
    "P44",
    "Partitions not added, or removed",
    source="ReplicationControlManager.createPartitions",
    asks="Error 0 for more partitions, INVALID_PARTITIONS (37) for the same number or fewer, a "
    "result for each topic.",
    example="CreatePartitions is answered with an empty list",
    writes=True,
)
async def probe_partitions(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Request two partitions, the current number, and none, to be validated only."""
    topic = await context.fixtures.topic("quiet")
    for version in context.target.versions("CreatePartitions"):
        for count, error in ((2, "NONE"), (1, "INVALID_PARTITIONS"), (0, "INVALID_PARTITIONS")):
            more = {"name": topic.name, "count": count, "assignments": None}
            fields = {"topics": [more], "timeout_ms": _TIMEOUT_MS, "validate_only": True}
            exchange = await context.target.request("CreatePartitions", fields, version)
            reporter.check_error(exchange, "results[0].error_code", error)


@probe(
    "P45",
    "Records deleted beyond the log end, or deleted topic still listed",
    source="ReplicaManager.deleteRecords, ReplicationControlManager.deleteTopics",
    asks="OFFSET_OUT_OF_RANGE where records beyond the log end are deleted; "
    "UNKNOWN_TOPIC_OR_PARTITION for a deleted topic.",
    example="after DeleteTopics the topic is still listed",
    writes=True,
)
async def probe_deletion(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Create a topic, delete records beyond its end, delete the topic, request its metadata."""
    if not context.target.versions("DeleteTopics"):
        raise NotJudged("the broker offers no DeleteTopics")
    topic = await context.fixtures.topic("deleted")
    partition = {"partition_index": 0, "offset": 5}
    fields = {
        "topics": [{"name": topic.name, "partitions": [partition]}],
        "timeout_ms": _TIMEOUT_MS,
    }
    for version in context.target.versions("DeleteRecords"):
        exchange = await context.target.request("DeleteRecords", fields, version, topic.leader_id)
        reporter.check_error(exchange, "topics[0].partitions[0].error_code", "OFFSET_OUT_OF_RANGE")
    deletion = {
        "topic_names": [topic.name],
        "topics": [{"name": topic.name, "topic_id": NO_ID}],
        "timeout_ms": _TIMEOUT_MS,
    }
    exchange = await context.target.request("DeleteTopics", deletion)
    if not reporter.check_error(exchange, "responses[0].error_code", "NONE"):
        return
    loop = asyncio.get_running_loop()
    deadline = loop.time() + context.target.timeout_s
    while True:
        exchange = await _topic_metadata(context, topic.name)
        error = error_name(exchange.field("topics[0].error_code", 0))
        if error == "UNKNOWN_TOPIC_OR_PARTITION" or loop.time() > deadline:
            break
        await asyncio.sleep(_PAUSE_S)
    reporter.check_error(exchange, "topics[0].error_code", "UNKNOWN_TOPIC_OR_PARTITION")
