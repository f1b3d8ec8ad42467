"""A capture with one direction of each connection: named as that by every command."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dissector.cli import main
from dissector.engine.reading.capture import Capture
from findings.gather.capture_lacks import kafka_states, lacks
from kafkashark import Plan, open_capture
from tests.corpus import MADE
from tests.dissector.engine.reading.test_capture import beat, heartbeat
from tests.kafkashark.test_several_files import DEMO, taps
from tests.tcp_captures import Wire, write

__all__ = ["taps"]

ONLY_REQUESTS = MADE / "only_requests.pcap"


@pytest.fixture
def requests_only(taps: list[str]) -> str:
    return taps[1]


@pytest.fixture
def responses_only(taps: list[str]) -> str:
    return taps[0]


def ndjson(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[list[dict[str, Any]], str]:
    main([*words, "-T", "ndjson"])
    out, err = capsys.readouterr()
    return [json.loads(line) for line in out.splitlines()], err


def test_messages_have_a_status_of_their_own(
    requests_only: str, responses_only: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, _ = ndjson(capsys, "pairs", str(DEMO))
    due = Counter(row["status"] for row in whole)
    # One client resets its connection before it acknowledges the response.
    known = due["answered"] - 1
    found, notice = ndjson(capsys, "pairs", requests_only)
    assert Counter(row["status"] for row in found) == {
        "one_sided": known,
        "unanswered": 1,
        "no_response": due["no_response"],
    }
    assert "without the packets of the server: the capture has one direction only" in notice
    found, notice = ndjson(capsys, "pairs", responses_only)
    assert Counter(row["status"] for row in found) == {"one_sided": due["answered"]}
    assert "without the packets of the client: the capture has one direction only" in notice
    ndjson(capsys, "pairs", "--unanswered", requests_only)
    assert main(["pairs", requests_only, "-Y", "status == one_sided", "-T", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + known


def test_streams_name_the_side_that_is_not_captured(
    requests_only: str, responses_only: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, _ = ndjson(capsys, "streams", requests_only)
    named = Counter(row["not_captured"] for row in rows)
    assert named == {"b": len(rows) - 1, None: 1}
    assert [row["ended"] for row in rows if row["not_captured"] is None] == ["rst"]
    # A SYN/ACK shows which side opened the connection.
    rows, _ = ndjson(capsys, "streams", responses_only)
    assert {row["not_captured"] for row in rows} == {"a"}
    rows, _ = ndjson(capsys, "streams", str(DEMO))
    assert {row["not_captured"] for row in rows} == {None}


def test_counts_and_reasons(requests_only: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows, _ = ndjson(capsys, "streams", requests_only)
    assert main(["stats", requests_only]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["one", "sided", "connections", str(len(rows) - 1)] in lines
    main(["conform", requests_only])
    out = capsys.readouterr().out
    assert "the capture has one direction of the connection only" in out
    assert out.count("the capture begins in the middle") == 1
    assert "once: the capture begins in the middle" in out
    assert main(["timeline", requests_only, "-T", "ndjson"]) == 0
    kinds = Counter(json.loads(line)["kind"] for line in capsys.readouterr().out.splitlines())
    assert not {"hung", "connect failed"} & kinds.keys()
    assert kinds["unanswered"] <= 1


def test_reports_have_a_lack_of_their_own(requests_only: str) -> None:
    capture = Capture([requests_only])
    for _ in capture.windows():
        pass
    assert capture.reading is not None
    kafka = kafka_states(capture.reading)
    found = {each.what: each.count for each in lacks(capture.reading, kafka, 0)}
    assert found["connections with one direction"] == len(kafka) - 1
    assert found["connections without their begin"] == 1


def test_a_capture_that_ends_early_is_not_one_sided(tmp_path: Path) -> None:
    """Requests at the end of a capture: their client acknowledges what came before it began."""
    wire = Wire()
    connection = wire.connect(50000).syn()
    connection.client(heartbeat(1)).broker(beat(1))
    del wire.packets[:]
    connection.client(heartbeat(2), heartbeat(3))
    sent = [packet for packet in wire.packets if packet.side == 0]
    write(tmp_path / "a.pcap", sent)
    assert [each.status for each in open_capture(tmp_path / "a.pcap")] == ["unanswered"] * 2
    connection.broker(beat(2))
    sent = [packet for packet in wire.packets if packet.side == 0]
    write(tmp_path / "a.pcap", sent)
    assert [each.status for each in open_capture(tmp_path / "a.pcap")] == ["one_sided"] * 2


def test_a_side_with_any_packet_is_captured(tmp_path: Path) -> None:
    """The broker's SYN/ACK came, then the capture lost its packets."""
    wire = Wire()
    one, other = wire.connect(50000), wire.connect(50001)
    one.syn()
    other.syn()
    one.client(heartbeat(1))
    other.client(heartbeat(1))
    other.broker(beat(1))
    write(tmp_path / "a.pcap", wire.packets)
    statuses = [each.status for each in open_capture(tmp_path / "a.pcap")]
    assert sorted(statuses) == ["answered", "unanswered"]


def test_a_plan_of_requests_only_has_all_steps(requests_only: str) -> None:
    assert len(Plan.of(requests_only)) == len(Plan.of(DEMO))


def test_a_capture_of_requests(capsys: pytest.CaptureFixture[str]) -> None:
    rows, notice = ndjson(capsys, "pairs", str(ONLY_REQUESTS))
    assert Counter(row["status"] for row in rows) == {"one_sided": 121}
    assert "21 connections to 10.1.2.9:25635 without the packets of the server" in notice
