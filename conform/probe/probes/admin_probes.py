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
    "Topics that can't be created are refused, one by one",
    source="ReplicationControlManager.createTopics; Topic.validate",
    asks="TOPIC_ALREADY_EXISTS (36), INVALID_TOPIC_EXCEPTION (17), INVALID_PARTITIONS (37), "
    "INVALID_REPLICATION_FACTOR (38) beside each name; validate_only makes none.",
    example="a topic called 'a topic' is created",
    writes=True,
)
async def invalid_topics(probed: ProbeContext, say: ProbeReporter) -> None:
    """Send invalid topics, and a valid one, to be validated only."""
    there = await probed.fixtures.topic("quiet")
    named = probed.fixtures.topic_name
    cases = {
        there.name: "TOPIC_ALREADY_EXISTS",
        named("not a name"): "INVALID_TOPIC_EXCEPTION",
        named("x" * 250): "INVALID_TOPIC_EXCEPTION",
        named("no-partitions"): "INVALID_PARTITIONS",
        named("replicas"): "INVALID_REPLICATION_FACTOR",
        named("looked-at"): "NONE",
    }
    shapes = {named("no-partitions"): (0, 1), named("replicas"): (1, 999)}
    topics = [_new_topic(name, *shapes.get(name, (1, 1))) for name in cases]
    fields = {"topics": topics, "timeout_ms": _TIMEOUT_MS, "validate_only": True}
    for version in probed.target.versions("CreateTopics", since=1):
        said = await probed.target.request("CreateTopics", fields, version)
        if not say.check_readable(said):
            continue
        told = {each.name: error_name(each.error_code) for each in said.field("topics")}
        for name, error in cases.items():
            found = told.get(name)
            shown = name.removeprefix(probed.fixtures.prefix)[:20]
            say.check(found == error, f"{said} of '{shown}': {found}, not {error}", said, "topics")
    said = await _topic_metadata(probed, named("looked-at"))
    say.check_error(said, "topics[0].error_code", "UNKNOWN_TOPIC_OR_PARTITION")


async def _topic_metadata(probed: ProbeContext, name: str) -> RawExchange:
    fields = {
        "topics": [{"name": name, "topic_id": NO_ID}],
        "allow_auto_topic_creation": False,
    }
    return await probed.target.request(
        "Metadata", fields, probed.target.newest_version("Metadata", since=4)
    )


@probe(
    "P43",
    "Settings of a topic can be read and changed",
    source="ConfigHelper.describeConfigs; KIP-133, KIP-339, KIP-226",
    asks="Each setting that was given, with its value and as the topic's own; after "
    "IncrementalAlterConfigs the new value.",
    example="DescribeConfigs lists no settings",
    writes=True,
)
async def settings(probed: ProbeContext, say: ProbeReporter) -> None:
    """Read a setting, change it, read it again; change an unknown one."""
    topic = await probed.fixtures.topic("settings", {"retention.ms": "3600000"})
    for version in probed.target.versions("DescribeConfigs"):
        await _check_setting(probed, say, topic.name, version, "3600000")
    if not probed.target.versions("IncrementalAlterConfigs"):
        return
    change = {"name": "retention.ms", "config_operation": 0, "value": "7200000"}
    resource = {"resource_type": _TOPIC_RESOURCE, "resource_name": topic.name}
    fields = {"resources": [{**resource, "configs": [change]}]}
    said = await probed.target.request("IncrementalAlterConfigs", fields)
    if say.check_error(said, "responses[0].error_code", "NONE"):
        newest = probed.target.newest_version("DescribeConfigs")
        await _check_setting(probed, say, topic.name, newest, "7200000")
    wrong = {"name": "no.such.setting", "config_operation": 0, "value": "1"}
    checked = {"resources": [{**resource, "configs": [wrong]}], "validate_only": True}
    said = await probed.target.request("IncrementalAlterConfigs", checked)
    say.check_error(said, "responses[0].error_code", "INVALID_CONFIG")


