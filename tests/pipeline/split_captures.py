"""Captures with connections and packets across ranges."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.dissector.engine.reading.test_capture import beat, heartbeat
from tests.tcp_captures import STEP_NS, Packet, Wire, WireConnection, pieces, retimed

TURN_NS = 200 * STEP_NS

DEMO = Path(__file__).parents[2] / "captures" / "demo.pcap"
HEADER_BYTES, RECORD_BYTES, PORTS_AT = 24, 16, 14 + 20


def imperfect_packets(
    seed: int, connections: int = 6, rounds: int = 12, port: int = 50000
) -> list[Packet]:
    """
    Return packets of several connections, some lost, repeated, late or truncated.

    Connections begin midway, are closed, or in VLANs; ports are reused.
    """
    order = random.Random(seed)
    wire = Wire()
    open_connections: list[WireConnection] = []
    for number in range(connections):
        hosts = (f"10.0.0.{1 + number % 2}", f"10.0.1.{number % 3}")
        vlan = order.choice([None, None, 5])
        isn = 1000 + ((16 * seed + number) << 22) % 2**32, 2**32 - 500
        connection = wire.connect(port + number // 2, hosts=hosts, vlan=vlan, isn=isn)
        open_connections.append(connection.syn() if order.random() < 0.6 else connection)
    for number in range(rounds * connections):
        place = order.randrange(connections)
        connection = open_connections[place]
        frame = heartbeat(number, group_instance_id="i" * order.choice([1, 50, 900]))
        connection.client(*pieces(frame, [order.randrange(len(frame))]))
        if order.random() < 0.9:
            connection.broker(*pieces(beat(number), [order.randrange(12)]))
        if order.random() < 0.08:
            connection.fin() if order.random() < 0.7 else connection.rst()
            isn = order.randrange(2**32), order.randrange(2**32)
            ports = dict(zip(("port", "broker_port"), connection.ports, strict=True))
            again = wire.connect(**ports, hosts=connection.hosts, vlan=connection.vlan, isn=isn)
            open_connections[place] = again.syn()
    return retimed(_disturbed(order, wire.packets))


def _disturbed(order: random.Random, packets: list[Packet]) -> list[Packet]:
    out = []
    for place, packet in enumerate(packets):
        luck = order.random()
        if luck < 0.03:
            continue
        at = float(place)
        if luck < 0.06:
            at += order.randrange(1, 8)
        elif luck < 0.09:
            out.append((at + order.randrange(1, 30), packet))
        elif luck < 0.12:
            packet = packet.cut(len(packet.data) - min(len(packet.payload), 5))
        out.append((at, packet))
    return [packet for _, packet in sorted(out, key=lambda each: each[0])]


def short_connections(seed: int, turns: int = 6) -> list[Packet]:
    """Return packets of consecutive connections, each shorter than `TURN_NS`."""
    packets = [
        packet
        for turn in range(turns)
        for packet in delayed(
            imperfect_packets(100 * seed + turn, connections=4, rounds=6, port=50000 + 10 * turn),
            turn * TURN_NS // STEP_NS // 2,
        )
    ]
    return sorted(packets, key=lambda packet: packet.time_ns)


def delayed(packets: list[Packet], steps: int) -> list[Packet]:
    """Return packets with later times."""
    return [replace(each, time_ns=each.time_ns + steps * STEP_NS) for each in packets]


def record_starts(path: Path) -> list[int]:
    """Return the positions of the records of a nanosecond pcap file."""
    data = path.read_bytes()
    at, starts = 24, []
    while at < len(data):
        starts.append(at)
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    return starts


def parts_of_demo(folder: Path, part_of: Callable[[int, int], int]) -> list[str]:
    """Write a file for each part of the demo capture, by the two ports of packets."""
    data = DEMO.read_bytes()
    parts: dict[int, list[bytes]] = {}
    at = HEADER_BYTES
    while at < len(data):
        end = at + RECORD_BYTES + struct.unpack_from("<I", data, at + 8)[0]
        ports = struct.unpack_from(">HH", data, at + RECORD_BYTES + PORTS_AT)
        parts.setdefault(part_of(*ports), []).append(data[at:end])
        at = end
    for number, packets in parts.items():
        (folder / f"{number}.pcap").write_bytes(data[:HEADER_BYTES] + b"".join(packets))
    return [str(folder / f"{number}.pcap") for number in sorted(parts)]
