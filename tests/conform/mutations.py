"""Damaged captures: packets lost, truncated, swapped or repeated, or a later start."""

from __future__ import annotations

import copy
import io
import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from conform.judge import Judge
from conform.registry.field_range import span_of
from conform.registry.verdict import Finding, Verdict, finding_key
from dissector import open_capture
from dissector.errors import EncodeError
from dissector.protocol.messages import Message, decode_request, decode_response
from dissector.protocol.schema import Field
from tests import tcp_captures
from tests.conform.scene import MEASURED, capture_rules

_FILE_BYTES, _PACKET_BYTES = 24, 16
HEADERS_BYTES = 66
"""Where the payload of a recorded packet begins at least, and a cut may be felt."""


class Recorded(NamedTuple):
    """A packet of a classic pcap file: its raw time, its bytes, its original length."""

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
    """Write a pcap file; times stay at their positions, so that they never decrease."""
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
    """Truncate some packets, or all of them, to a snapshot length."""
    share = random.choice((0.002, 0.05, 1.0))
    snap = random.choice((HEADERS_BYTES, 100, 200, 600))
    return [
        each._replace(data=each.data[:snap]) if random.random() < share else each
        for each in packets
    ]


def swap(packets: list[Recorded], random: Random) -> list[Recorded]:
    """Swap packets with near ones, as if sent over several paths."""
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
    """Change bytes of payloads, like a broken or hostile client or broker."""
    share = random.choice((0.01, 0.1, 0.5))
    return [each if random.random() >= share else _corrupted(each, random) for each in packets]


def _corrupted(packet: Recorded, random: Random) -> Recorded:
    data = bytearray(packet.data)
    for _ in range(random.choice((1, 2, 8)) * (len(data) > HEADERS_BYTES)):
        at = random.randrange(HEADERS_BYTES, len(data))
        data[at] = random.choice((0, 1, 2, 0x7F, 0x80, 0xFF, random.randrange(256)))
    return packet._replace(data=bytes(data))


Mutation = Callable[[list[Recorded], Random], list[Recorded]]
MUTATIONS: tuple[Mutation, ...] = (lose, begin_later, end_early, cut, swap, repeat)


def judged(file: bytes) -> Verdict:
    """Judge the bytes of a capture by all rules, none of which may fail."""
    verdict = Judge(capture_rules(), MEASURED).judge_capture(
        open_capture("-", stdin=io.BytesIO(file))
    )
    assert [str(fault) for fault in verdict.faults.values()] == []
    return verdict


def judged_file(path: Path) -> Verdict:
    """Judge a capture by all rules."""
    return Judge(capture_rules(), MEASURED).judge_capture(open_capture(path))


def findings_of(verdict: Verdict) -> set[str]:
    """Return the findings."""
    return {key_of(kind.first) for kind in verdict}


def key_of(finding: Finding) -> str:
    """Return the key of a finding without the software, which may be unknown."""
    return finding_key(finding.rule, finding.side, "", finding.api, finding.path, finding.found)


class SentMessage(NamedTuple):
    """A message of a capture: its last packet, its connection, its side."""

    packet: int
    connection: int
    side: int
    message: Message


@cache
def messages_of(path: Path) -> tuple[SentMessage, ...]:
    """Return the messages of a capture in order."""
    found = []
    for exchange in open_capture(path):
        for message in exchange.messages:
            is_asked = message.kind == "request"
            packet = exchange.request_packet if is_asked else exchange.response_packet
            side = 0 if is_asked else 1
            found.append(SentMessage(packet or 0, exchange.connection, side, message))
    return tuple(sorted(found, key=lambda it: it.packet))


def with_odd_fields(path: Path, random: Random) -> bytes:
    """Return the capture with unusual values in some fields."""
    spoken = messages_of(path)
    odd = set(random.sample(range(len(spoken)), min(len(spoken), random.choice((1, 5, 40)))))
    wire = tcp_captures.Wire()
    connections: dict[int, tcp_captures.WireConnection] = {}
    for at, each in enumerate(spoken):
        frame = _odd_frame(each.message, random) if at in odd else each.message.frame
        if each.connection not in connections:
            connections[each.connection] = wire.connect(50000 + each.connection).syn()
        connection = connections[each.connection]
        send = connection.broker if each.side else connection.client
        send(len(frame).to_bytes(4, "big") + frame)
    return tcp_captures.pcap_file(wire.packets)


def _odd_frame(message: Message, random: Random) -> bytes:
    """Return the frame of a message with a changed field, or the same frame."""
    schema, body, version = message.schema, message.body, message.api_version
    if schema is None or body is None or version is None:
        return message.frame
    body = copy.deepcopy(body)
    holders = list(_holders(schema.fields, body, version, ""))
    if not holders:
        return message.frame
    field, holder, path = random.choice(holders)
    holder[field.name], is_null = _odd_value(field, holder[field.name], random)
    try:
        frame = message.frame[: message.body_start] + schema.codec(version).build(body)
    except EncodeError:
        return message.frame
    return _nulled(message, frame, path) if is_null else frame


def _holders(
    fields: tuple[Field, ...], body: Any, version: int, path: str
) -> Iterator[tuple[Field, Any, str]]:
    """Yield each field of a body with its container and path."""
    for field in fields:
        if field.name not in body:
            continue
        yield field, body, path + field.name
        value = body[field.name]
        if field.fields and isinstance(value, list):
            for at, item in enumerate(value):
                yield from _holders(field.fields, item, version, f"{path}{field.name}[{at}].")
        elif field.fields and value is not None:
            yield from _holders(field.fields, value, version, f"{path}{field.name}.")


def _odd_value(field: Field, value: Any, random: Random) -> tuple[Any, bool]:
    """Return another value for a field, and whether to encode it as null."""
    if field.type == "string":
        return "", random.random() < 0.7
    if isinstance(value, list):
        return random.choice(([], value[:1], value * 2)), random.random() < 0.2
    if isinstance(value, bytes):
        return random.choice((b"", value[: len(value) // 2], bytes(len(value)))), False
    if isinstance(value, bool):
        return not value, False
    if isinstance(value, int):
        return random.choice((-1, 0, 1, value + 1, 127, -128)), False
    return value, False


def _nulled(message: Message, frame: bytes, path: str) -> bytes:
    """Return a frame with an empty text or array as null, even if not nullable."""
    changed = decode_request(frame) if message.kind == "request" else None
    if changed is None:
        changed = decode_response(frame, message.api_key or 0, message.api_version or 0)
    found = span_of(changed, path)
    if found is None:
        return frame
    start, end = found
    size = min(end - start, 4)
    return frame[:start] + (b"\0" if size == 1 else b"\xff" * size) + frame[start + size :]