async def _check_setting(
    probed: ProbeContext, say: ProbeReporter, name: str, version: int, value: str
) -> None:
    asked = {"resource_type": _TOPIC_RESOURCE, "resource_name": name, "configuration_keys": None}
    loop = asyncio.get_running_loop()
    deadline = loop.time() + min(_PATIENCE_S, probed.target.timeout_s)
    while True:
        said = await probed.target.request("DescribeConfigs", {"resources": [asked]}, version)
        listed = {each.name: each.value for each in said.field("results[0].configs") or ()}
        found = listed.get("retention.ms")
        # A broker receives a change from its controller with a short delay.
        if found == value or loop.time() > deadline:
            break
        await asyncio.sleep(_PAUSE_S)
    if say.check_error(said, "results[0].error_code", "NONE"):
        what = f"{said}: {len(listed)} settings, retention.ms {found!r}, not {value!r}"
        say.check(found == value, what, said, "results[0].configs")


@probe(
    "P44",
    "Partitions are added, never taken away",
    source="ReplicationControlManager.createPartitions",
    asks="Error 0 for more, INVALID_PARTITIONS (37) for as many or fewer, an entry for each topic.",
    example="CreatePartitions is answered with an empty list",
    writes=True,
)
async def partitions(probed: ProbeContext, say: ProbeReporter) -> None:
    """Request two partitions, the current number, and none, to be validated only."""
    topic = await probed.fixtures.topic("quiet")
    for version in probed.target.versions("CreatePartitions"):
        for count, error in ((2, "NONE"), (1, "INVALID_PARTITIONS"), (0, "INVALID_PARTITIONS")):
            more = {"name": topic.name, "count": count, "assignments": None}
            fields = {"topics": [more], "timeout_ms": _TIMEOUT_MS, "validate_only": True}
            said = await probed.target.request("CreatePartitions", fields, version)
            say.check_error(said, "results[0].error_code", error)


@probe(
    "P45",
    "Records before an offset are deleted, and a topic is gone when it is deleted",
    source="ReplicaManager.deleteRecords, ReplicationControlManager.deleteTopics",
    asks="The new start of the partition; UNKNOWN_TOPIC_OR_PARTITION for a topic that is gone.",
    example="after DeleteTopics the topic is still told of",
    writes=True,
)
async def deletion(probed: ProbeContext, say: ProbeReporter) -> None:
    """Create a topic, delete records beyond its end, delete the topic, request its metadata."""
    if not probed.target.versions("DeleteTopics"):
        raise NotJudged("the broker offers no DeleteTopics")
    topic = await probed.fixtures.topic("deleted")
    partition = {"partition_index": 0, "offset": 5}
    fields = {
        "topics": [{"name": topic.name, "partitions": [partition]}],
        "timeout_ms": _TIMEOUT_MS,
    }
    for version in probed.target.versions("DeleteRecords"):
        said = await probed.target.request("DeleteRecords", fields, version, topic.leader_id)
        say.check_error(said, "topics[0].partitions[0].error_code", "OFFSET_OUT_OF_RANGE")
    gone = {
        "topic_names": [topic.name],
        "topics": [{"name": topic.name, "topic_id": NO_ID}],
        "timeout_ms": _TIMEOUT_MS,
    }
    said = await probed.target.request("DeleteTopics", gone)
    if not say.check_error(said, "responses[0].error_code", "NONE"):
        return
    loop = asyncio.get_running_loop()
    deadline = loop.time() + probed.target.timeout_s
    while True:
        said = await _topic_metadata(probed, topic.name)
        error = error_name(said.field("topics[0].error_code", 0))
        if error == "UNKNOWN_TOPIC_OR_PARTITION" or loop.time() > deadline:
            break
        await asyncio.sleep(_PAUSE_S)
    say.check_error(said, "topics[0].error_code", "UNKNOWN_TOPIC_OR_PARTITION")
