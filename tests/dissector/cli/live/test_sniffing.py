"""Live captures on loopback."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import polars
import pytest

from tests.dissector.cli.conftest import Run
from tests.dissector.cli.live.sniffing import (
    PROGRAMS,
    LoopbackTraffic,
    Sniffer,
    why_unavailable,
)
from tests.dissector.cli.test_process import ended
from tests.waiting import wait_until

with_dumpcap = pytest.mark.usefixtures("_dumpcap")

Sniff = Callable[..., Sniffer]


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> str:
    """The name of each capture program."""
    return _or_skip(request.param)


@pytest.fixture
def _dumpcap() -> None:
    _or_skip("dumpcap")


def _or_skip(program: str) -> str:
    if why := why_unavailable(program):
        pytest.skip(why)
    return program


@pytest.fixture
def traffic() -> Iterator[LoopbackTraffic]:
    traffic = LoopbackTraffic()
    yield traffic
    traffic.close()


@pytest.fixture
def sniff(traffic: LoopbackTraffic, tmp_path: Path) -> Sniff:
    """Start a command that captures the traffic."""

    def start(program: str, *words: str | Path) -> Sniffer:
        sniffer = Sniffer(tmp_path, program, *words, "-i", "lo", "-f", traffic.capture_filter)
        assert sniffer.begun == f"kafkashark: capturing on lo with {program}\n"
        traffic.connect()
        return sniffer

    return start


@pytest.mark.thinned(2)
def test_rows_appear_during_the_capture(
    program: str, sniff: Sniff, traffic: LoopbackTraffic
) -> None:
    sniffer = sniff(program, "pairs")
    for number in range(2):
        traffic.ask(number)
        traffic.answer(number)
        if number == 0:
            assert {"connection", "api"} <= set(sniffer.line().split())
        assert {"Heartbeat", str(number), "answered"} <= set(sniffer.line().split())
    assert sniffer.end() == (0, "", "")


@with_dumpcap
def test_a_request_is_shown_immediately(sniff: Sniff, traffic: LoopbackTraffic) -> None:
    sniffer = sniff("dumpcap", "dissect")
    traffic.ask(7)
    line = sniffer.line()
    assert "Heartbeat v4 request" in line
    assert "waiting" not in line
    traffic.answer(7)
    assert "Heartbeat v4 response" in sniffer.line()
    assert sniffer.end() == (0, "", "")


@with_dumpcap
def test_pending_requests_are_shown_once(sniff: Sniff, traffic: LoopbackTraffic) -> None:
    sniffer = sniff("dumpcap", "pairs", "--pending", "-T", "ndjson")
    traffic.ask(7)
    row = json.loads(sniffer.line())
    assert (row["correlation_id"], row["status"], row["latency_ms"]) == (7, "waiting", None)
    traffic.answer(7)
    traffic.ask(8)
    assert json.loads(sniffer.line())["correlation_id"] == 8
    assert sniffer.end() == (0, "", "")


def test_pending_requests_of_a_file_are_the_unanswered(good: Run, shop: Path) -> None:
    every = good("pairs", shop, "-T", "ndjson").rows
    unanswered = [row for row in every if row["status"] == "unanswered"]
    assert unanswered
    assert good("pairs", shop, "--pending", "-T", "ndjson").rows == unanswered
    where = ["-Y", "api == Heartbeat or api == Fetch"]
    assert good("pairs", shop, "--pending", "-T", "ndjson", *where).rows == unanswered


@pytest.mark.thinned(2)
def test_packets_are_written_to_a_file(
    program: str, sniff: Sniff, traffic: LoopbackTraffic, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.pcapng"
    sniffer = sniff(program, "pairs", "-w", kept, "-T", "ndjson")
    for number in range(20):
        traffic.ask(number)
        traffic.answer(number)
    lines = [sniffer.line() for _ in range(20)]
    assert sniffer.end() == (0, "", "")
    status, again, _ = ended("pairs", kept, "-T", "ndjson")
    assert status == 0
    assert again.decode().replace(str(kept), "-") == "".join(lines)


@with_dumpcap
def test_packets_are_written_while_reading_lags(
    sniff: Sniff, traffic: LoopbackTraffic, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.pcapng"
    sniffer = sniff("dumpcap", "pairs", "-w", kept, "-T", "ndjson")
    sniffer.process.send_signal(signal.SIGSTOP)
    for number in range(30):
        traffic.ask(number, "g" * 20_000)
        traffic.answer(number)
    traffic.ask(30, "the last one")
    wait_until(lambda: b"the last one" in kept.read_bytes())
    sniffer.process.send_signal(signal.SIGCONT)
    lines = [json.loads(sniffer.line()) for _ in range(30)]
    assert [row["correlation_id"] for row in lines] == list(range(30))
    status, out, err = sniffer.end()
    assert (status, json.loads(out)["status"], err) == (0, "unanswered", "")


@pytest.mark.long
def test_a_ring_keeps_the_newest_files(
    program: str, sniff: Sniff, traffic: LoopbackTraffic, tmp_path: Path
) -> None:
    """All packets are read, also those of deleted files."""
    # The smallest files of tcpdump have a million bytes.
    size, length = (100, 30_000) if program == "dumpcap" else (1000, 300_000)
    words = ["pairs", "-T", "ndjson", "--ring", f"files:2,filesize:{size}"]
    sniffer = sniff(program, *words, "-w", tmp_path / "kept.pcapng")
    for number in range(11):
        traffic.ask(number, "g" * length if number else "g")
        traffic.answer(number)
        assert json.loads(sniffer.line())["correlation_id"] == number
    assert _newest(tmp_path) >= 3
    assert sniffer.end() == (0, "", "")
    assert len(list(tmp_path.glob("kept*"))) == 2


def _newest(folder: Path) -> int:
    """Return the number of the newest file of the ring."""
    names = [each.name for each in folder.glob("kept_*")]
    of_dumpcap = [int(name.split("_")[1]) for name in names if name.count("_") == 2]
    of_tcpdump = [int(name.partition(".pcapng")[2] or 0) + 1 for name in names]
    return max(of_dumpcap or of_tcpdump, default=0)


@pytest.mark.thinned(2)
def test_several_interfaces(program: str, traffic: LoopbackTraffic, tmp_path: Path) -> None:
    others = sorted(each.name for each in Path("/sys/class/net").iterdir() if each.name != "lo")
    if not others:
        pytest.skip("there is one interface")
    words = ["pairs", "-T", "ndjson", "-i", "lo", "-i", others[0], "-f", traffic.capture_filter]
    sniffer = Sniffer(tmp_path, program, *words)
    traffic.connect()
    traffic.ask(1)
    traffic.answer(1)
    assert json.loads(sniffer.line())["correlation_id"] == 1
    assert sniffer.end() == (0, "", "")


@pytest.mark.thinned(6)
@pytest.mark.parametrize("limit", ["packets:12", "filesize:1", "duration:1"])
def test_the_capture_ends_at_its_limit(
    program: str, limit: str, sniff: Sniff, traffic: LoopbackTraffic
) -> None:
    sniffer = sniff(program, "streams", "-T", "ndjson", "-a", limit)
    for number in range(20):
        traffic.ask(number)
        traffic.answer(number)
    status, out, err = sniffer.end(None)
    assert (status, err) == (0, "")
    row = json.loads(out)
    assert row["speaks"] == "kafka"
    if limit.startswith("packets"):
        assert row["packets_a"] + row["packets_b"] == 12


@pytest.mark.thinned(6)
@with_dumpcap
@pytest.mark.parametrize(
    ("command", "number"),
    [
        *((each, signal.SIGINT) for each in ("stats", "conform", "records", "pairs -T parquet -o")),
        *((each, signal.SIGTERM) for each in ("stats", "pairs -T parquet -o")),
    ],
)
def test_a_signal_ends_the_input_but_not_the_output(
    command: str, number: int, sniff: Sniff, traffic: LoopbackTraffic, tmp_path: Path
) -> None:
    file, kept = tmp_path / "a.parquet", tmp_path / "kept.pcapng"
    files = [file] if command.endswith("-o") else []
    sniffer = sniff("dumpcap", *command.split(), *files, "-w", kept)
    traffic.ask(1)
    traffic.answer(1)
    traffic.close()
    wait_until(lambda: b"\x02g" in kept.read_bytes())
    status, out, err = sniffer.end(number)
    assert (status, err) == (0, "")
    shown = {"stats": "Heartbeat", "conform": "rules were judged"}.get(command, "")
    assert shown in out
    if files:
        assert polars.read_parquet(file)["correlation_id"].to_list() == [1]


@pytest.mark.thinned(2)
@with_dumpcap
@pytest.mark.parametrize("command", ["conform", "pairs -T parquet -o"])
def test_ctrl_c_right_after_the_start(command: str, sniff: Sniff, tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    sniffer = sniff("dumpcap", *command.split(), *[file] * command.endswith("-o"))
    status, out, err = sniffer.end()
    if command == "conform":
        assert "0 of" in out
        assert (status, len(err.splitlines())) == (2, 1)
    else:
        assert (status, out, err) == (0, "", "")
        assert "correlation_id" in polars.read_parquet(file).columns


@with_dumpcap
def test_the_capture_ends_when_the_command_is_killed(
    sniff: Sniff, traffic: LoopbackTraffic, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.pcapng"
    sniffer = sniff("dumpcap", "pairs", "-w", kept)
    assert _writers(kept)
    sniffer.end(signal.SIGKILL)
    wait_until(lambda: not _writers(kept))


def _writers(kept: Path) -> list[str]:
    """Return the processes whose command line names the file."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes()
        except OSError:
            continue
        if words.split(b"\0")[0].endswith(b"dumpcap") and str(kept).encode() in words:
            found.append(each.parent.name)
    return found


