"""The probe has no findings for Apache Kafka, and finds every fault added by a relay."""

from __future__ import annotations

import asyncio

import pytest

import conform.probe.probes  # noqa: F401 (puts its rules into the registry)
from cluster.client.auth import Security
from conform.probe import probe_target
from conform.probe.probe_runner import ProbeResult, probe_broker
from conform.probe.probe_target import Target
from conform.registry.rank import Severity
from conform.registry.rule import REGISTRY
from tests.broker import artifacts
from tests.broker.conform.relay import NO_FAULT, Fault, relaying
from tests.broker.conform.relay_faults import FAULTS
from tests.broker.conftest import StartCluster
from tests.broker.server_properties import PASSWORD, USER, Shape
from tests.waiting import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

LIVE = [rule for rule in REGISTRY.values() if rule.on == "live"]
RELEASES = {"4.x": "4.4", "3.9.x": "3.9"}
NEEDS_SASL = "P16"


def probed_through_relay(
    broker: str, *ids: str, fault: Fault = NO_FAULT, allow_writes: bool = True
) -> ProbeResult:
    """Probe a broker through a relay."""

    async def main() -> ProbeResult:
        async with asyncio.timeout(200), relaying(broker, fault) as relay:
            rules = [rule for rule in LIVE if not ids or rule.id in ids]
            return await probe_broker(relay, rules, timeout_s=10, allow_writes=allow_writes)

    return asyncio.run(main())


def violations(outcome: ProbeResult) -> list[str]:
    return [f"{kind.first.rule.id} {kind.first.found}" for kind in outcome.verdict]


@pytest.mark.parametrize("version", artifacts.LINES)
def test_kafka_breaks_no_rule(kafka: StartCluster, version: str) -> None:
    outcome = probed_through_relay(kafka(Shape(version)).bootstrap())
    assert outcome.verdict.count(Severity.ERROR) == 0, violations(outcome)
    assert outcome.verdict.count(Severity.WARNING) == 0, violations(outcome)
    unjudged = [name for name, tally in outcome.verdict.tallies.items() if not tally.judged]
    assert unjudged == [NEEDS_SASL]
    assert not outcome.verdict.faults
    assert outcome.leftovers == ()
    assert outcome.match.releases == (RELEASES[version],)
    assert outcome.match.is_exact


@pytest.mark.parametrize("version", artifacts.LINES)
def test_the_probe_leaves_no_resources(kafka: StartCluster, version: str) -> None:
    broker = kafka(Shape(version)).bootstrap()

    async def names() -> set[str]:
        asker = await Target.connect(broker, Security(), 10, allow_writes=False)
        try:
            topics = await asker.request("Metadata", {"topics": None})
            groups = await asker.request("ListGroups", {})
        finally:
            asker.close()
        found = {each.name for each in topics.field("topics")}
        return found | {each.group_id for each in groups.field("groups")}

    internal = {"__consumer_offsets", "__transaction_state"}
    allowed = asyncio.run(names()) | internal
    probed_through_relay(broker)
    # A broker lists deleted resources until it gets the change from the controller.
    wait_until(lambda: not asyncio.run(names()) - allowed, "the end of resources of the probe")


def test_without_allow_writes_nothing_is_created(kafka: StartCluster) -> None:
    outcome = probed_through_relay(kafka(Shape()).bootstrap(), allow_writes=False)
    assert violations(outcome) == []
    judged = {name for name, tally in outcome.verdict.tallies.items() if tally.judged}
    assert {"P01", "F12", "E08", "P07"} <= judged
    assert not judged & {"P12", "P18", "P21", "P35", "P41", "P45", "B21", "T09"}


def test_each_rule_has_a_fault() -> None:
    assert FAULTS.keys() | {NEEDS_SASL} == {rule.id for rule in LIVE}


@pytest.mark.parametrize("rule", sorted(FAULTS))
def test_each_fault_is_found(
    kafka: StartCluster, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # If a connection wrongly stays open, the probe waits for its end repeatedly.
    monkeypatch.setattr(probe_target, "MAX_CLOSE_WAIT_S", 0.5)
    outcome = probed_through_relay(kafka(Shape()).bootstrap(), rule, fault=FAULTS[rule])
    assert outcome.verdict.tallies[rule].broken, dict(outcome.verdict.tallies[rule].unjudged)
    assert outcome.verdict.count(Severity.ERROR)


@pytest.mark.parametrize("version", artifacts.LINES)
def test_requests_before_a_login_are_judged(kafka: StartCluster, version: str) -> None:
    cluster = kafka(Shape(version, sasl=True, tls=True))
    security = Security(mechanism="SCRAM-SHA-256", username=USER, password=PASSWORD)
    rules = [rule for rule in LIVE if rule.id in ("P16", "P17", "P01")]
    outcome = asyncio.run(
        probe_broker(cluster.bootstrap("SASL_PLAINTEXT"), rules, security=security)
    )
    assert violations(outcome) == []
    assert all(outcome.verdict.tallies[rule.id].judged for rule in rules)
