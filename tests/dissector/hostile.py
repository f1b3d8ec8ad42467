"""Hostile captures of any size, of several kinds, against naive search, recursion or memory use."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator

from dissector.protocol.records import Record, build_records, new_batch, new_message_set
from dissector.protocol.records.compression import compress
from dissector.protocol.records.layout import BATCH, LENGTH_END, MESSAGE_1
from tests.default_frames import request, response, sized
from tests.dissector.capture.handmade_packets import (
    block,
    enhanced,
    ethernet,
    interface,
    ipv4,
    pcap,
    section,
    tcp,
)
from tests.tcp_captures import START_NS, Wire, WireConnection

HEARTBEAT, METADATA, PRODUCE, LIST_GROUPS = 12, 3, 0, 16
SEGMENT = 1400


def _file(packets: Iterator[bytes]) -> bytes:
    head = pcap([])
    rows = (pcap([(START_NS + i * 1000, each)])[len(head) :] for i, each in enumerate(packets))
    return head + b"".join(rows)


def _capture_of(*said: tuple[int, bytes], segment: int = SEGMENT) -> bytes:
    """Return the capture of one connection with some bytes from each side."""
    wire = Wire()
    connection = WireConnection(
        wire, 0, ("10.0.0.1", "10.0.0.2"), (50000, 9092), None, (1000, 2000)
    ).syn()
    for side, data in said:
        connection.send(side, *(data[at : at + segment] for at in range(0, len(data), segment)))
    return _file(packet.data for packet in wire.packets)


def _beats(ids: range) -> bytes:
    return b"".join(request(HEARTBEAT, 0, n, "", group_id="", member_id="") for n in ids)


def _responses(ids: range) -> bytes:
    return b"".join(response(HEARTBEAT, 0, n) for n in ids)


def orphans(n: int) -> bytes:
    """Return responses without requests, while other requests wait."""
    return _capture_of((0, _beats(range(n, 2 * n))), (1, _responses(range(n))))


def open_requests(n: int) -> bytes:
    """Return requests answered in reverse order."""
    return _capture_of((0, _beats(range(n))), (1, _responses(range(n - 1, -1, -1))))


def without_responses(n: int) -> bytes:
    """Return requests without an expected response, and responses with other ids."""
    requests = b"".join(request(PRODUCE, 3, i, "", acks=0) for i in range(n // 4))
    return _capture_of((0, requests), (1, _responses(range(n, 2 * n))), segment=60)


def connections(n: int) -> bytes:
    """Return connections between the same endpoints in many VLANs, with one number multiplied."""
    syn = ipv4(tcp(seq=1000, flags=2))
    tags = ([(0x8100, i % 4093 + 1), (0x8100, i // 4093 + 1)] for i in range(n))
    return _file(ethernet(syn, tags=each) for each in tags)


def fragments(n: int) -> bytes:
    """Return fragments of incomplete datagrams."""
    return _file(
        ethernet(ipv4(bytes(8), number=i // 40 % 65536, fragment=0x2000 | (i % 40) * 2))
        for i in range(n)
    )


def tiny_messages(n: int) -> bytes:
    """Return the smallest messages, and their responses."""
    requests = b"".join(sized(struct.pack(">hhih", LIST_GROUPS, 0, i, -1)) for i in range(n))
    return _capture_of((0, requests), (1, b"".join(response(LIST_GROUPS, 0, i) for i in range(n))))


def gaps(n: int) -> bytes:
    """Return a stream without every other packet, in any order."""
    wire = Wire()
    WireConnection(wire, 0, ("10.0.0.1", "10.0.0.2"), (50000, 9092), None, (1000, 2000)).syn()
    places = list(range(0, n * 20, 20))
    random.Random(1).shuffle(places)
    data = (ethernet(ipv4(tcp(b"\0" * 10, seq=1001 + at, ack=2001))) for at in places)
    return _file(iter([*(packet.data for packet in wire.packets), *data]))


def _produce(records: bytes, version: int = 3) -> bytes:
    partition = {"index": 0, "records": records}
    topics = [{"name": "t", "partition_data": [partition]}]
    return _capture_of((0, request(PRODUCE, version, 1, "c", topic_data=topics, acks=1)))


def nested_sets(n: int) -> bytes:
    """Return message sets within message sets."""
    inner = build_records(new_message_set([Record(value=b"v")] * 20, codec="gzip"))
    outer = new_message_set([Record(value=b"v")], codec="gzip")[0]
    value = compress(1, inner * (n // 20), magic=1)
    size = struct.pack(">ii", -1, len(value))
    outer.payload = size + value
    outer.message_size = MESSAGE_1.size - LENGTH_END + len(outer.payload)
    return _produce(outer.to_bytes(fix_crc=True), version=2)


def bombs(n: int) -> bytes:
    """Return compression bombs."""
    batch = new_batch([Record(value=b"")] * 3, codec="zstd")
    bomb = compress(4, b"\x0c\0\0\0\1\1\0" * 200_000)
    batch.payload, batch.records_count = bomb, 200_000
    batch.batch_length = BATCH.size - LENGTH_END + len(bomb)
    one = request(
        PRODUCE,
        3,
        1,
        "c",
        topic_data=[
            {
                "name": "t",
                "partition_data": [{"index": 0, "records": batch.to_bytes(fix_crc=True)}],
            }
        ],
        acks=1,
    )
    return _capture_of((0, one * (n // 1000)))


def headers(n: int) -> bytes:
    """Return a record with many headers."""
    record = Record(value=b"v", headers=(("k", b"v"),) * n)
    return _produce(build_records([new_batch([record])]))


def tags(n: int) -> bytes:
    """Return a request with many unknown tagged fields."""
    fields = b"".join(_varint(1000 + i) + b"\1x" for i in range(n))
    head = struct.pack(">hhih", METADATA, 12, 1, -1) + b"\0"
    return _capture_of((0, sized(head + b"\1\1\0" + _varint(n) + fields)))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def topics(n: int) -> bytes:
    """Return a request for many topics."""
    return _capture_of(
        (0, request(METADATA, 1, 1, "c", topics=[{"name": f"t{i}"} for i in range(n)]))
    )


def interfaces(n: int) -> bytes:
    """Return a pcapng file with an interface for each packet."""
    packet = ethernet(ipv4(tcp(b"x")))
    blocks = (interface() + enhanced(packet, i, i) for i in range(n))
    return section() + b"".join(blocks)


def options(n: int) -> bytes:
    """Return a pcapng file with many options in one block, and in many."""
    many = interface(options=[(2, b"eth0")] * n)
    blocks = (block(5, struct.pack("<III", 0, 0, 0) + b"\1\0\4\0text" * 4) for _ in range(n // 8))
    return section() + many + b"".join(blocks) + enhanced(ethernet(ipv4(tcp(b"x"))), 1)


def damage(n: int) -> bytes:
    """Return a file with damage behind every few packets."""
    records = pcap([(START_NS + i * 1000, bytes(60)) for i in range(4 * n)])
    size = 4 * 76
    pieces = (records[24 + i * size : 24 + (i + 1) * size] for i in range(n))
    return records[:24] + b"\xff".join(pieces)


def false_starts(n: int) -> bytes:
    """Return a file of bytes of which each but the last of a few seems to begin a record."""
    almost = struct.pack("<IIII", 1, 1, 1, 1) + b"\0"
    return pcap([(START_NS, bytes(60))]) + b"\xff" * 16 + (almost * 2 + b"\xff" * 3) * n


def false_blocks(n: int) -> bytes:
    """Return a file of pcapng with blocks that seem long, to their search."""
    head = section() + interface() + struct.pack("<I", 0xFFFFFFFF)
    return head + struct.pack("<II", 6, 1 << 20) * n


def joined(n: int) -> bytes:
    """Return many files, one after the other."""
    return (pcap([(START_NS, bytes(60))]) + section() + interface()) * n


KINDS: dict[str, tuple[Callable[[int], bytes], int]] = {
    "orphans": (orphans, 500),
    "open requests": (open_requests, 250),
    "waived": (without_responses, 400),
    "connections": (connections, 250),
    "fragments": (fragments, 500),
    "tiny messages": (tiny_messages, 250),
    "gaps": (gaps, 250),
    "nested sets": (nested_sets, 2000),
    "bombs": (bombs, 1000),
    "headers": (headers, 2000),
    "tags": (tags, 1000),
    "topics": (topics, 1000),
    "interfaces": (interfaces, 500),
    "options": (options, 2000),
    "damage": (damage, 250),
    "false starts": (false_starts, 500),
    "false blocks": (false_blocks, 2000),
    "joined": (joined, 100),
}
"""By name, what makes a capture of a size, and the size that takes some hundredths of a second."""
