"""Packets of scapy, as read from files and sniffed."""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import CookedLinux, Ether, Loopback
from scapy.packet import Raw
from scapy.utils import PcapReader, rdpcap

from dissector.errors import UsageError
from dissector.public import open_capture

CAPTURES = Path(__file__).parents[3] / "captures"
DEMO = str(CAPTURES / "demo.pcap")


def test_packets_of_rdpcap() -> None:
    expected = open_capture(DEMO)
    with open_capture() as capture:
        capture.feed(rdpcap(DEMO))
        assert capture.exchanges().drop("capture").equals(expected.exchanges().drop("capture"))
        assert capture.records().equals(expected.records())


def test_a_sniffer_passes_packets_one_by_one() -> None:
    """As by `AsyncSniffer(prn=capture.feed)`, which prints the result of its function."""
    with open_capture() as capture, PcapReader(DEMO) as reader:
        assert {capture.feed(packet) for packet in reader} == {None}
        assert len(capture.exchanges()) == 281


@pytest.mark.parametrize("link", [Ether(), CookedLinux(), Loopback(), None])
def test_link_layers(link: object) -> None:
    inside = IP(src="10.0.0.1", dst="10.0.0.2") / TCP(sport=1, dport=9092, flags="S")
    with open_capture() as capture:
        capture.feed(inside if link is None else link / inside)  # type: ignore[operator]
        assert capture.streams()["a"].to_list() == ["10.0.0.1:1"]


def test_an_unknown_link_layer() -> None:
    with open_capture() as capture:
        with pytest.raises(UsageError, match=r"Raw is not known; import scapy\.all"):
            capture.feed(Raw(b"bytes"))
        capture.feed(Raw(bytes(Ether() / IP() / UDP())), link=1)
        assert capture.stats()["capture"]["packets"].to_list() == [1]
