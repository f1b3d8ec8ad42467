"""Software names and releases, learned from ApiVersions."""

from __future__ import annotations

from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Rule
from dissector.protocol.releases.kafka_releases import ranges_of
from tests.conform.scene import Scene

API_VERSIONS = 18


def _offer(release: str) -> list[dict[str, int]]:
    return [
        {"api_key": key, "min_version": least, "max_version": most}
        for key, (least, most) in ranges_of(release).items()
    ]


def _software(name: str, keys: list[dict[str, int]], **values: int) -> list[tuple[str, str]]:
    """Return the software of client and broker after ApiVersions."""
    seen = []

    def call(observation: Observation, reporter: Reporter) -> None:
        seen.append(
            (observation.connection.client.software, observation.connection.broker.software)
        )

    connection = Scene().connect()
    connection.request(
        API_VERSIONS, 3, 1, client_software_name=name, client_software_version="1.2" if name else ""
    )
    connection.response(API_VERSIONS, 3, 1, api_keys=keys, **values)
    connection.scene.judge([Rule("F99", "t", Severity.NOTE, "s", "a.", "e", "exchange", (), call)])
    return seen


def test_clients_send_their_software() -> None:
    assert _software("shop", []) == [("shop 1.2", "")]
    assert _software("", []) == [("", "")]


def test_brokers_are_recognised_by_their_api_versions() -> None:
    assert _software("shop", _offer("4.3")) == [("shop 1.2", "Kafka 4.3")]
    assert _software("shop", _offer("4.3"), error_code=42) == [("shop 1.2", "")]
    assert _software("shop", _offer("4.3")[:20]) == [("shop 1.2", "")]
