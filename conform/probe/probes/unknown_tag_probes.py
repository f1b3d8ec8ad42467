"""Probes of unknown tagged fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conform.probe.probe_registry import ProbeContext, probe
from conform.probe.probe_reporter import ProbeReporter
from conform.probe.probe_target import CLIENT_SOFTWARE, Target, error_names
from conform.probe.raw_exchange import RawExchange, encode_request
from dissector.protocol.apis import KEYS, api
from dissector.protocol.codecs.compiled import UNKNOWN_TAGS

_TAGS = {9_999: b"from a newer client", 2_000_000: b""}


@probe(
    "E08",
    "Unknown tagged fields not ignored",
    source="KIP-482; message/README.md (Older servers will ignore them)",
    asks="The same response as without them: in the header, in the body, in structs of an array.",
    example="Metadata v12 with an unknown tag 9999 closes the connection",
)
async def probe_tags_ignored(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Send requests with and without tags, and compare the responses."""
    for name, fields in _requests(context.fixtures.absent_name("no-such")):
        for version in _flexible_versions(context.target, name):
            untagged = await _request_once(context.target, name, version, fields)
            for place, header, body in _with_tags(fields):
                exchange = await _request_once(context.target, name, version, body, header)
                if not reporter.check_readable(exchange):
                    continue
                is_same = error_names(exchange) == error_names(untagged)
                reporter.check(
                    is_same,
                    f"{exchange} with unknown tags in {place}: answered "
                    f"{sorted(error_names(exchange)) or 'no error'}, without them "
                    f"{sorted(error_names(untagged)) or 'no error'}",
                    exchange,
                )


def _requests(name: str) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Return requests without side effects that any broker accepts."""
    topics = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    return (
        ("ApiVersions", CLIENT_SOFTWARE),
        ("Metadata", topics),
        ("DescribeCluster", {}),
        ("ListOffsets", {"replica_id": -1, "topics": [_topic_fields(name)]}),
        ("DescribeGroups", {"groups": [name]}),
        ("DescribeTopicPartitions", {"topics": [{"name": name}], "response_partition_limit": 10}),
    )


def _topic_fields(name: str) -> dict[str, Any]:
    offset = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    return {"name": name, "partitions": [offset]}


def _flexible_versions(target: Target, name: str) -> list[int]:
    declaration = api(KEYS[name])
    assert declaration is not None
    return [version for version in target.versions(name) if version in declaration.request.flexible]


def _with_tags(
    fields: Mapping[str, Any],
) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the place of the tags, with the header and the body that contain them."""
    yield "the header", {UNKNOWN_TAGS: _TAGS}, fields
    yield "the body", {}, {**fields, UNKNOWN_TAGS: _TAGS}
    for field, value in fields.items():
        if isinstance(value, list) and isinstance(value[0], Mapping):
            yield field, {}, {**fields, field: [{**each, UNKNOWN_TAGS: _TAGS} for each in value]}


async def _request_once(
    target: Target,
    name: str,
    version: int,
    fields: Mapping[str, Any],
    header: Mapping[str, Any] | None = None,
) -> RawExchange:
    """Send a request on a separate connection."""
    connection = await target.open_connection()
    try:
        exchange = encode_request(
            name, version, fields, connection.next_correlation_id(), header=header
        )
        connection.send(exchange.request)
        return await connection.receive_response(exchange)
    finally:
        connection.close()
