"""Packets and plain Ethernet segments equal those read by dpkt, an independent implementation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dpkt
import pytest

from dissector.capture.formats.capture_reader import read_packets
from dissector.capture.packets.layers import Layers

CAPTURES = sorted((Path(__file__).parents[3] / "captures").glob("*.pcap*"))
PLAIN = [path for path in CAPTURES if path.suffix in (".pcap", ".pcapng")]

Segment = tuple[bytes, bytes, int, int, int, int, bytes]


def ours(path: Path) -> tuple[list[bytes], list[Segment]]:
    """Read a capture with our own stages: packets, and their TCP segments."""
    packets, segments = list[bytes](), list[Segment]()
    layers = Layers()
    for window in read_packets([path]):
        for start, size in zip(window.start.tolist(), window.captured.tolist(), strict=True):
            packets.append(window.data[start : start + size].tobytes())
        found = layers.segments(window)
        for row in range(len(found)):
            source, target = (
                (int(high) << 64 | int(low)).to_bytes(16, "big")
                for high, low in (found.source[row], found.target[row])
            )
            start = int(found.start[row])
            segments.append(
                (
                    source,
                    target,
                    int(found.source_port[row]),
                    int(found.target_port[row]),
                    int(found.seq[row]),
                    int(found.flags[row]) & 0xFF,
                    found.data[start : start + int(found.captured[row])].tobytes(),
                )
            )
    return packets, segments


def theirs(path: Path) -> Iterator[tuple[bytes, Segment | None]]:
    """Read the capture with dpkt."""
    with path.open("rb") as file:
        for _, data in dpkt.pcap.UniversalReader(file):
            ip = dpkt.ethernet.Ethernet(data).data
            tcp = ip.data if isinstance(ip, dpkt.ip.IP) else None
            if not isinstance(tcp, dpkt.tcp.TCP):
                yield data, None
                continue
            mapped = b"\0" * 10 + b"\xff\xff"
            yield (
                data,
                (
                    mapped + ip.src,
                    mapped + ip.dst,
                    tcp.sport,
                    tcp.dport,
                    tcp.seq,
                    tcp.flags & 0xFF,
                    bytes(tcp.data),
                ),
            )


@pytest.mark.thinned(3)
@pytest.mark.parametrize("path", PLAIN, ids=lambda path: path.name)
def test_packets_and_segments_equal_those_of_dpkt(path: Path) -> None:
    packets, segments = ours(path)
    read = list(theirs(path))
    assert packets == [data for data, _ in read]
    assert segments == [segment for _, segment in read if segment is not None]
    assert segments
