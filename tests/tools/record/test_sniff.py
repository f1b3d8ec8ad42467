from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest

from tools.record.raw_packets import walk
from tools.record.sniff import CaptureRefusedError, capture, wait_until_quiet


def send(words: bytes, server: socket.socket) -> None:
    with socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()
        with accepted:
            client.sendall(words)
            assert accepted.recv(100) == words


@pytest.mark.parametrize("means", ["tcpdump", "packet socket"])
def test_exactly_the_packets_within_the_block_are_captured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, means: str
) -> None:
    if means == "packet socket":
        monkeypatch.setattr(shutil, "which", lambda name: None)
    elif shutil.which("tcpdump") is None:
        pytest.skip("tcpdump is not installed")
    path = tmp_path / "a.pcap"
    with socket.create_server(("127.0.0.1", 0)) as server:
        other = socket.create_server(("127.0.0.1", 0))
        send(b"too early", server)
        try:
            with capture(path, [server.getsockname()[1]]), other:
                send(b"in time", server)
                send(b"elsewhere", other)
        except CaptureRefusedError as refused:
            pytest.skip(str(refused))
        send(b"too late", server)
    packets = [each.data for each in walk(path.read_bytes())]
    said = b"".join(packets)
    assert b"in time" in said
    assert not any(words in said for words in (b"too", b"elsewhere", b"end of capture"))
    assert packets[0][47] & 2, "the first packet is the SYN"


def test_an_error_of_the_program_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "tcpdump"
    fake.write_text("#!/bin/sh\necho 'tcpdump: lo: Operation not permitted' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with (
        pytest.raises(CaptureRefusedError, match="Operation not permitted"),
        capture(tmp_path / "a.pcap", [9092]),
    ):
        pytest.fail("the block ran without a capture")


def test_quiet_waits_for_the_end_of_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert wait_until_quiet([port], patience_s=0)
        with socket.create_connection(server.getsockname()):
            assert not wait_until_quiet([port], patience_s=0)
