"""The exchanges of a capture whose packets are put into other link layers, tags and tunnels."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from dissector.capture.formats.capture_reader import read_packets
from dissector.engine.reading.capture import Capture, Options
from dissector.errors import UsageError
from tests.corpus import FOLDER
from tests.dissector.capture.handmade_links import LINKS, TUNNELS, exported_pdu
from tests.dissector.capture.handmade_packets import (
    enhanced,
    interface,
    ipv4,
    ipv6,
    pcap,
    section,
    tcp,
)

CAPTURE = FOLDER / "librdkafka-idempotent.pcap"
ETHERNET_BYTES = 14

Frames = dict[str, tuple[int, Callable[[bytes], bytes]]]
ALL: Frames = LINKS | {name: (1, wrap) for name, (wrap, _) in TUNNELS.items()}

COLUMNS = ("request_packet", "response_packet", "api", "correlation_id", "client", "status")


def exchanges(path: Path) -> list[tuple[Any, ...]]:
    rows = Capture([path]).exchanges().select(COLUMNS, "request_time_ns").rows()
    return sorted(rows)


def ip_packets() -> list[tuple[int, bytes]]:
    found = []
    for window in read_packets([CAPTURE]):
        for row in range(len(window)):
            start = int(window.start[row]) + ETHERNET_BYTES
            end = int(window.start[row]) + int(window.captured[row])
            found.append((int(window.time_ns[row]), window.data[start:end].tobytes()))
    return found


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", ALL)
def test_packets_in_any_encapsulation_give_the_same_exchanges(tmp_path: Path, name: str) -> None:
    link, wrap = ALL[name]
    path = tmp_path / "wrapped.pcap"
    path.write_bytes(pcap([(time, wrap(ip)) for time, ip in ip_packets()], link=link))
    want = exchanges(CAPTURE)
    assert len(want) > 5
    assert exchanges(path) == want


def test_exported_pdus_give_the_same_exchanges(tmp_path: Path) -> None:
    path = tmp_path / "exported.pcap"
    with_bytes = [(time, ip) for time, ip in ip_packets() if len(exported_pdu(ip)) > 72]
    path.write_bytes(pcap([(time, exported_pdu(ip)) for time, ip in with_bytes], link=252))
    got = [row[2:] for row in exchanges(path)]
    assert got == [row[2:] for row in exchanges(CAPTURE)]


TSHARK = which("tshark")
NOT_OF_TSHARK = {
    "pppd": "not supported",
    "hdlc with direction": "not supported",
    "mpls": "not supported as a link layer",
    "nflog, big-endian": "the byte order is that of the file",
    "vxlan-gpe without protocol": "taken for data; the draft has Ethernet",
}
"""Encapsulations that tshark does not read, or otherwise."""


@pytest.mark.long
@pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")
def test_tshark_reads_the_same_segments(tmp_path: Path) -> None:
    segment = tcp(b"hello, broker", seq=7)
    frames = [
        (link, wrap(ip))
        for name, (link, wrap) in ALL.items()
        if name not in NOT_OF_TSHARK
        for ip in (ipv4(segment), ipv6(segment))
    ]
    interfaces = b"".join(interface(link) for link, _ in frames)
    packets = b"".join(enhanced(each, 1, number) for number, (_, each) in enumerate(frames))
    path = tmp_path / "all.pcapng"
    path.write_bytes(section() + interfaces + packets)
    command = [str(TSHARK), "-r", str(path), "-T", "fields", "-e", "tcp.len", "-e", "tcp.seq_raw"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown.splitlines() == ["13\t7"] * len(frames)


def test_options_refuse_invalid_tunnels() -> None:
    with pytest.raises(UsageError, match="--decode-as knows"):
        list(Capture([CAPTURE], Options(decode_as=("udp.port==1,ipsec",))).windows())