@with_dumpcap
@pytest.mark.thinned(2)
@pytest.mark.parametrize("width", ["75", "200"])
def test_statistics_are_refreshed_in_place(traffic: LoopbackTraffic, width: str) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "dissector", "stats", "-i", "lo", "-f", traffic.capture_filter]
    process = subprocess.Popen(
        [*words, "--interval", "0.1", "--top", "1"],
        stdout=theirs,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": width, "LINES": "12"},
    )
    assert process.stderr is not None
    assert b"capturing" in process.stderr.readline()
    traffic.connect()
    seen = bytearray()
    for number in range(2):
        traffic.ask(number)
        traffic.answer(number)
        shown = f"Heartbeat {number + 1:>6}".encode()
        while shown not in seen:
            seen += os.read(ours, 1 << 16)
    screens = bytes(seen).split(b"\x1b[H")[2:]
    assert all(screen.count(b"\r\n") <= 11 for screen in screens)
    assert b"more lines" in seen
    process.send_signal(signal.SIGINT)
    while process.poll() is None or select.select([ours], [], [], 0)[0]:
        if select.select([ours], [], [], 0.1)[0]:
            seen += os.read(ours, 1 << 16)
    os.close(ours)
    os.close(theirs)
    report = process.stderr.read()
    assert (process.returncode, b"left out" in report) == (0, width == "75")
    process.stderr.close()
    last = bytes(seen).rpartition(b"\x1b[2J")[2]
    assert b"retransmitted bytes" in last


