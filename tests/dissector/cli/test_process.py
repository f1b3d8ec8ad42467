"""The command as a process: pipes, signals, streams that are closed or full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import tcp_captures
from tests.corpus import fast_and_long
from tests.dissector.cli import cli_traffic
from tests.dissector.cli.conftest import Run
from tests.waiting import PATIENCE_S, wait_until


def started(*words: str | Path, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dissector", *map(str, words)]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **{**pipes, **options})


def ended(*words: str | Path, **options: Any) -> tuple[int, bytes, bytes]:
    process = started(*words, **options)
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, err


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that fails to read")
def test_a_read_error() -> None:
    said = b"kafkashark: /proc/self/mem: input/output error\n"
    assert ended("pairs", "/proc/self/mem") == (2, b"", said)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.thinned(2)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_no_space_left(shop: Path, form: str) -> None:
    said = b"kafkashark: output: No space left on device\n"
    with Path("/dev/full").open("wb") as full:
        status, _, err = ended("pairs", shop, "-T", form, stdout=full)
    assert (status, err) == (2, said)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("form", ["table", "ndjson", "parquet"])
def test_a_full_disk_is_told_with_the_file(run: Run, shop: Path, form: str) -> None:
    done = run("pairs", shop, "-T", form, "-o", "/dev/full")
    assert (done.status, done.out) == (2, "")
    assert done.err == "kafkashark: /dev/full: No space left on device\n"


def test_a_file_that_can_not_grow_is_told_by_the_name_that_it_would_get(
    shop: Path, tmp_path: Path
) -> None:
    output = tmp_path / "rows.parquet"
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100));"
        f"from dissector.cli import main; sys.exit(main({['pairs', str(shop), '-T', 'parquet']!r}"
        f" + ['-o', {str(output)!r}]))"
    )
    done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == f"kafkashark: {output}: File too large\n".encode()
    assert not list(tmp_path.iterdir())


def test_the_command_as_a_process(shop: Path) -> None:
    status, out, err = ended("pairs", shop, "-T", "ndjson")
    assert (status, out.count(b"\n"), err) == (0, 9, b"")
    with shop.open("rb") as stdin:
        status, out, err = ended("pairs", "-", "-T", "csv", stdin=stdin)
    assert (status, out.count(b"\r\n"), err) == (0, 10, b"")
    assert ended("pairs", "nowhere") == (2, b"", b"kafkashark: nowhere: no such file\n")


@pytest.mark.long
def test_utf8_in_any_locale(shop: Path) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    status, out, err = ended("records", shop, "-T", "ndjson", env=env)
    assert (status, err) == (0, b"")
    assert "grüße" in out.decode()


def many(path: Path) -> Path:
    """Write a capture with more rows than a pipe holds."""
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    request = cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, 0, group_id="g" * 200)
    response = cli_traffic.response_frame(cli_traffic.HEARTBEAT, 4, 0)
    for number in range(4000):
        correlation_id = number.to_bytes(4, "big")
        connection.client(request[:8] + correlation_id + request[12:])
        connection.broker(response[:4] + correlation_id + response[8:])
    tcp_captures.write(path, wire.packets)
    return path


@pytest.mark.parametrize(
    ("form", "unbuffered"),
    fast_and_long([("ndjson", "1")], [("table", ""), ("table", "1"), ("ndjson", "")]),
)
def test_a_closed_pipe_ends_the_command(tmp_path: Path, form: str, unbuffered: str) -> None:
    """As with `| head -1`: one line, then the command ends without a message."""
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    process = started("pairs", many(tmp_path / "a.pcap"), "-T", form, env=environment)
    assert process.stdout is not None
    assert process.stderr is not None
    first = process.stdout.readline()
    process.stdout.close()
    assert first.endswith(b"\n")
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(PATIENCE_S) == 128 + signal.SIGPIPE


@pytest.mark.long
def test_closed_streams(shop: Path) -> None:
    def close(number: int) -> Any:
        return lambda: os.close(number)

    assert ended("pairs", shop, preexec_fn=close(1))[::2] == (0, b"")
    assert ended("pairs", "nowhere", preexec_fn=close(2))[:2] == (2, b"")


@pytest.mark.thinned(4)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("form", ["text", "ndjson"])
def test_a_signal_while_waiting_for_input(shop: Path, form: str, number: int) -> None:
    process = started("dissect", "-", "-T", form, stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(shop.read_bytes())
    process.stdin.flush()
    # The rows of a paused pipe are shown: the command is running.
    assert process.stdout.read(4)
    process.send_signal(number)
    assert process.wait(PATIENCE_S) == 128 + number
    assert process.stderr.read() == b""
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


@pytest.mark.thinned(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_deletes_streams_with_secrets(tmp_path: Path, number: int) -> None:
    fifo, folder = tmp_path / "fifo", tmp_path / "streams"
    os.mkfifo(fifo)
    process = started("streams", fifo, "--write", folder)
    writer = fifo.open("wb")
    wire = tcp_captures.Wire()
    wire.connect().syn().client(cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, 1))
    writer.write(tcp_captures.pcap_file(wire.packets))
    writer.flush()
    wait_until((folder / "0-a.bin").exists)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_S)
    writer.close()
    assert process.returncode == 128 + number
    assert list(folder.iterdir()) == []
