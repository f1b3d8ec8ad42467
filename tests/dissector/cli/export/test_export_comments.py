"""Findings and events as comments of packets: `export --comments`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from shutil import which

import pytest

from dissector.cli.export_comments import MAX_COMMENTS, MAX_TEXT
from dissector.public import open_capture
from tests import tcp_captures
from tests.dissector.cli import cli_traffic
from tests.dissector.cli.conftest import Run

CAPTURES = Path(__file__).parents[4] / "captures"
DEMO = CAPTURES / "demo.pcap"

pytestmark = pytest.mark.skipif(not which("tshark"), reason="needs tshark")


def comments(capture: Path) -> dict[int, list[str]]:
    """Return the comments of packets, as tshark reads them."""
    words = ["-T", "fields", "-E", "occurrence=a", "-E", "aggregator=\x1f"]
    fields = ["-e", "frame.number", "-e", "frame.comment"]
    command = ["tshark", "-r", str(capture), *words, *fields, "-Y", "frame.comment"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = (line.split("\t") for line in done.stdout.splitlines())
    return {int(number): found.split("\x1f") for number, found in lines}


def test_tshark_shows_findings_and_events_at_their_packets(good: Run, tmp_path: Path) -> None:
    out = tmp_path / "commented.pcapng"
    good("export", DEMO, "--comments", "--connections", "-o", out)
    found = comments(out)
    capture = open_capture(DEMO)
    exported = open_capture(out)
    assert capture.exchanges().drop("capture").equals(exported.exchanges().drop("capture"))
    for finding in capture.findings():
        for packet in finding.packets:
            text = f"kafkashark {finding.rank}: {finding.title}"
            assert any(each.startswith(text) for each in found[packet]), (packet, text)
    events = [each for each in capture.timeline() if each.event == "rebalance"]
    assert events
    for event in events:
        assert any(event.text in each for texts in found.values() for each in texts)
    again = tmp_path / "again.pcapng"
    good("export", out, "--comments", "--connections", "-o", again)
    assert comments(again) == found  # each comment once
    assert good("dissect", out, "-Y", 'frame.comment contains "rebalance"').out


def test_comments_are_kept_bounded_masked_and_escaped(good: Run, tmp_path: Path) -> None:
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    name = "bad\x1b[2J http://user:hidden@host/ " + "x" * 5_000
    for number in range(30):
        asked = {"topics": [{"name": f"{name}{number}"}]}
        connection.client(cli_traffic.request_frame(3, 9, number, **asked))
    capture = tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    out = tmp_path / "out.pcapng"
    good("export", capture, "--comments", "-o", out)
    found = comments(out)
    assert found
    for texts in found.values():
        assert len(texts) <= MAX_COMMENTS
        assert all(each.isprintable() and len(each) <= MAX_TEXT + 3 for each in texts)
        assert not any("hidden" in each for each in texts)


def test_the_section_has_a_summary(good: Run, tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    good("export", DEMO, "--comments", "-Y", "api == OffsetCommit", "-o", out)
    done = subprocess.run(["capinfos", "-k", str(out)], capture_output=True, text=True, check=True)
    assert "kafkashark: " in done.stdout
    assert "breaks: 3 OffsetCommit failed: UNKNOWN_TOPIC_OR_PARTITION" in done.stdout


def test_comments_and_redaction_exclude_each_other(run: Run, tmp_path: Path) -> None:
    done = run("export", DEMO, "--comments", "--redact", "-o", tmp_path / "out.pcapng")
    assert done.status == 2
    assert "--comments: the comments have names, which --redact replaces" in done.err
    assert json.dumps(list(tmp_path.iterdir()), default=str) == "[]"
