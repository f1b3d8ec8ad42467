"""The command `replay`, at the embedded broker."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dissector.cli import main
from dissector.protocol.apis import KEYS
from dissector.protocol.messages import Message
from tests.default_frames import request, response
from tests.replay.support.replay_captures import exchange, saved
from tests.replay.support.scripted_broker import Answer, scripted, single_broker
from tests.tcp_captures import Wire
from tests.waiting import PATIENCE_S, child

CAPTURES = Path(__file__).parents[2] / "captures"
PRODUCED = str(CAPTURES / "librdkafka-idempotent.pcap")
"""Recorded at the embedded broker, so it answers the same again."""


def _run(*arguments: str) -> int:
    return main(["replay", *arguments])


@pytest.mark.parametrize("speed", ["max", "100"])
def test_a_capture_of_the_mock_replays_without_difference(
    speed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(PRODUCED, "--to", "mock", "--speed", speed) == 0
    out, err = capsys.readouterr()
    assert out.startswith("mock: answers as captured\n")
    assert "18 captured, 18 sent" in out
    assert not err


def test_reports_are_written_in_all_formats(tmp_path: Path) -> None:
    files = [tmp_path / f"report{suffix}" for suffix in (".txt", ".ndjson", ".xml", ".html")]
    options = [each for file in files for each in ("--report", str(file))]
    assert _run(PRODUCED, "--to", "mock", "--speed", "max", *options) == 0
    text, ndjson, xml, page = files
    assert text.read_text().startswith("mock: answers as captured\n")
    summary = json.loads(ndjson.read_text().splitlines()[0])
    assert (summary["section"], summary["same"], summary["passed"]) == ("summary", 18, True)
    assert ElementTree.parse(xml).getroot().get("failures") == "0"
    assert page.read_text().startswith("<!doctype html>")


def test_differences_give_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    capture = str(CAPTURES / "kafka4-librdkafka-acks.pcap")
    assert _run(capture, "--to", "mock", "--speed", "max") == 1
    assert "ApiVersions.api_keys" in capsys.readouterr().out
    assert _run(capture, "--to", "mock", "--speed", "max", "--ignore", "ApiVersions") in (0, 1)
    assert "ApiVersions.api_keys" not in capsys.readouterr().out


@pytest.mark.long
def test_noise_is_learned_and_then_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = str(CAPTURES / "kafka4-librdkafka-acks.pcap")
    assert _run(capture, "--to", "mock", "--speed", "max", "--noise", "learn") == 0
    noise = tmp_path / "noise"
    noise.write_text(capsys.readouterr().out)
    assert "ApiVersions.api_keys[*].max_version" in noise.read_text().splitlines()
    assert _run(capture, "--to", "mock", "--speed", "max", "--noise", str(noise)) == 0
    both = ("--noise", "learn", "--reference", "mock")
    assert _run(capture, "--to", "mock", "--speed", "max", *both) == 0


def test_a_dry_run_needs_no_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(PRODUCED, "--dry-run", "--prefix", "x-", "-Y", "api == Produce") == 0
    out = capsys.readouterr().out
    assert "-> leader of x-" in out
    assert "producer_id producer_epoch sequence from the target" in out
    assert "12 requests would be sent, 0 left out" in out


def test_topics_keep_their_captured_names(capsys: pytest.CaptureFixture[str]) -> None:
    renamed = ("--topic-map", "nobody=x", "--dry-run")
    assert _run(PRODUCED, *renamed) == 0
    assert "--topic-map: the capture shows no topic 'nobody'" in capsys.readouterr().err
    both = str(CAPTURES / "kafka4-librdkafka-transactions.pcap")
    topic = "kafka4-librdkafka-transactions."
    assert _run(both, "--to", "mock", "--topic-map", f"{topic}source={topic}sink") == 2
    assert "the same name" in capsys.readouterr().err


def test_an_unreachable_target_is_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    file = tmp_path / "report.ndjson"
    assert _run(PRODUCED, "--to", address, "--report", str(file)) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith(f"kafkashark: {address}")
    assert len(err.splitlines()) == 1
    summary = _summary(file)
    assert summary["passed"] is False
    assert summary["never_reached"] == summary["captured"] == 18


@pytest.mark.thinned(2)
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
        with child(subprocess.Popen(command, **pipes)) as process, server.accept()[0] as connection:
            connection.settimeout(PATIENCE_S)
            assert connection.recv(1)  # its unanswered ApiVersions request
            process.send_signal(number)
            out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number
    said = f"ended early: {why}; 18 of 18 requests were not sent: never reached (18)\n"
    assert out.startswith(f"{address}: {said}".encode())
    assert not err


def _summary(file: Path) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(file.read_text().splitlines()[0])
    return row


def _rows(file: Path, section: str) -> list[dict[str, Any]]:
    rows = map(json.loads, file.read_text().splitlines())
    return [row for row in rows if row["section"] == section]


@pytest.mark.thinned(5)
@pytest.mark.parametrize(
    ("options", "sent", "left_out", "never_reached"),
    [
        (["--loop", "3"], 3 * 37, 3, 0),
        (["--loop", "3", "--limit", "5"], 4, 1, 3 * 38 - 5),
        (["--limit", "5"], 4, 1, 33),
        (["--scale", "3", "--stagger", "0"], 3 * 37, 3, 0),
        (["--scale", "2", "--loop", "2", "--stagger", "0", "--limit", "43"], 41, 2, 4 * 38 - 43),
    ],
)
def test_captured_requests_are_sent_omitted_or_never_reached(
    tmp_path: Path, options: list[str], sent: int, left_out: int, never_reached: int
) -> None:
    capture, file = str(CAPTURES / "kafka4-errors.pcap"), tmp_path / "report.ndjson"
    given = ("--to", "mock", "--speed", "max", "--report", str(file), *options)
    assert _run(capture, *given) in (0, 1)
    row = _summary(file)
    assert row["captured"] == row["sent"] + row["left_out"] + row["never_reached"]
    assert (row["sent"], row["left_out"], row["never_reached"]) == (sent, left_out, never_reached)
    assert sum(each["count"] for each in _rows(file, "left_out")) == left_out


@pytest.mark.long
def test_ctrl_c_counts_requests_never_reached(tmp_path: Path) -> None:
    wire = Wire()
    key = KEYS["Heartbeat"]
    connection = wire.connect().syn()
    for number in range(20):
        heartbeat = request(key, 3, number, group_id="g", member_id="m")
        exchange(connection, heartbeat, response(key, 3, number))
    path, file = saved(tmp_path, wire), tmp_path / "report.ndjson"

    async def main() -> tuple[int | None, bytes]:
        ports: list[int] = []
        beats: list[Message] = []

        def beat(message: Message) -> Answer:
            beats.append(message)
            if len(beats) < 8:
                return {}
            process.send_signal(signal.SIGINT)
            return None

        async with scripted({**single_broker(ports), "Heartbeat": beat}) as broker:
            ports.append(broker.port)
            command = ["-m", "dissector", "replay", path, "--to", f"127.0.0.1:{broker.port}"]
            process = await asyncio.create_subprocess_exec(
                sys.executable, *command, "--report", str(file), stdout=subprocess.PIPE
            )
            out, _ = await process.communicate()
            return process.returncode, out

    status, out = asyncio.run(main())
    assert status == 128 + signal.SIGINT
    row = _summary(file)
    assert row["same"] == 7
    assert row["not_judged"] == row["sent"] - 7 >= 1
    assert row["captured"] == row["sent"] + row["left_out"] + row["never_reached"] == 20
    assert f"never reached ({row['never_reached']})".encode() in out.splitlines()[0]


ACKS = str(CAPTURES / "kafka4-librdkafka-acks.pcap")


def test_accepted_differences_do_not_fail_and_stale_ones_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, given = str(tmp_path / "accepted"), ("--to", "mock", "--speed", "max")
    assert _run(ACKS, *given, "--write-accepted", file) == 1
    assert "ApiVersions.api_keys[*].max_version" in Path(file).read_text()
    assert _run(ACKS, *given, "--accept", file) == 0
    out, err = capsys.readouterr()
    assert "Accepted differences: fail nothing" in out
    assert "no longer found" not in err
    assert _run(PRODUCED, *given, "--accept", file) == 0
    assert "--accept: no longer found: ApiVersions.api_keys" in capsys.readouterr().err


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("fail_on", "status"),
    [("differs", 1), ("error,missing", 0), ("nothing", 0), ("nothing,latency:max>0ms", 1)],
)
def test_fail_on_determines_the_status(fail_on: str, status: int) -> None:
    assert _run(ACKS, "--to", "mock", "--speed", "max", "--fail-on", fail_on) == status


def test_upgrade_differences_have_a_section_and_do_not_fail(
    capsys: pytest.CaptureFixture[str],
) -> None:
    chosen = ("-Y", "api == ApiVersions and api_version == 0", "--to", "mock", "--speed", "max")
    demo = str(CAPTURES / "demo.pcap")  # has clients with requests in v0
    assert _run(demo, *chosen) == 1
    assert "Differences by field" in capsys.readouterr().out
    assert _run(demo, *chosen, "--upgrade") == 0
    out = capsys.readouterr().out
    assert "Changed by the upgrade: fails nothing" in out
    assert "Differences by field" not in out


@pytest.mark.long
def test_reports_of_copies_are_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The status covers all copies: 1 for a difference in any of them."""
    copies, other, both = (tmp_path / f"{name}.ndjson" for name in ("copies", "other", "both"))
    quick = ("--to", "mock", "--speed", "max", "--report")
    assert _run(PRODUCED, *quick, str(copies), "--scale", "2", "--stagger", "0") == 0
    assert "18 captured, 18 sent" not in capsys.readouterr().out
    assert _run(ACKS, *quick, str(other), "--prefix", "x-") == 1
    capsys.readouterr()
    assert _run("--merge", str(copies), str(other), "--report", str(both)) == 1
    out = capsys.readouterr().out
    counts = [_summary(each) for each in (copies, other, both)]
    for name in ("captured", "sent", "left_out", "same", "differs", "error_changed", "missing"):
        assert counts[0][name] + counts[1][name] == counts[2][name], name
    assert f"{counts[2]['captured']:,} captured" in out
    assert "copy1-*" in out
    assert "x-*" in out
    assert _run("--merge", str(both), "--fail-on", "nothing") == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no target"),
        (["--merge"], "is not a report of replay"),
        (["--merge", "--to", "mock"], "--merge replays nothing: leave out --to"),
        (["--to", "mock", "--speed", "fast"], "--speed takes a number"),
        (["--to", "mock", "--speed", "-1"], "--speed takes a number"),
        (["--to", "mock", "--speed", "auto"], "need each other"),
        (["--to", "mock", "--latency-limit", "p99>1ms"], "need each other"),
        (["--to", "mock", "--speed", "auto", "--latency-limit", "slow"], "is not a limit"),
        (["--to", "mock", "--part", "3/2"], "--part takes I/N"),
        (["--to", "mock", "--topic-map", "a"], "--topic-map takes OLD=NEW"),
        (["--to", "mock", "--offsets", "guess"], "--offsets takes kept, earliest, latest"),
        (["--to", "mock", "--report", "a.pdf"], "a report is called"),
        (["--to", "mock", "--report", "nowhere/a.html"], "there is no folder"),
        (["--to", "mock", "--topic-map", "a=b", "--topic-map", "a=c"], "names 'a' twice"),
        (["--to", "mock", "--ignore", "Fitch.x"], "names no API"),
        (["--to", "mock", "--noise", "nowhere"], "cannot be read"),
        (["--to", "mock", "--reference", "mock"], "--noise learn"),
        (["--to", "mock", "--allow", "Nothing"], "can not be allowed"),
        (["--to", "mock", "-Y", "api =="], "filter, character 7"),
        (["--to", "mock", "--fail-on", "all"], "--fail-on takes differs, error, missing"),
        (["--to", "mock", "--fail-on", "latency:fast"], "is not a limit"),
        (["--to", "mock", "--accept", "nowhere"], "cannot be read"),
        (["--to", "mock", "--write-accepted", "nowhere/a"], "there is no folder"),
        (["--to", "mock", "--mask", "value.card", "--show-payloads"], "exclude each other"),
        (["--to", "mock", "--mask", "card"], "write value.FIELD"),
    ],
)
def test_wrong_usage_is_a_one_line_error(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(PRODUCED, *arguments) == 2
    out, err = capsys.readouterr()
    assert not out
    assert said in err


def test_an_unwritable_report_is_an_error_before_the_replay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "report.txt"
    folder.mkdir()
    assert _run(PRODUCED, "--to", "mock", "--report", str(folder)) == 2
    out, err = capsys.readouterr()
    assert not out
    assert "can not be written" in err