def program_of(folder: Path, script: str) -> str:
    """Write a substitute for dumpcap."""
    path = folder / "dumpcap"
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)
    return str(path)


def test_dropped_packets_are_reported(tmp_path: Path, shop: Path) -> None:
    line = "Packets received/dropped on interface 'Loopback: lo': 9/1234 (pcap:1000/dumpcap:234)"
    program = program_of(tmp_path, f'cat {shop}\necho "{line}" >&2\n')
    sniffer = Sniffer(tmp_path, program, "pairs", "-i", "lo", "-T", "ndjson")
    status, out, err = sniffer.end(None)
    assert (status, len(out.splitlines())) == (0, 9)
    assert err == (
        "kafkashark: 1,234 packets were dropped by the kernel on Loopback: lo: "
        "the capture has gaps\n"
    )


def test_a_capture_with_a_late_failure_prints_its_rows(tmp_path: Path, shop: Path) -> None:
    why = "dumpcap: The network adapter is no longer running."
    program = program_of(tmp_path, f"cat {shop}\necho '{why}' >&2\nexit 2\n")
    sniffer = Sniffer(tmp_path, program, "pairs", "-i", "lo", "-T", "ndjson")
    status, out, err = sniffer.end(None)
    assert (status, len(out.splitlines())) == (2, 9)
    assert err == ("kafkashark: -i lo: dumpcap stopped: The network adapter is no longer running\n")


