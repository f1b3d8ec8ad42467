"""Commands with live capture, and traffic on loopback for them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
from functools import cache
from pathlib import Path

from tests.dissector.cli import cli_traffic
from tests.dissector.cli.test_process import started
from tests.waiting import PATIENCE_S, child

PROGRAMS = ("dumpcap", "tcpdump")


@cache
def why_unavailable(program: str) -> str:
    """Return why a program can't capture on loopback here; empty if it can."""
    path = shutil.which(program)
    if path is None:
        return f"{program} is not installed"
    words = [path, "-i", "lo", "-w", os.devnull]
    with child(subprocess.Popen(words, stderr=subprocess.PIPE, text=True)) as process:
        assert process.stderr is not None
        # Both print the interface once it is open.
        has_begun = any(re.search("listening on|^File: ", line) for line in process.stderr)
        process.kill()
    return "" if has_begun else f"{program} has no right to capture on lo"


class LoopbackTraffic:
    """A client and a broker on loopback."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.capture_filter = f"tcp port {self.port}"
        self._client: socket.socket | None = None
        self._broker: socket.socket | None = None

    def connect(self) -> None:
        self._client = socket.create_connection(("127.0.0.1", self.port))
        self._broker, _ = self._server.accept()

    def ask(self, number: int, group_id: str = "g") -> None:
        assert self._client is not None
        assert self._broker is not None
        frame = cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, number, group_id=group_id)
        self._client.sendall(frame)
        left = len(frame)
        while left:
            left -= len(self._broker.recv(left))

    def answer(self, number: int) -> None:
        assert self._client is not None
        assert self._broker is not None
        self._broker.sendall(cli_traffic.response_frame(cli_traffic.HEARTBEAT, 4, number))
        self._client.recv(1 << 16)

    def close(self) -> None:
        for each in (self._client, self._broker, self._server):
            if each is not None:
                each.close()


class Sniffer:
    """A command with live capture on loopback by one of the programs."""

    def __init__(self, folder: Path, program: str, *words: str | Path) -> None:
        bin_folder = folder / f"only-{Path(program).name}"
        bin_folder.mkdir(exist_ok=True)
        for name, path in (("sh", "/bin/sh"), ("cat", shutil.which("cat"))):
            _link(bin_folder / name, str(path))
        # A path is a test's own program.
        _link(bin_folder / Path(program).name, shutil.which(program) or program)
        self.process = started(*words, env={**os.environ, "PATH": str(bin_folder)})
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.begun = self.process.stderr.readline().decode()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode()

    def end(self, number: int | None = signal.SIGINT) -> tuple[int, str, str]:
        """Send a signal, if any; return status, output and the rest of the messages."""
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out.decode(), err.decode()


def _link(link: Path, target: str) -> None:
    if not link.exists():
        link.symlink_to(target)
