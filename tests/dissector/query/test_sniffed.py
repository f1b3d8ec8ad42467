"""A sniffer of scapy on the loopback interface feeds a capture."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing
from ctypes.util import find_library

import pytest
from scapy.config import conf
from scapy.layers.inet import TCP
from scapy.sendrecv import AsyncSniffer

from dissector.public import codec, open_capture
from tests.waiting import PATIENCE_S

REQUEST = struct.pack(">ihhih", 10, 18, 0, 7, -1)
RESPONSE = b"\0\0\0\x07" + codec(18, 0, "response").build({"error_code": 0, "api_keys": []})


@pytest.fixture
def broker() -> Iterator[int]:
    """Answer one ApiVersions request; return the port."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            if connection.recv(100):
                connection.sendall(struct.pack(">i", len(RESPONSE)) + RESPONSE)

    thread = threading.Thread(target=serve)
    thread.start()
    with closing(listening):
        yield listening.getsockname()[1]
        thread.join()


def test_packets_are_sniffed_and_followed(broker: int) -> None:
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except (AttributeError, PermissionError):
        pytest.skip("sniffing needs rights that this process lacks")

    def is_ours(packet: object) -> bool:
        return TCP in packet and broker in (packet[TCP].sport, packet[TCP].dport)  # type: ignore

    with open_capture() as capture:
        begun = threading.Event()
        sniffer = AsyncSniffer(
            iface=conf.loopback_name,
            # Else all traffic of the machine comes here, and ours may be dropped.
            filter=f"tcp port {broker}" if find_library("pcap") else None,
            lfilter=is_ours,
            prn=capture.feed,
            store=False,
            started_callback=begun.set,
        )
        sniffer.start()
        assert begun.wait(PATIENCE_S)
        with socket.create_connection(("127.0.0.1", broker)) as client:
            client.sendall(REQUEST)
            exchange = next(capture.follow())
            client.recv(100)
        sniffer.stop()
        assert (exchange.api, exchange.correlation_id) == ("ApiVersions", 7)
        assert exchange.status == "answered"
        assert exchange.broker == f"127.0.0.1:{broker}"
        assert len(capture.exchanges()) == 1
