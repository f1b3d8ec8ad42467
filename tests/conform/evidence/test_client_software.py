"""What ApiVersions tells of the two sides."""

from __future__ import annotations

from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.kafka_releases import ranges_of
from conform.registry.rank import Severity
from conform.registry.rule import Rule
from tests.conform.scene import Scene

API_VERSIONS = 18


def _offer(release: str) -> list[dict[str, int]]:
    return [
        {"api_key": key, "min_version": least, "max_version": most}
        for key, (least, most) in ranges_of(release).items()
    ]


def _told(name: str, keys: list[dict[str, int]], **values: int) -> list[tuple[str, str]]:
    """Return what is known of client and broker after ApiVersions."""
    seen = []

    def call(turn: Observation, say: Reporter) -> None:
        seen.append((turn.connection.client.software, turn.connection.broker.software))

    talk = Scene().talk()
    talk.asks(
        API_VERSIONS, 3, 1, client_software_name=name, client_software_version="1.2" if name else ""
    )
    talk.tells(API_VERSIONS, 3, 1, api_keys=keys, **values)
    talk.scene.judge([Rule("F99", "t", Severity.NOTE, "s", "a.", "e", "exchange", (), call)])
    return seen


def test_clients_say_who_they_are() -> None:
    assert _told("shop", []) == [("shop 1.2", "")]
    assert _told("", []) == [("", "")]


def test_brokers_are_known_by_what_they_offer() -> None:
    assert _told("shop", _offer("4.3")) == [("shop 1.2", "Kafka 4.3")]
    assert _told("shop", _offer("4.3"), error_code=42) == [("shop 1.2", "")]
    assert _told("shop", _offer("4.3")[:20]) == [("shop 1.2", "")]
