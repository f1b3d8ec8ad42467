"""Gaps of a capture."""

from __future__ import annotations

from pathlib import Path

from dissector import open_capture
from findings.gather.capture_lacks import kafka_states, lacks, tls_reasons, why_empty
from tests import default_frames, tcp_captures


def talk() -> tcp_captures.Wire:
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    for number in range(4):
        connection.client(default_frames.request(18, 0, number))
        connection.broker(default_frames.response(18, 0, number, error_code=0))
    return wire


def gaps_of(path: str) -> dict[str, int]:
    capture = open_capture(path)
    assert list(capture)
    assert capture.reading is not None
    assert why_empty(capture.reading) == ""
    assert tls_reasons(capture.reading) == {}
    return {
        each.what: each.count
        for each in lacks(capture.reading, kafka_states(capture.reading), 0)
        if each.count
    }


def test_a_complete_capture_has_no_gaps(tmp_path: Path) -> None:
    assert gaps_of(tcp_captures.write(tmp_path / "a.pcap", talk().packets)) == {}


def test_a_connection_begun_before_the_capture(tmp_path: Path) -> None:
    path = tcp_captures.write(tmp_path / "a.pcap", talk().packets[3:])
    assert gaps_of(path) == {"connections without their begin": 1}


def test_lost_packets(tmp_path: Path) -> None:
    sent = talk().packets
    lost = [each for number, each in enumerate(sent) if number not in (7, 8)]
    found = gaps_of(tcp_captures.write(tmp_path / "a.pcap", lost))
    assert found["gaps in streams"] == 1
    assert found["bytes lost"] > 0


def test_an_empty_capture(tmp_path: Path) -> None:
    wire = tcp_captures.Wire()
    wire.connect().syn()
    capture = open_capture(tcp_captures.write(tmp_path / "a.pcap", wire.packets))
    assert not list(capture)
    assert capture.reading is not None
    assert why_empty(capture.reading).startswith("no Kafka in 3 packets")
