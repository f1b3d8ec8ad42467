from __future__ import annotations

import socket
import threading

import pytest

from tests.broker import probe


def test_without_a_listener() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert not probe.answers(taken.getsockname()[1])


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        (b"", False),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", False),
        (b"\xff\xff\xff\xff", False),
        (b"\0\0\0\x0a" + b"\0\0\0\x2a" + b"\0\0" + b"\0\0\0\0", True),
        (b"\0\0\0\x0a" + b"\0\0\0\x2a" + b"\0\x23" + b"\0\0\0\0", False),
        (b"\0\0\0\x0a" + b"\0\0\0\x07" + b"\0\0" + b"\0\0\0\0", False),
        (b"\0\0\0\x0a" + b"\0\0\0\x2a", False),
    ],
)
def test_the_api_versions_response_decides(said: bytes, answered: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_respond_once, args=(server, said))
        thread.start()
        assert probe.answers(server.getsockname()[1]) is answered
        thread.join()


def _respond_once(server: socket.socket, said: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(1000)
        connection.sendall(said)
