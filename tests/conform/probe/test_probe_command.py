"""`kafkashark conform --target`, at the embedded broker."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.mock.librdkafka_mock import MockCluster
from conform.cli import conform
from conform.probe.probe_command import QUIET_S, ProbeProgress, release_lines
from dissector.cli.app import main
from dissector.protocol.releases.kafka_releases import best_match, ranges_of
from tests.conform.probe.scripts import LIVE
from tests.dissector.cli.test_process import started
from tests.waiting import PATIENCE_S

Run = tuple[int, str, str]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with MockCluster() as mock:
        yield mock.addresses[0]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> Run:
    status = main(["conform", *words], plugins=[("conform", conform)])
    output = capsys.readouterr()
    return status, output.out, output.err


def test_output_has_the_verdict_and_the_release(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, "--target", address, "--select", "P03,P08")
    assert (status, err) == (0, "kafkashark: probing: P03 " + LIVE["P03"].title + "\n")
    assert f"{address}: 0 errors" in out
    assert "2 of 2 rules were judged" in out
    assert "are most like those of Kafka" in out
    assert "Produce: offers v0-10" in out


def test_errors_give_status_1(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--target", address, "--select", "P02")
    assert status == 1
    assert "error P02" in out


def test_a_baseline_suppresses_findings(
    address: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    known = str(tmp_path / "known.txt")
    words = ("--target", address, "--select", "P02")
    assert run(capsys, *words, "--write-baseline", known)[0] == 0
    assert run(capsys, *words, "--baseline", known)[0] == 0


@pytest.mark.parametrize("form", ["ndjson", "junit", "sarif", "html"])
def test_other_formats(address: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--target", address, "--select", "P03", "-T", form)
    assert status == 0
    assert "P03" in out
    if form == "ndjson":
        release = json.loads(out.splitlines()[-1])
        assert release["section"] == "release"
        assert release["best"]
    if form == "sarif":
        json.loads(out)


def test_fixtures_left_behind_are_reported(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--target", address, "--select", "P20", "--allow-writes")
    _, _, err = run(capsys, *words)
    assert "left behind: topic kafkashark-conform-" in err
    assert "the broker offers no DeleteTopics" in err


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--target", "127.0.0.1:1", "a.pcap")[0] == 2
    assert run(capsys, "--target", "127.0.0.1:1", "--sasl", "NO-SUCH")[0] == 2
    status, _, err = run(capsys, "--target", "127.0.0.1:1")
    assert (status, err.count("\n")) == (2, 1)
    assert "refused the connection" in err


def test_live_rules_are_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--list", "--select", "P,F12")
    assert out.startswith("F12 ")
    assert "P01  error" in out
    _, out, _ = run(capsys, "--explain", "E08")
    assert "on a running broker" in out


def test_an_exact_match_of_a_release_is_reported() -> None:
    lines = list(release_lines(best_match(ranges_of("4.3")), "text"))
    assert lines[1] == "The offered versions are those of Kafka 4.3"
    assert list(release_lines(best_match(ranges_of("4.3")), "junit")) == []


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_check_of_a_silent_target(number: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE_S)
        process = started("conform", "--target", f"127.0.0.1:{server.getsockname()[1]}")
        with server.accept()[0] as connection:
            assert connection.recv(1)
            process.send_signal(number)
            out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (128 + number, b"", b"")


def test_progress_is_shown_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    now_s = [0.0]
    progress = ProbeProgress(is_terminal=False, now=lambda: now_s[0])
    progress.tick()
    for text in ("E08 Tags", "P01 First", "P02 Second"):
        progress.begin(text)
    for now_s[0] in (QUIET_S - 1, QUIET_S, QUIET_S + 5, 2 * QUIET_S):
        progress.tick()
    progress.end()
    assert capsys.readouterr().err.splitlines() == [
        "kafkashark: probing: E08 Tags",
        "kafkashark: probing: P01 First",
        "kafkashark: probing: P02 Second: 30 s so far",
        "kafkashark: probing: P02 Second: 60 s so far",
    ]


def test_progress_on_a_terminal_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    progress = ProbeProgress(is_terminal=True)
    progress.begin("P01 First")
    progress.end()
    assert capsys.readouterr().err == "\r\x1b[KP01 First\r\x1b[K"
