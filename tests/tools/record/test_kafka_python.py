"""Clients of kafka-python leave no socket open."""

from __future__ import annotations

import selectors
import socket

from tools.record.scenarios.kafka_python import ClosingSelector


def test_unreferenced_sockets_of_the_client_are_closed() -> None:
    selector = ClosingSelector()
    here, there = socket.socketpair()
    with there:
        selector.register(here, selectors.EVENT_WRITE)
        selector.unregister(here)
        selector.close()
        assert here.fileno() == -1
        assert there.recv(1) == b""
