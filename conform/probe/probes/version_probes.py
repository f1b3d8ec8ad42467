"""Probes of each API at each version that a broker offers."""

from __future__ import annotations

from collections.abc import Iterator

from conform.probe.probe_registry import WRITES_NOT_ALLOWED, ProbeContext, probe
from conform.probe.probe_reporter import ProbeReporter, response_prefix
from conform.probe.probe_target import NotJudged, Target, error_names
from conform.probe.raw_exchange import RawExchange
from conform.probe.request_catalog import (
    INTER_BROKER_APIS,
    FieldsByVersion,
    at_every_version,
    read_requests,
    write_requests,
)
from conform.registry.rank import Severity
from dissector.protocol.apis import NAMES, api
from dissector.protocol.records_fields import record_problems
from dissector.protocol.releases.kafka_releases import OPTIONAL_APIS


@probe(
    "P01",
    "Response does not match the schema of its version",
    source="KIP-35; the message definitions of Kafka",
    asks="A response whose bytes all match the declaration of that version, and not error 35.",
    example="FindCoordinator v3 is answered in the format of v2",
)
async def probe_every_offered_version(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Send a harmless request of every API, at every version."""
    fields, reason_for_others = await _fields_by_api(context)
    for key, (low, high) in sorted(context.target.offered.items()):
        name = NAMES.get(key)
        if name is None or api(key) is None:
            reporter.count_unjudged(f"API key {key} is unknown")
            continue
        if not 0 <= low <= high:
            reporter.count_unjudged(
                f"{name} is offered from {low} to {high}, which is an invalid range (P03)"
            )
            continue
        declared = context.target.versions(name)
        if len(declared) <= high - low:
            reporter.count_unjudged(f"{name} has unknown versions")
        if name in INTER_BROKER_APIS:
            reporter.count_unjudged(f"{name} may change the cluster: it is not sent")
        elif name not in fields:
            reporter.count_unjudged(f"{name}: {reason_for_others}")
        else:
            for version in declared:
                if reason := _why_not_served(context.target, name, version):
                    reporter.count_unjudged(reason)
                    continue
                request_fields = fields[name](version)
                _check_response(
                    await context.target.request(name, request_fields, version, retry=False),
                    reporter,
                )


def _why_not_served(target: Target, name: str, version: int) -> str:
    """Return the reason why Kafka's brokers do not serve an offered version; empty without one."""
    if name == "Produce" and version < 3 and not target.versions("Fetch", until=3):
        return "Produce v0-2 are only listed since Kafka 4.0, for librdkafka (KAFKA-18659)"
    if name in ("OffsetCommit", "OffsetFetch") and version == 0:
        return f"{name} v0 needs ZooKeeper, which a broker may not have"
    return ""


async def _fields_by_api(context: ProbeContext) -> tuple[dict[str, FieldsByVersion], str]:
    """Return the requests of each API by version, and why the other APIs get none."""
    readable = read_requests(context.fixtures.absent_name("no-such"))
    fields_by_api: dict[str, FieldsByVersion] = {
        name: at_every_version(fields) for name, fields in readable.items()
    }
    if not context.target.allow_writes:
        return fields_by_api, WRITES_NOT_ALLOWED
    try:
        topic = await context.fixtures.topic("forms")
    except NotJudged as error:
        return fields_by_api, str(error)
    return fields_by_api | write_requests(context.fixtures, topic), "no harmless request is known"


def _check_response(exchange: RawExchange, reporter: ProbeReporter) -> None:
    if not reporter.check_readable(exchange):
        return
    reporter.count_judged()
    if "UNSUPPORTED_VERSION" in error_names(exchange):
        by_setting = exchange.api_key in OPTIONAL_APIS
        remark = "its settings may forbid it" if by_setting else "though the broker offers it"
        reporter.report_violation(
            f"{exchange}: answered UNSUPPORTED_VERSION (35), {remark}",
            exchange,
            severity=Severity.NOTE if by_setting else None,
        )
    for deviation in schema_deviations(exchange):
        found = f"{exchange}: the response {response_prefix(exchange)}: {deviation}"
        reporter.report_violation(found, exchange)


def schema_deviations(exchange: RawExchange) -> Iterator[str]:
    """Yield the deviations of a response from its version's schema."""
    message = exchange.response
    if message is None or message.body is None:
        return
    yield from map(str, message.problems)
    yield from map(str, record_problems(message))
    if message.correlation_id != exchange.correlation_id:
        yield f"correlation id {message.correlation_id}, not {exchange.correlation_id}"
    schema, version = message.schema, message.api_version
    if schema is None or version is None or message.problems:
        return
    written = schema.codec(version).build(message.body)
    if written != message.frame[message.body_start :]:
        yield "is not in the canonical form of its fields"
