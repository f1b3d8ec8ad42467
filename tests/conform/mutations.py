"""Captures as they might have been: packets lost, cut, swapped or repeated, a later beginning."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from conform.judge import Judge
from conform.verdict import Finding, Verdict, finding_key
from dissector import open_capture
from dissector.protocol.messages import Message
from dissector.protocol.spans import spans
from tests.conform.scene import capture_rules

_FILE_BYTES, _PACKET_BYTES = 24, 16
HEADERS_BYTES = 66
"""Where the payload of a recorded packet begins at least, and a cut may be felt."""


class Recorded(NamedTuple):
    """A packet of a classic pcap file: its time as written, the bytes, how many there were."""

    time: bytes
    data: bytes
    size: int


def packets_of(path: Path) -> tuple[bytes, list[Recorded]]:
    """Return the header of a little-endian classic pcap file, and its packets."""
    file = path.read_bytes()
    at, packets = _FILE_BYTES, []
    while at < len(file):
        captured, size = struct.unpack_from("<II", file, at + 8)
        data = file[at + _PACKET_BYTES : at + _PACKET_BYTES + captured]
        packets.append(Recorded(file[at : at + 8], data, size))
        at += _PACKET_BYTES + captured
    return file[:_FILE_BYTES], packets


def file_of(head: bytes, packets: list[Recorded]) -> bytes:
    """Write a pcap file; packets keep the times of their places, so that those never go back."""
    parts = [head]
    times = sorted((each.time for each in packets), key=lambda time: struct.unpack("<II", time))
    for time, each in zip(times, packets, strict=True):
        parts += [time, struct.pack("<II", len(each.data), each.size), each.data]
    return b"".join(parts)


def lose(packets: list[Recorded], random: Random) -> list[Recorded]:
    """Lose some packets."""
    share = random.choice((0.002, 0.02, 0.2))
    return [each for each in packets if random.random() >= share]


def begin_later(packets: list[Recorded], random: Random) -> list[Recorded]:
    """Begin in the middle."""
    return packets[random.randrange(len(packets)) :]


def end_early(packets: list[Recorded], random: Random) -> list[Recorded]:
    """End in the middle."""
    return packets[: max(1, random.randrange(len(packets)))]


def cut(packets: list[Recorded], random: Random) -> list[Recorded]:
    """Cut some packets, or all of them, at a snapshot length."""
    share = random.choice((0.002, 0.05, 1.0))
    snap = random.choice((HEADERS_BYTES, 100, 200, 600))
    return [
        each._replace(data=each.data[:snap]) if random.random() < share else each
        for each in packets
    ]


def swap(packets: list[Recorded], random: Random) -> list[Recorded]:
    """Let packets change places with near ones, as on several paths."""
    out = list(packets)
    for at in range(len(out) - 1):
        if random.random() < 0.03:
            other = min(len(out) - 1, at + random.randrange(1, 4))
            out[at], out[other] = out[other], out[at]
    return out


def repeat(packets: list[Recorded], random: Random) -> list[Recorded]:
    """Repeat some packets."""
    return [each for packet in packets for each in (packet,) * (1 + (random.random() < 0.03))]


def spoil(packets: list[Recorded], random: Random) -> list[Recorded]:
    """Change bytes of payloads: what a broken client or broker, or a hostile one, might send."""
    share = random.choice((0.01, 0.1, 0.5))
    return [each if random.random() >= share else _spoilt(each, random) for each in packets]


def _spoilt(packet: Recorded, random: Random) -> Recorded:
    data = bytearray(packet.data)
    for _ in range(random.choice((1, 2, 8)) * (len(data) > HEADERS_BYTES)):
        at = random.randrange(HEADERS_BYTES, len(data))
        data[at] = random.choice((0, 1, 2, 0x7F, 0x80, 0xFF, random.randrange(256)))
    return packet._replace(data=bytes(data))


Mutation = Callable[[list[Recorded], Random], list[Recorded]]
MUTATIONS: tuple[Mutation, ...] = (lose, begin_later, end_early, cut, swap, repeat)


def judged(file: bytes) -> Verdict:
    """Judge the bytes of a capture by all rules."""
    return Judge(capture_rules()).capture(open_capture("-", stdin=io.BytesIO(file)))


def judged_file(path: Path) -> Verdict:
    """Judge a capture by all rules."""
    return Judge(capture_rules()).capture(open_capture(path))


def accused(verdict: Verdict) -> set[str]:
    """Return what was found."""
    return {key_of(kind.first) for kind in verdict}


def key_of(finding: Finding) -> str:
    """Return what tells a finding from others, without the software, which may not be known."""
    return finding_key(finding.rule, finding.side, "", finding.api, finding.path, finding.found)


_ODD = (b"\xff", b"\0", b"\x7f", b"\x80", b"\1")
"""Bytes that numbers, lengths and marks are overwritten with, as often as they are long."""


@cache
def messages_in(path: Path) -> tuple[tuple[int, Message], ...]:
    """Return the messages of a capture that lie in one packet, and where in the file."""
    file, found = path.read_bytes(), []
    for exchange in open_capture(path):
        for message in exchange.messages:
            at = file.find(message.frame)
            if message.schema is not None and message.body is not None and at >= 0:
                found.append((at, message))
    return tuple(found)


def with_odd_fields(path: Path, random: Random) -> bytes:
    """Return the bytes of a capture some of whose fields have other values, of the same length."""
    file = bytearray(path.read_bytes())
    messages = messages_in(path)
    count = random.choice((1, 3, 30)) if messages else 0
    for at, message in random.choices(messages, k=count):
        assert message.schema is not None
        body = spans(message.schema, message.api_version or 0, message.frame, message.body_start)
        fields = [leaf for leaf in body.leaves() if leaf.end > leaf.start]
        if fields:
            field = random.choice(fields)
            # A length stands in front of what it counts: that alone is another fault.
            size = random.choice((field.end - field.start, 1, 2, 4))
            size = min(size, field.end - field.start)
            odd = random.choice(_ODD) * size
            if random.random() < 0.3:
                odd = random.randbytes(size)
            file[at + field.start : at + field.start + size] = odd
    return bytes(file)
