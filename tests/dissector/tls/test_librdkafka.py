"""SSLKEYLOGFILE with librdkafka."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from tests.dissector.tls.endpoints import Party
from tests.waiting import PATIENCE_S, child

PROGRAM = """
import sys
from confluent_kafka import Producer

producer = Producer({
    "bootstrap.servers": sys.argv[1],
    "security.protocol": "SSL",
    "enable.ssl.certificate.verification": False,
})
sys.stdin.read()
"""


def test_librdkafka_creates_an_empty_key_log(tmp_path: Path) -> None:
    keylog = tmp_path / "trap.keylog"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with child(
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, address],
                stdin=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "SSLKEYLOGFILE": str(keylog)},
            )
        ) as program:
            accepted, _ = listener.accept()
            accepted.settimeout(PATIENCE_S)
            with Party(tmp_path).server.wrap_socket(accepted, server_side=True) as connection:
                assert connection.version() == "TLSv1.3"
                assert connection.read(4)  # a request of Kafka
            program.communicate()
    assert keylog.read_bytes() == b""
