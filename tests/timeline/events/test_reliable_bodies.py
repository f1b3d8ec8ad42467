"""Bodies that are decoded once are those of each message, damaged ones apart."""

from __future__ import annotations

import pytest

from dissector.engine.tables.exchange_table import Exchanges
from dissector.protocol.api import Kind
from dissector.protocol.messages import UNSUPPORTED_VERSION
from dissector.public import open_capture
from tests.corpus import FOLDER
from timeline.events import reliable_bodies
from timeline.events.reliable_bodies import ReliableBodies, reliable_body

SIDES: tuple[Kind, Kind] = "request", "response"


def differences(name: str) -> tuple[int, list[tuple[int, Kind]]]:
    """Return the number of bodies of a capture, and those that the codecs read otherwise."""
    capture, bodies = open_capture(FOLDER / name), ReliableBodies(None)
    count, found = 0, []
    for window in capture.windows():
        table: Exchanges = window.exchanges
        assert capture.reading is not None
        for row in range(len(table)):
            for kind in SIDES:
                if bodies.has_whole(table, row, kind):
                    exchange = capture.reading.exchange(table, row, capture.names)
                    count += 1
                    if bodies.read(table, row, kind) != reliable_body(getattr(exchange, kind)):
                        found.append((row, kind))
    return count, found


@pytest.mark.parametrize("name", ["demo.pcap", "kafka39-franz-go.pcap", "kafka39-connect.pcap"])
def test_bodies_are_those_of_their_messages(name: str) -> None:
    count, found = differences(name)
    assert count > 100
    assert not found


def test_few_bytes_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reliable_bodies, "_MOST_BYTES", 2_000)
    capture, bodies = open_capture(FOLDER / "demo.pcap"), ReliableBodies(None)
    for window in capture.windows():
        for row in range(len(window.exchanges)):
            if bodies.has_whole(window.exchanges, row, "request"):
                bodies.read(window.exchanges, row, "request")
                assert sum(len(key[-1]) for key in bodies._bodies) <= 2_000
    assert differences("demo.pcap")[1] == []


def test_an_answer_that_refuses_a_version_has_its_apis() -> None:
    bodies = [
        exchange.response.body
        for exchange in open_capture(FOLDER / "kafka39-franz-go.pcap")
        if exchange.api == "ApiVersions" and exchange.response is not None
    ]
    refused = [body for body in bodies if body.error_code == UNSUPPORTED_VERSION]
    assert refused
    assert all(body.api_keys for body in refused)
