"""Segments are found in their streams, beyond 32 bits and with reused endpoints."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from dissector.engine.reading.capture import Capture
from dissector.redaction.packets import position_kernels
from dissector.redaction.packets.position_kernels import NO_STREAM
from dissector.redaction.packets.stream_index import StreamIndex
from tests import tcp_captures
from tests.kernel_modes import both

mode = both(position_kernels)


class Position(NamedTuple):
    """A place in a stream."""

    connection: int
    side: int
    offset: int


def positions(path: Path) -> list[Position | None]:
    from dissector.capture.formats.capture_reader import read_packets
    from dissector.capture.packets.layers import Layers

    capture = Capture([path])
    for window in capture.windows():
        del window
    assert capture.reading is not None
    index, layers = StreamIndex(capture.reading.streams.connections), Layers()
    found = (
        index.positions(segments, np.arange(len(segments)))
        for segments in map(layers.segments, read_packets([str(path)]))
    )
    return [
        None if stream == NO_STREAM else Position(stream >> 1, stream & 1, offset)
        for each in found
        for stream, offset in zip(*(column.tolist() for column in each), strict=True)
    ]


def test_sequence_numbers_wrap(tmp_path: Path) -> None:
    wire, path = tcp_captures.Wire(), tmp_path / "a.pcap"
    connection = wire.connect(isn=(2**32 - 20, 7)).syn()
    connection.send(0, b"a" * 15, b"b" * 15, b"c" * 15).retransmit(0, 15, 30).broker(b"d" * 9)
    tcp_captures.write(path, wire.packets)
    found = [each for each in positions(path) if each is not None]
    sent = [each.offset for each in found if each.side == 0]
    assert sent == [0, 0, 0, 15, 30, 15, 45]
    assert {each.connection for each in found} == {0}


def test_reused_endpoints(tmp_path: Path) -> None:
    wire, path = tcp_captures.Wire(), tmp_path / "a.pcap"
    wire.connect(isn=(100, 200)).syn().client(b"one").fin()
    wire.connect(isn=(90_000, 70_000)).syn().client(b"two").fin()
    tcp_captures.write(path, wire.packets)
    found = positions(path)
    half = len(found) // 2
    assert {each.connection for each in found[:half] if each} == {0}
    assert {each.connection for each in found[half:] if each} == {1}
    assert [each.offset for each in found if each and each.side == 0].count(0) >= 2
