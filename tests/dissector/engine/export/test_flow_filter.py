"""Ranges of streams as segments of flows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from dissector.capture.formats.capture_reader import read_packets
from dissector.capture.packets.layers import Layers
from dissector.capture.tcp.reassembly import Streams
from dissector.engine.export.flow_filter import FlowFilter
from dissector.engine.export.stream_ranges import StreamRanges
from dissector.engine.tables.exchange_table import Frames
from tests import tcp_captures

CLIENT = 0


def add_range(ranges: StreamRanges, connection: int, side: int, start: int, end: int) -> None:
    """Add a frame of these bytes, including its size prefix."""
    columns = [np.array([each]) for each in (0, 0, end - start - 4, 0, 0, start)]
    ranges.add_frames(np.array([connection]), np.array([side]), Frames(*columns))


def passed_packets(
    folder: Path,
    wire: tcp_captures.Wire,
    ranges: Iterable[tuple[int, int, int, int]],
    whole: Iterable[int] = (),
) -> list[int]:
    """Return the packets that pass for ranges of connection, side, start, end."""
    file = folder / "a.pcap"
    tcp_captures.write(file, wire.packets)
    streams, layers = Streams(), Layers()
    every = [layers.segments(window) for window in read_packets([file])]
    for segments in every:
        streams.feed(segments)
    chosen = StreamRanges()
    for each in ranges:
        add_range(chosen, *each)
    is_whole = np.zeros(len(streams.connections), np.bool_)
    is_whole[list(whole)] = True
    flows = FlowFilter.of(chosen, streams.connections, is_whole)
    found = [segments.packet[flows.passing(segments)] for segments in every]
    return [int(number) for numbers in found for number in numbers]


@pytest.fixture
def wire() -> tcp_captures.Wire:
    """0 to 2: the handshake; then 3 messages of ten bytes of each side, each acknowledged."""
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    for _ in range(3):
        connection.client(b"0123456789").broker(b"abcdefghij")
    connection.fin()
    return wire


HANDSHAKE, END = {0, 1, 2}, {15, 16, 17}


@pytest.mark.parametrize(
    ("start", "end", "data"),
    [(0, 10, {3}), (9, 20, {3, 7}), (10, 20, {7}), (0, 30, {3, 7, 11}), (29, 30, {11})],
)
def test_bytes_of_the_client(
    start: int, end: int, data: set[int], wire: tcp_captures.Wire, tmp_path: Path
) -> None:
    found = set(passed_packets(tmp_path, wire, [(0, CLIENT, start, end)]))
    acknowledgements = {at + 1 for at in data}
    assert found == HANDSHAKE | data | acknowledgements | END


def test_wrapped_sequence_numbers(tmp_path: Path) -> None:
    wire = tcp_captures.Wire()
    connection = wire.connect(isn=(2**32 - 16, 7)).syn()
    for _ in range(4):
        connection.client(b"0123456789")
    for start in range(40):
        found = passed_packets(tmp_path, wire, [(0, CLIENT, start, start + 1)])
        assert [at for at in found if wire.packets[at].payload] == [3 + start // 10 * 2]


def test_whole_connections(wire: tcp_captures.Wire, tmp_path: Path) -> None:
    other = wire.connect(50001).syn()
    other.client(b"not this")
    first = [at for at, each in enumerate(wire.packets) if each.connection == 0]
    assert passed_packets(tmp_path, wire, [], whole=[0]) == first
    assert passed_packets(tmp_path, wire, [(0, CLIENT, 3, 4)], whole=[0]) == first


def test_nothing_passes_without_ranges(wire: tcp_captures.Wire, tmp_path: Path) -> None:
    assert passed_packets(tmp_path, wire, []) == []


def test_ranges_are_merged() -> None:
    ranges, chance = StreamRanges(), np.random.default_rng(5)
    expected: dict[tuple[int, int], set[int]] = {}
    for start in chance.permutation(200).tolist():
        key = int(chance.integers(2)), int(chance.integers(2))
        add_range(ranges, *key, start * 4, start * 4 + 4)
        expected.setdefault(key, set()).update(range(start * 4, start * 4 + 4))
    found: dict[tuple[int, int], set[int]] = {}
    for connection, side, start, end in ranges.columns().T.tolist():
        found.setdefault((connection, side), set()).update(range(start, end))
    assert found == expected
    assert ranges.columns().shape[1] < 200
