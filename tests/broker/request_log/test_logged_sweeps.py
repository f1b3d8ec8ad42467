"""Request logs of real brokers, beside a capture of the same traffic: the same messages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dissector.public import Exchange, dissect
from tests.broker.conftest import StartCluster
from tests.broker.server_properties import Shape
from tools.record.request_logs import logged_requests, logging_requests
from tools.record.scenario import Stage, all_scenarios
from tools.record.scenarios.sweep import SWEEP_4, SWEEP_39
from tools.record.sniff import CaptureRefusedError, capture

pytestmark = pytest.mark.broker

NOT_LOGGED = {"SaslHandshake", "SaslAuthenticate", "SaslToken", "Envelope"}
"""Brokers log no steps of a login, and of an Envelope the request inside it."""

HIDDEN = "[hidden]"
"""What brokers log for a value that may be a secret."""

Key = tuple[Any, ...]


def by_key(exchanges: Iterator[Exchange]) -> dict[Key, list[Exchange]]:
    """Return answered exchanges by connection, API and correlation id."""
    found: dict[Key, list[Exchange]] = defaultdict(list)
    for each in exchanges:
        if each.status in ("answered", "no_response"):
            key = (each.client, each.broker, each.api, each.api_version, each.correlation_id)
            found[key].append(each)
    return found


def comparable(value: Any, logged: Any) -> Any:
    """Return a captured value without records, and without what the broker has hidden."""
    if logged == HIDDEN:
        return HIDDEN
    if isinstance(value, dict):
        other = logged if isinstance(logged, dict) else {}
        return {
            name: comparable(each, other.get(name))
            for name, each in value.items()
            if name not in ("records", "_io")
        }
    if isinstance(value, list):
        others = logged if isinstance(logged, list) else []
        return [
            comparable(each, others[at] if at < len(others) else None)
            for at, each in enumerate(value)
        ]
    return value


def sweeps(shape: Shape) -> list[Any]:
    return [
        each
        for each in all_scenarios()
        if each.cluster == shape and "sweep" in each.name and not each.inside
    ]


@pytest.mark.parametrize(
    ("shape", "version"),
    [(SWEEP_4, ""), (SWEEP_4, "4.3.1"), (SWEEP_39, "")],
    ids=["Kafka 4", "Kafka 4.3", "Kafka 3.9"],
)
def test_each_version_of_the_sweeps_is_logged_as_it_is_captured(
    kafka: StartCluster, tmp_path: Path, shape: Shape, version: str
) -> None:
    cluster = kafka(replace(shape, version=version or shape.version))
    (node,) = cluster.nodes
    ports = tuple(node.address.ports.values())
    before_login = cluster.bootstrap("SASL_PLAINTEXT")
    same: Counter[str] = Counter()
    versions = set()
    with logging_requests(cluster):
        for scenario in sweeps(shape):
            pcap, log = tmp_path / f"{scenario.name}.pcap", tmp_path / f"{scenario.name}.log"
            stage = Stage(scenario.name, cluster.bootstrap(), ports, tmp_path, cluster)
            try:
                with logged_requests(node, log), capture(pcap, ports):
                    scenario.play(stage)
            except CaptureRefusedError as refused:
                pytest.skip(str(refused))
            captured, logged = by_key(dissect(pcap)), by_key(dissect(log))
            missing = [
                key
                for key, each in captured.items()
                if key[2] not in NOT_LOGGED
                and not (key[2] == "ApiVersions" and key[1] == before_login)
                and len(logged.get(key, ())) < len(each)
            ]
            assert not missing, f"{scenario.name}: captured, but not logged"
            for key, every in captured.items():
                for one, other in zip(every, logged.get(key, ()), strict=False):
                    for kind in ("request", "response"):
                        ours, theirs = getattr(other, kind), getattr(one, kind)
                        if ours is None or ours.size > len(ours.frame):
                            continue  # not expected, or left out by the broker
                        if kind == "request" and ours.newer_version is not None:
                            continue  # the broker does not read it, and logs no fields
                        assert ours.header == theirs.header
                        found, expected = comparable(ours.body, None), theirs.body
                        assert found == comparable(expected, ours.body), (key, kind)
                        same[kind] += 1
                    versions.add((one.api, one.api_version))
    assert min(same.values()) > 300
    assert len(versions) > 150
