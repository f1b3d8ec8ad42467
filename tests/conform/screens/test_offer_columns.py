"""What brokers offer at each exchange: columns say the same as the state of the rules."""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random
from typing import Any

import pytest

from conform.judge import Judge
from conform.registry.verdict import MAX_FINDINGS_PER_KIND
from conform.screens import layout_table
from dissector.engine.exchanges.exchange import Exchange
from tests import tcp_captures
from tests.conform.scene import Scene, SceneConnection, capture_rules
from tests.conform.screens.test_window_screens import _assert_same, _counting, _opened

PRODUCE, METADATA, API_VERSIONS, TELEMETRY = 0, 3, 18, 71
UNSUPPORTED_VERSION = 35
RULES = ("E01", "F14", "F17")


@pytest.fixture(autouse=True)
def screened_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Screen messages of each kind, however few."""
    monkeypatch.setattr(layout_table, "MIN_MESSAGES", 1)


def offer(connection: SceneConnection, number: int, highest: int, error: int = 0) -> None:
    """Add an ApiVersions exchange that offers Metadata up to a version."""
    keys = [{"api_key": METADATA, "max_version": highest}] if highest >= 0 else []
    keys.append({"api_key": API_VERSIONS, "max_version": 4})
    connection.request(API_VERSIONS, 2, number)
    connection.response(API_VERSIONS, 2, number, api_keys=keys, error_code=error)


def ask(connection: SceneConnection, number: int, version: int = 9, error: int = 0) -> None:
    """Add a Metadata exchange, with an error of its only topic."""
    connection.request(METADATA, version, number, topics=None)
    connection.response(METADATA, version, number, topics=[{"name": "a", "error_code": error}])


def changing(seed: int) -> Scene:
    """Return connections to two brokers that offer other versions from time to time."""
    random, scene = Random(seed), Scene()
    connections = [
        scene.connect(syn=number != 3, broker=f"10.0.0.{2 + number % 2}") for number in range(5)
    ]
    for number in range(1, 200):
        connection = random.choice(connections)
        match random.randrange(8):
            case 0:
                offer(connection, number, random.choice((-1, 7, 8, 9, 9, 12)))
            case 1:
                offer(connection, number, 12, error=random.choice((0, UNSUPPORTED_VERSION)))
            case 2:  # the other exchange ends after an offer that it was sent before
                connection.request(METADATA, 9, number + 1000, topics=None)
                offer(random.choice(connections), number, random.choice((8, 9)))
                connection.response(METADATA, 9, number + 1000)
            case 3:
                connection.request(TELEMETRY, 0, number).response(TELEMETRY, 0, number)
            case 4:
                connection.request(PRODUCE, 9, number, acks=0, topic_data=[])
            case _:
                error = random.choice((0, UNSUPPORTED_VERSION, 3))
                ask(connection, number, random.choice((8, 9, 12)), error)
    return scene


@pytest.mark.parametrize("seed", range(8))
def test_verdicts_of_changing_offers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tcp_captures.pcap_file(changing(seed).wire.packets)
    _assert_same(partial(_opened, file), monkeypatch)


def judged(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> tuple[Counter[str], int]:
    """Return how often rules are called on a scene, and how many responses are decoded."""
    called: Counter[str] = Counter()
    decoded: list[Exchange] = []
    decode = Exchange._decoded_response

    def noted(exchange: Exchange) -> Any:
        if exchange.api_key != API_VERSIONS:
            decoded.append(exchange)
        return decode(exchange)

    monkeypatch.setattr(Exchange, "_decoded_response", noted)
    rules = [_counting(each, called) for each in capture_rules() if each.id in RULES]
    verdict = Judge(rules).judge_capture(_opened(tcp_captures.pcap_file(scene.wire.packets)))
    assert verdict.tallies["F17"].judged
    return called, len(decoded)


def test_offered_versions_call_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Scene().connect()
    offer(connection, 0, 9)
    for number in range(1, 9):
        ask(connection, number)
    called, decoded = judged(connection.scene, monkeypatch)
    assert (called["F14"], called["F17"], decoded) == (1, 1, 0)


def test_refused_versions_are_known_by_their_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other violations only those findings decode their message that are retained in full."""
    connection = Scene().connect()
    offer(connection, 0, 8)
    for number in range(1, 9):
        ask(connection, number, error=UNSUPPORTED_VERSION)
    called, decoded = judged(connection.scene, monkeypatch)
    assert (called["F14"], called["F17"], decoded) == (9, 1, 0)
    for number in range(9, 9 + 2 * MAX_FINDINGS_PER_KIND):
        ask(connection, number)
    called, decoded = judged(connection.scene, monkeypatch)
    assert called["F17"] == 1 + 2 * MAX_FINDINGS_PER_KIND
    assert decoded == MAX_FINDINGS_PER_KIND