def test_an_interface_that_goes_away_is_told(tmp_path: Path, shop: Path) -> None:
    """Dumpcap calls it a success."""
    gone = 'The network adapter "d0" is no longer attached; the capture will stop.'
    program = program_of(tmp_path, f"cat {shop}\necho 'dumpcap: {gone}' >&2\n")
    sniffer = Sniffer(tmp_path, program, "stats", "-i", "d0")
    status, out, err = sniffer.end(None)
    assert (status, "Heartbeat" in out) == (2, True)
    assert err == f"kafkashark: -i d0: dumpcap stopped: {gone[:-1]}\n"


def test_the_error_without_rights_names_the_remedies(tmp_path: Path) -> None:
    why = 'dumpcap: You do not have permission to capture on device "lo".'
    program = program_of(tmp_path, f"echo '{why}' >&2\nexit 1\n")
    sniffer = Sniffer(tmp_path, program, "stats", "-i", "lo")
    assert sniffer.end(None) == (2, "", "")
    for each in (why[9:-1], "group wireshark", "setcap", "--cap-add NET_RAW", "kubectl exec"):
        assert each in sniffer.begun


@pytest.mark.skipif(shutil.which("setpriv") is None or os.geteuid() != 0, reason="needs setpriv")
@pytest.mark.thinned(2)
def test_without_rights_on_loopback(program: str, tmp_path: Path) -> None:
    words = [
        shutil.which("setpriv"),
        "--bounding-set",
        "-all",
        "--inh-caps",
        "-all",
        shutil.which(program),
    ]
    path = tmp_path / "bin" / program
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec {" ".join(map(str, words))} "$@"\n')
    path.chmod(0o755)
    sniffer = Sniffer(tmp_path / "bin", str(path), "stats", "-i", "lo")
    assert sniffer.end(None) == (2, "", "")
    assert "ermission" in sniffer.begun
    assert "setcap" in sniffer.begun


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-f tcp x.pcap", "-f, -a, -w and --ring require -i IFACE"),
        ("", "no input: CAPTURE... or -i IFACE is missing"),
        ("-i lo x.pcap", "-i captures by itself, and can't be combined with captures"),
        ("-i lo -a seconds:3", "-a takes duration:N, packets:N, filesize:N with a positive N"),
        ("-i lo -a packets:1.5", "-a takes"),
        ("-i lo --ring files:2,filesize:3", "--ring requires -w FILE"),
        ("-i lo -w x --ring files:2", "--ring takes files:N,filesize:KB"),
        ("-i lo -w -", "-w takes a file"),
        ("-i lo -w x -o x", "x is written (-o); -w would overwrite it"),
    ],
)
def test_invalid_combinations_of_options(run: Run, words: str, message: str) -> None:
    status, out, err = run("pairs", *words.split())
    assert (status, out) == (2, "")
    assert message in err
