"""Live captures of TLS with a growing key log."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.default_frames import request, response
from tests.dissector.cli.live.sniffing import Sniffer, why_unavailable
from tests.waiting import wait_until
from tools.record.tls_writer import TlsWriter

pytestmark = pytest.mark.skipif(
    bool(why_unavailable("dumpcap")), reason="needs dumpcap and its rights"
)


def test_packets_are_decrypted_once_their_secrets_are_logged(tmp_path: Path) -> None:
    """The first row appears as soon as the key log has its lines, without another packet."""
    keylog, kept, writer = tmp_path / "keys.log", tmp_path / "kept.pcapng", TlsWriter(0)
    keylog.touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        words = ("-T", "ndjson", "--keylog", keylog, "-w", kept, "-i", "lo")
        sniffer = Sniffer(tmp_path, "dumpcap", "pairs", *words, "-f", f"tcp port {port}")
        with socket.create_connection(("127.0.0.1", port)) as client, server.accept()[0] as broker:
            ends = client, broker

            def send(side: int, data: bytes) -> None:
                ends[side].sendall(data)
                while data:
                    data = data[len(ends[1 - side].recv(len(data))) :]

            for side, data in writer.handshake():
                send(side, data)
            send(0, writer.seal(0, request(3, 1, 1)))
            last = writer.seal(1, response(3, 1, 1))
            send(1, last)
            wait_until(lambda: last in kept.read_bytes())
            keylog.write_text("\n".join(writer.lines) + "\n")
            assert json.loads(sniffer.line())["correlation_id"] == 1
            send(0, writer.seal(0, request(3, 1, 2)))
            send(1, writer.seal(1, response(3, 1, 2)))
            row = json.loads(sniffer.line())
            assert (row["correlation_id"], row["status"]) == (2, "answered")
        assert sniffer.end() == (0, "", "")
