"""No findings where the pairing of responses with requests is uncertain."""

from __future__ import annotations

from pathlib import Path

import pytest

from conform.judge import Judge
from conform.registry.rank import Severity
from dissector import open_capture
from tests.conform.scene import Scene, SceneConnection, broken, capture_rules
from tests.dissector.cli.cli_traffic import request_frame, response_frame

METADATA, HEARTBEAT = 3, 12
REPRO = Path(__file__).parents[3] / "shared" / "repro"

TRUE = {
    "false-E09-after-gap.pcap": {"F14"},
    "false-F02-two-packets-swapped.pcap": {"G05"},
    "false-T05-reordered.pcap": set(),
    "false-X01-one-packet-lost.pcap": {"G05"},
}
"""What is true of the captures, which were found to accuse somebody of more."""


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", sorted(TRUE))
def test_captures_that_once_had_false_findings(name: str) -> None:
    if not (REPRO / name).exists():
        pytest.skip("the capture is not at hand")
    verdict = Judge(capture_rules()).judge_capture(open_capture(REPRO / name))
    errors = {kind.first.rule.id for kind in verdict if kind.first.severity is Severity.ERROR}
    assert errors == TRUE[name]


def _beat(connection: SceneConnection, number: int) -> SceneConnection:
    return connection.request(HEARTBEAT, 3, number, group_id="g").response(HEARTBEAT, 3, number)


def test_repeated_ids_are_not_judged_after_an_early_response() -> None:
    connection = _beat(Scene().connect(), 0)
    connection.response(METADATA, 8, 0, brokers=[{"host": "h", "port": 9}]).request(
        METADATA, 8, 0, topics=None
    )
    assert broken(_beat(_beat(connection, 0), 0).fin().scene.judge()) == []


def test_repeated_ids_are_not_judged_after_a_lost_packet() -> None:
    connection = _beat(Scene().connect(), 0).request(METADATA, 8, 0, topics=None)
    connection.response(METADATA, 8, 0, brokers=[{"host": "h", "port": 9}])
    connection.scene.lose(-1)
    assert broken(_beat(_beat(connection, 0), 0).fin().scene.judge()) == []


def test_repeated_ids_are_judged_on_complete_connections() -> None:
    connection = _beat(Scene().connect(), 0)
    connection.client(request_frame(HEARTBEAT, 3, 0)).broker(
        response_frame(HEARTBEAT, 3, 0, throttle_time_ms=-2)
    )
    assert broken(connection.scene.judge()) == ["N01"]
