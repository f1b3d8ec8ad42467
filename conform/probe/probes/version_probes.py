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
from conform.registry.kafka_releases import OPTIONAL_APIS
from conform.registry.rank import Severity
from dissector.protocol.apis import NAMES, api
from dissector.protocol.carried import record_problems


@probe(
    "P01",
    "Each API answers in the form of each version that is offered",
    source="KIP-35; the message definitions of Kafka",
    asks="An answer, all of whose bytes are what that version declares, and not error 35.",
    example="FindCoordinator v3 is answered in the form of v2",
)
async def every_offered_version(probed: ProbeContext, say: ProbeReporter) -> None:
    """Send a harmless request of every API, at every version."""
    fields, lack = await _fields_by_api(probed)
    for key, (low, high) in sorted(probed.target.offered.items()):
        name = NAMES.get(key)
        if name is None or api(key) is None:
            say.unjudged(f"API key {key} is not known to us")
            continue
        if not 0 <= low <= high:
            say.unjudged(f"{name} is offered from {low} to {high}, which is no range (P03)")
            continue
        known = probed.target.versions(name)
        if len(known) <= high - low:
            say.unjudged(f"{name} has versions that are not known to us")
        if name in INTER_BROKER_APIS:
            say.unjudged(f"{name} may change the cluster: it is not asked")
        elif name not in fields:
            say.unjudged(f"{name}: {lack}")
        else:
            for version in known:
                if why := _why_not_served(probed.target, name, version):
                    say.unjudged(why)
                    continue
                asked = fields[name](version)
                _check_response(await probed.target.request(name, asked, version, retry=False), say)


def _why_not_served(target: Target, name: str, version: int) -> str:
    """Return why Kafka's brokers offer a version that they don't serve; empty: they do."""
    if name == "Produce" and version < 3 and not target.versions("Fetch", until=3):
        return "Produce v0-2 are only listed since Kafka 4.0, for librdkafka (KAFKA-18659)"
    if name in ("OffsetCommit", "OffsetFetch") and version == 0:
        return f"{name} v0 is about ZooKeeper, which a broker need not have"
    return ""


async def _fields_by_api(probed: ProbeContext) -> tuple[dict[str, FieldsByVersion], str]:
    """Return the requests of each API by version, and why the other APIs get none."""
    nothing = read_requests(probed.fixtures.absent_name("no-such"))
    found: dict[str, FieldsByVersion] = {
        name: at_every_version(fields) for name, fields in nothing.items()
    }
    if not probed.target.allow_writes:
        return found, WRITES_NOT_ALLOWED
    try:
        topic = await probed.fixtures.topic("forms")
    except NotJudged as why:
        return found, str(why)
    return found | write_requests(probed.fixtures, topic), "nothing is known that may be asked"


def _check_response(said: RawExchange, say: ProbeReporter) -> None:
    if not say.check_readable(said):
        return
    say.judged()
    if "UNSUPPORTED_VERSION" in error_names(said):
        by_setting = said.api_key in OPTIONAL_APIS
        what = "its settings may forbid it" if by_setting else "which it offers"
        say.broken(
            f"{said}: answered UNSUPPORTED_VERSION (35), {what}",
            said,
            severity=Severity.NOTE if by_setting else None,
        )
    for wrong in schema_deviations(said):
        say.broken(f"{said}: the answer {response_prefix(said)}: {wrong}", said)


def schema_deviations(said: RawExchange) -> Iterator[str]:
    """Yield the deviations of a response from its version's schema."""
    message = said.response
    if message is None or message.body is None:
        return
    yield from map(str, message.problems)
    yield from map(str, record_problems(message))
    if message.correlation_id != said.correlation_id:
        yield f"correlation id {message.correlation_id}, where {said.correlation_id} was sent"
    schema, version = message.schema, message.api_version
    if schema is None or version is None or message.problems:
        return
    written = schema.codec(version).build(message.body)
    if written != message.frame[message.body_start :]:
        yield "is not written as its fields are usually written"
