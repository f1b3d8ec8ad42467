"""Captures from a pipe, Ctrl-C, and terminals."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars
import pytest

from tests import tcp_captures
from tests.dissector.cli import cli_traffic
from tests.dissector.cli.test_process import many, started
from tests.waiting import PATIENCE_S, wait_until

SIGNALS = [signal.SIGINT, signal.SIGTERM]

HEADER_BYTES = len(tcp_captures.pcap_file([]))


class Live:
    """A command with a growing capture as standard input."""

    def __init__(self, *words: str) -> None:
        self.process = started(*words, stdin=subprocess.PIPE)
        self.wire = tcp_captures.Wire()
        self.connection = self.wire.connect().syn()
        self._sent = 0

    def ask(self, number: int) -> None:
        self.connection.client(
            cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, number, group_id="g")
        )

    def answer(self, number: int) -> None:
        self.connection.broker(cli_traffic.response_frame(cli_traffic.HEARTBEAT, 4, number))

    def capture(self) -> None:
        """Write the new packets."""
        data = tcp_captures.pcap_file(self.wire.packets)
        assert self.process.stdin is not None
        self.process.stdin.write(data[self._sent :])
        self.process.stdin.flush()
        self._sent = len(data)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode()

    def end(self, number: int | None = None) -> tuple[int, str, str]:
        """End the input, or send a signal; return status and output."""
        if number is None:
            out, err = self.process.communicate(timeout=PATIENCE_S)
        else:
            self.process.send_signal(number)
            assert self.process.stdout is not None
            assert self.process.stderr is not None
            out, err = self.process.stdout.read(), self.process.stderr.read()
            self.process.wait(PATIENCE_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return self.process.returncode, out.decode(), err.decode()


@pytest.mark.thinned(6)
@pytest.mark.parametrize("command", ["pairs", "records"])
@pytest.mark.parametrize("form", ["table", "csv", "ndjson"])
def test_rows_of_a_pipe_appear_immediately(command: str, form: str) -> None:
    """Each line is read before the next packet is written: none waits for later packets."""
    live = Live(command, "-", "-T", form)
    data = [{"name": "orders", "partition_data": [{"index": 3, "records": cli_traffic.PRODUCED}]}]
    for number in range(3):
        live.connection.client(
            cli_traffic.request_frame(cli_traffic.PRODUCE, 9, number, acks=1, topic_data=data)
        )
        live.connection.broker(cli_traffic.response_frame(cli_traffic.PRODUCE, 9, number))
        live.capture()
        if number == 0 and form != "ndjson":
            assert "time" in live.line()
        for _ in range(2 if command == "records" else 1):
            line = live.line()
            assert "Produce" in line
            assert form != "ndjson" or json.loads(line)["correlation_id"] == number
    assert live.end() == (0, "", "")


@pytest.mark.thinned(3)
@pytest.mark.parametrize("form", ["text", "ndjson", "fields"])
def test_a_request_is_shown_before_its_response(form: str) -> None:
    fields = ["-e", "correlation_id", "-e", "status"] if form == "fields" else []
    live = Live("dissect", "-", "-T", form, *fields)
    shown = []
    for number in (1, 2):  # a long wait for the first response
        live.ask(number)
        live.capture()
        shown.append(live.line())
    live.answer(2)
    live.capture()
    shown.append(live.line())
    live.answer(1)
    live.capture()
    shown.append(live.line())
    if form == "ndjson":
        rows = [json.loads(line) for line in shown]
        assert [(row["kind"], row["correlation_id"], row["status"]) for row in rows] == [
            ("request", 1, "waiting"),
            ("request", 2, "waiting"),
            ("response", 2, "answered"),
            ("response", 1, "answered"),
        ]
        assert [row["packet"] for row in rows] == [4, 6, 8, 10]
    elif form == "fields":
        assert shown == ["1\twaiting\n", "2\twaiting\n", "2\tanswered\n", "1\tanswered\n"]
    else:
        assert [("request" in line, " id 1" in line) for line in shown] == [
            (True, True),
            (True, False),
            (False, False),
            (False, True),
        ]
        assert not any("unanswered" in line for line in shown)
    assert live.end() == (0, "", "")


def test_a_filter_on_the_response_shows_both_when_it_arrives() -> None:
    live = Live("dissect", "-", "-T", "ndjson", "-Y", "latency_ms >= 0 or correlation_id == 9")
    live.ask(1)
    live.ask(9)
    live.capture()
    assert json.loads(live.line())["correlation_id"] == 9
    live.answer(1)
    live.capture()
    assert [json.loads(live.line())["kind"] for _ in range(2)] == ["request", "response"]
    assert live.end() == (0, "", "")


@pytest.mark.thinned(5)
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("stats", "Heartbeat"),
        ("streams", "kafka"),
        ("pairs --sort api", "Heartbeat"),
        ("conform", "rules were judged"),
        ("records", ""),
    ],
)
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_prints_the_rows_so_far(command: str, shown: str, number: int) -> None:
    live = Live(*command.split(), "-")
    live.ask(1)
    live.answer(1)
    live.capture()
    # No output before the end shows that the capture was read.
    reached(live.process.pid)
    status, out, err = live.end(number)
    assert (status, err) == (128 + number, "")
    assert shown in out


def reached(pid: int) -> None:
    """Wait until a process has read all of its standard input."""
    with Path(f"/proc/{pid}/fd/0").open("rb", buffering=0) as pipe:
        wait_until(lambda: not select.select([pipe], [], [], 0)[0])


@pytest.mark.thinned(2)
@pytest.mark.skipif(not Path("/proc/self/fd/0").exists(), reason="looks into the pipe by /proc")
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_leaves_a_complete_parquet_file(tmp_path: Path, number: int) -> None:
    file = tmp_path / "a.parquet"
    live = Live("pairs", "-", "-T", "parquet", "-o", str(file))
    live.ask(1)
    live.answer(1)
    live.capture()
    reached(live.process.pid)
    assert not file.exists()
    assert live.end(number) == (128 + number, "", "")
    assert polars.read_parquet(file)["correlation_id"].to_list() == [1]
    assert [each.name for each in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("command", ["pairs", "dissect"])
def test_ctrl_c_completes_a_parquet_file_in_progress(tmp_path: Path, command: str) -> None:
    """The writer has the first rows, and waits for more."""
    file = tmp_path / "a.parquet"
    live = Live(command, "-", "-T", "parquet", "-o", str(file))
    for number in range(1, 301):
        live.ask(number)
        live.answer(number)
    live.capture()
    wait_until(lambda: any(tmp_path.iterdir()))
    reached(live.process.pid)
    assert live.end(signal.SIGINT) == (130, "", "")
    numbers = polars.read_parquet(file)["correlation_id"].drop_nulls().unique().sort()
    assert numbers.to_list() == list(range(1, 301))
    assert [each.name for each in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.skipif(not Path("/proc/self/fd/0").exists(), reason="looks into the pipe by /proc")
def test_a_second_signal_ends_at_once_without_partial_files(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    live = Live("pairs", "-", "-T", "parquet", "-o", str(file))
    for number in range(1, 301):
        live.ask(number)
        live.answer(number)
    live.capture()
    wait_until(lambda: any(tmp_path.glob(".*.part")))
    live.process.send_signal(signal.SIGSTOP)
    # Both are pending when the process goes on; either may come first.
    live.process.send_signal(signal.SIGINT)
    live.process.send_signal(signal.SIGTERM)
    live.process.send_signal(signal.SIGCONT)
    live.process.communicate(timeout=PATIENCE_S)
    assert live.process.returncode in (130, 143)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thinned(2)
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks at what is loaded")
@pytest.mark.parametrize("library", ["numpy", "zstandard"])
def test_ctrl_c_while_a_library_is_loaded_is_silent(tmp_path: Path, library: str) -> None:
    """Without a traceback or an incomplete file."""
    capture, file = many(tmp_path / "many.pcap"), tmp_path / "a.parquet"
    process = started("pairs", capture, "-T", "parquet", "-o", file)
    maps = Path(f"/proc/{process.pid}/maps")
    wait_until(lambda: process.poll() is not None or library in maps.read_text())
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=PATIENCE_S) == (b"", b"")
    assert process.returncode in (130, -signal.SIGINT)
    if file.exists():
        assert set(polars.read_parquet(file)["api"]) <= {"Heartbeat"}
        file.unlink()
    assert [each.name for each in tmp_path.iterdir()] == ["many.pcap"]


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    ends = pty.openpty()
    yield ends
    for end in ends:
        os.close(end)


@pytest.mark.long
def test_progress_is_never_among_the_rows(tmp_path: Path, terminal: tuple[int, int]) -> None:
    """On a terminal with both, each row begins on its own line."""
    ours, theirs = terminal
    capture = many(tmp_path / "many.pcap")
    words = ["pairs", str(capture), "-T", "csv"]
    code = (
        "import sys; from dissector.cli import progress, capture_source; progress.PATIENCE_S = 0;"
        "from dissector.capture.formats import capture_reader as reader;"
        "reader._PIECE_BYTES = 40_000;"
        "make = capture_source.Options;"
        "capture_source.Options = lambda **values: make(window_bytes=40_000, **values);"
        "from dissector.cli import main;"
        f"sys.exit(main({words!r}))"
    )
    env = {**os.environ, "COLUMNS": "200"}
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=theirs,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
        env=env,
    )
    seen = bytearray()
    while process.poll() is None or select.select([ours], [], [], 0.1)[0]:
        if select.select([ours], [], [], 0.1)[0]:
            seen += os.read(ours, 1 << 16)
    assert process.returncode == 0
    assert b" of 1 MB, " in seen or b" of 2 MB, " in seen
    rows = [line for line in seen.split(b"\n") if b"Heartbeat" in line]
    assert len(rows) == 4000
    for row in rows:
        before, _, _ = row.rpartition(b"\x1b[K")
        assert b"Heartbeat" not in before
        # The progress line was erased before the row was written.
        assert before == b"" or row.count(b"\x1b[K") >= 2
