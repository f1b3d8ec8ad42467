"""Commands read a recording while it grows: the file, and standard output as a pipe."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from browse.listing.capture_opening import CaptureOpening
from dissector.cli import main
from tests.browse.screens import play, screen
from tests.record.support.recorded_cluster import broker_thread, recorded
from tests.serve.support.raw_client import RawClient
from tests.waiting import child, wait_until

PROGRAM = (sys.executable, "-m", "kafkashark")
ROOT = Path(__file__).parents[2]
HEARTBEAT = {"group_id": "g", "member_id": "m", "generation_id": 1}
SOFTWARE = {"client_software_name": "made-up", "client_software_version": "1.0"}
ANSWERS = {
    "ApiVersions": lambda _: {
        "api_keys": [
            {"api_key": key, "min_version": 0, "max_version": 4} for key in (0, 1, 3, 12, 18)
        ]
    },
    "Heartbeat": lambda _: {"error_code": 25},
}


@contextmanager
def recording() -> Iterator[tuple[subprocess.Popen[bytes], RawClient]]:
    """Run `record -o -` before a scripted broker, with a client of it; SIGINT ends it."""
    with broker_thread(ANSWERS) as broker:
        where = ("--to", f"127.0.0.1:{broker.port}", "--listen", "127.0.0.1:0")
        command = (*PROGRAM, "record", *where, "-o", "-")
        with child(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
        ) as process:
            try:
                assert process.stderr is not None
                address = process.stderr.readline().split()[-1].decode()
                with RawClient(address) as client:
                    yield process, client
            finally:
                process.send_signal(signal.SIGINT)


def test_commands_read_the_file_while_it_grows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown(command: str, *words: str) -> str:
        assert main([command, str(running.file), *words]) in (0, 1)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return out

    with recorded(tmp_path, ANSWERS) as running, RawClient(running.recorder.bootstrap) as client:
        for turn in (1, 2):
            client.ask("ApiVersions", 3, **SOFTWARE)
            client.ask("Heartbeat", 4, **HEARTBEAT)
            count = 2 * turn  # a thread writes them
            wait_until(lambda: shown("pairs", "-T", "csv").count("answered") >= count)  # noqa: B023
            assert "Heartbeat" in shown("stats", "--interval", "1")
            assert "connected" in shown("timeline")
            assert "0 errors" in shown("conform")
            assert "UNKNOWN_MEMBER_ID" in shown("findings")


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "awaited"),
    [
        (("stats", "--interval", "1"), b"Heartbeat"),
        (("timeline", "--kind", "connection"), b"connected"),
        (("dissect",), b"UNKNOWN_MEMBER_ID"),
    ],
)
def test_commands_follow_the_pipe(words: tuple[str, ...], awaited: bytes) -> None:
    with recording() as (process, client):
        command = (*PROGRAM, words[0], "-", *words[1:])
        with child(
            subprocess.Popen(
                command,
                stdin=process.stdout,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=ROOT,
            )
        ) as reader:
            assert reader.stdout is not None
            client.ask("ApiVersions", 3, **SOFTWARE)
            client.ask("Heartbeat", 4, **HEARTBEAT)
            shown = b""
            while awaited not in shown:
                line = reader.stdout.readline()
                assert line, "it ended before the recording did"
                shown += line
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            reader.stdout.read()
            assert reader.wait() == 0


@pytest.mark.long
def test_browse_shows_the_pipe() -> None:
    with recording() as (process, client):

        async def scene() -> None:
            assert process.stdout is not None
            with io.FileIO(os.dup(process.stdout.fileno())) as pipe:
                opening = CaptureOpening(["-"], pipe=pipe)
                async with screen(opening=opening) as each:
                    session = each.app.session
                    client.ask("ApiVersions", 3, **SOFTWARE)
                    await each.until(lambda: len(session.shown) == 1)
                    client.ask("Heartbeat", 4, **HEARTBEAT)
                    await each.until(lambda: len(session.shown) == 2)
                    assert "Heartbeat" in each.text
                    process.send_signal(signal.SIGINT)
                    await each.until(lambda: session.loading.is_done)

        play(scene)
