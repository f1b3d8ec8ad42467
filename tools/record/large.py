"""
Large captures for benchmarks, made from small ones.

    python -m tools.record.large --packets 1000000 --files 4 /tmp/large.pcap

Copies of conversations in `captures/` run in parallel, each with its own addresses, in a few
hundred connections at a time, until there are enough packets. All bytes above the addresses come
from real clients and brokers, but for the sequence numbers. The result depends only on captures
and options.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
from collections.abc import Iterator
from heapq import merge
from pathlib import Path

from dissector.capture.formats.capture_reader import read_packets

CAPTURES = Path(__file__).parents[2] / "captures"
ETHERNET = 1
IPV4_AT = 14
SOURCE_AT = IPV4_AT + 12
SEQUENCE_AT = IPV4_AT + 20 + 4
SPREAD = 0x9E3779B1
"""Times a number: an offset of sequence numbers that is unlike others."""

_PROTOCOL_AT, _NO_OPTIONS, _TCP = IPV4_AT + 9, 0x45, 6
SIDE_BY_SIDE = 40
"""Number of parallel copies; each has about ten connections."""

SEED = 7
SNAPLEN = 262144

Packet = tuple[int, bytes]
"""Time in ns, and bytes from Ethernet on."""


def originals() -> list[list[Packet]]:
    """Read the corpus captures with Ethernet and IPv4; times begin at 0."""
    found = []
    for path in sorted(CAPTURES.iterdir()):
        if path.name == "demo.pcap" or ".pcap" in path.name:
            packets = list(_packets(path))
            if packets:
                found.append(packets)
    return found


def _packets(path: Path) -> Iterator[Packet]:
    begin: int | None = None
    for window in read_packets([path]):
        rows = zip(
            window.time_ns.tolist(),
            window.start.tolist(),
            window.captured.tolist(),
            window.link.tolist(),
            strict=True,
        )
        for time_ns, start, captured, link in rows:
            data = window.data[start : start + captured].tobytes()
            if link == ETHERNET and data[12:14] == b"\x08\x00":
                begin = time_ns if begin is None else begin
                yield time_ns - begin, data


def copies(sources: list[list[Packet]], lane: int, order: random.Random) -> Iterator[Packet]:
    """Yield the packets of one lane: consecutive copies, each with its own address."""
    now_ns, number = order.randrange(1_000_000_000), 0
    while True:
        source = sources[order.randrange(len(sources))]
        address = bytes((10, lane, number >> 8 & 0xFF, number & 0xFF))
        shift = int.from_bytes(address, "big") * SPREAD
        for time_ns, data in source:
            data = data[:SOURCE_AT] + address * 2 + data[SOURCE_AT + 8 :]
            yield now_ns + time_ns, _renumbered(data, shift)
        now_ns += source[-1][0] + order.randrange(1_000_000)
        number += 1


def _renumbered(data: bytes, shift: int) -> bytes:
    """Return a packet with other sequence numbers: a copy is a connection of its own."""
    if data[IPV4_AT] != _NO_OPTIONS or data[_PROTOCOL_AT] != _TCP:
        return data
    numbers = (each + shift & 0xFFFFFFFF for each in struct.unpack_from(">II", data, SEQUENCE_AT))
    return data[:SEQUENCE_AT] + struct.pack(">II", *numbers) + data[SEQUENCE_AT + 8 :]


def traffic() -> Iterator[Packet]:
    """Yield the packets of copies side by side, in the order of their times, without end."""
    order = random.Random(SEED)
    sources = originals()
    lanes = [copies(sources, lane, order) for lane in range(SIDE_BY_SIDE)]
    return merge(*lanes, key=lambda packet: packet[0])


def write(path: Path, packets: int, files: int) -> None:
    """Write a number of packets to files of similar size."""
    stream = traffic()
    each = -(-packets // files)
    for at in range(files):
        name = path if files == 1 else path.with_name(f"{path.stem}-{at}{path.suffix}")
        with name.open("wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAPLEN, ETHERNET))
            for _ in range(min(each, packets - at * each)):
                time_ns, data = next(stream)
                seconds, rest_ns = divmod(time_ns + 1_700_000_000_000_000_000, 1_000_000_000)
                file.write(struct.pack("<IIII", seconds, rest_ns, len(data), len(data)))
                file.write(data)
        print(f"{name}: {name.stat().st_size / 1e6:,.0f} MB", file=sys.stderr)


def main() -> None:
    """Parse the options and write the capture."""
    parser = argparse.ArgumentParser(prog="python -m tools.record.large", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--packets", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=1, help="rotated files")
    options = parser.parse_args()
    write(options.out, options.packets, options.files)


if __name__ == "__main__":
    main()
