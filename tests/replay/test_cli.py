"""`kafkashark replay` as a user runs it, at the embedded broker."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dissector.cli import main

PATIENCE_S = 60.0

CAPTURES = Path(__file__).parents[2] / "captures"
PRODUCED = str(CAPTURES / "librdkafka-idempotent.pcap")
"""Recorded at the embedded broker, so it answers the same again."""


def _run(*arguments: str) -> int:
    return main(["replay", *arguments])


@pytest.mark.parametrize("speed", ["max", "100"])
def test_what_the_mock_answered_it_answers_again(
    speed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(PRODUCED, "--to", "mock", "--speed", speed) == 0
    out, err = capsys.readouterr()
    assert out.startswith("mock: answers as captured\n")
    assert "18 captured, 18 sent" in out
    assert not err


def test_reports_are_written_in_all_forms(tmp_path: Path) -> None:
    files = [tmp_path / f"report{suffix}" for suffix in (".txt", ".ndjson", ".xml", ".html")]
    options = [each for file in files for each in ("--report", str(file))]
    assert _run(PRODUCED, "--to", "mock", "--speed", "max", *options) == 0
    text, ndjson, xml, page = files
    assert text.read_text().startswith("mock: answers as captured\n")
    summary = json.loads(ndjson.read_text().splitlines()[0])
    assert (summary["section"], summary["same"], summary["passed"]) == ("summary", 18, True)
    assert ElementTree.parse(xml).getroot().get("failures") == "0"
    assert page.read_text().startswith("<!doctype html>")


def test_differences_make_the_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    capture = str(CAPTURES / "kafka4-librdkafka-acks.pcap")
    assert _run(capture, "--to", "mock", "--speed", "max") == 1
    assert "ApiVersions.error_code" in capsys.readouterr().out
    assert _run(capture, "--to", "mock", "--speed", "max", "--ignore", "ApiVersions") in (0, 1)
    assert "ApiVersions.error_code" not in capsys.readouterr().out


def test_noise_is_learned_and_then_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = str(CAPTURES / "kafka4-librdkafka-acks.pcap")
    assert _run(capture, "--to", "mock", "--speed", "max", "--noise", "learn") == 0
    noise = tmp_path / "noise"
    noise.write_text(capsys.readouterr().out)
    assert "ApiVersions.error_code" in noise.read_text().splitlines()
    assert _run(capture, "--to", "mock", "--speed", "max", "--noise", str(noise)) == 0
    both = ("--noise", "learn", "--reference", "mock")
    assert _run(capture, "--to", "mock", "--speed", "max", *both) == 0


def test_a_dry_run_needs_no_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(PRODUCED, "--dry-run", "--prefix", "x-", "-Y", "api == Produce") == 0
    out = capsys.readouterr().out
    assert "-> leader of x-" in out
    assert "producer_id producer_epoch sequence from the target" in out
    assert "12 requests would be sent, 0 left out" in out


def test_names_of_topics_are_those_of_the_capture(capsys: pytest.CaptureFixture[str]) -> None:
    renamed = ("--topic-map", "nobody=x", "--dry-run")
    assert _run(PRODUCED, *renamed) == 0
    assert "--topic-map: the capture shows no topic 'nobody'" in capsys.readouterr().err
    both = str(CAPTURES / "kafka4-librdkafka-transactions.pcap")
    topic = "kafka4-librdkafka-transactions."
    assert _run(both, "--to", "mock", "--topic-map", f"{topic}source={topic}sink") == 2
    assert "the same name" in capsys.readouterr().err


def test_a_target_that_is_not_there_is_said_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    file = tmp_path / "report.ndjson"
    assert _run(PRODUCED, "--to", address, "--report", str(file)) == 2
    out, err = capsys.readouterr()
    assert out.startswith(f"{address}: ended early: {address}")
    assert err.startswith(f"kafkashark: {address}")
    assert len(err.splitlines()) == 1
    assert json.loads(file.read_text().splitlines()[0])["passed"] is False


@pytest.mark.parametrize(
    ("number", "why"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")]
)
def test_a_signal_before_anything_is_sent_ends_with_a_report(
    number: signal.Signals, why: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE_S)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        command = [sys.executable, "-m", "dissector", "replay", PRODUCED, "--to", address]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, **pipes) as process, server.accept()[0] as connection:
            connection.settimeout(PATIENCE_S)
            assert connection.recv(1)  # it asks for versions, which nobody tells
            process.send_signal(number)
            out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number
    assert out.startswith(f"{address}: ended early: {why}\n".encode())
    assert not err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "where to?"),
        (["--to", "mock", "--speed", "fast"], "--speed takes a number"),
        (["--to", "mock", "--speed", "-1"], "--speed takes a number"),
        (["--to", "mock", "--topic-map", "a"], "--topic-map takes OLD=NEW"),
        (["--to", "mock", "--offsets", "guess"], "--offsets takes kept, earliest, latest"),
        (["--to", "mock", "--report", "a.pdf"], "a report is called"),
        (["--to", "mock", "--report", "nowhere/a.html"], "there is no folder"),
        (["--to", "mock", "--topic-map", "a=b", "--topic-map", "a=c"], "names 'a' twice"),
        (["--to", "mock", "--ignore", "Fitch.x"], "names no API"),
        (["--to", "mock", "--noise", "nowhere"], "can not be read"),
        (["--to", "mock", "--reference", "mock"], "--noise learn"),
        (["--to", "mock", "--allow", "Nothing"], "can not be allowed"),
        (["--to", "mock", "-Y", "api =="], "filter:"),
    ],
)
def test_bad_usage_is_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(PRODUCED, *arguments) == 2
    out, err = capsys.readouterr()
    assert not out
    assert said in err


def test_a_report_that_can_not_be_written_is_told_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "report.txt"
    folder.mkdir()
    assert _run(PRODUCED, "--to", "mock", "--report", str(folder)) == 2
    out, err = capsys.readouterr()
    assert not out
    assert "can not be written" in err
