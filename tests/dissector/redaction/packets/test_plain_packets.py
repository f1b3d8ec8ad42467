"""Packets that are replaced at once equal those that are replaced one by one."""

from __future__ import annotations

import io
import random
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from dissector.engine.export.flow_filter import FlowFilter
from dissector.engine.export.stream_ranges import StreamRanges
from dissector.engine.reading.capture import Capture
from dissector.redaction import packet_pass
from dissector.redaction.packet_pass import write_redacted
from dissector.redaction.packets import packet_kernels
from dissector.redaction.packets.plain_packets import PlainPackets
from dissector.redaction.redaction import Redaction
from tests import corpus, tcp_captures
from tests.dissector.cli import cli_traffic
from tests.kernel_modes import both

mode = both(packet_kernels)


class NonePlain(PlainPackets):
    """Finds no plain packets."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.is_plain[:] = False


def exported(path: Path) -> bytes:
    capture = Capture([path])
    with closing(Redaction(b"a key of the test", (), capture.names, decrypts=False)) as redaction:
        for window in capture.windows():
            redaction.read(capture, window)
        reading = capture.reading
        assert reading is not None
        table = reading.streams.connections
        flows = FlowFilter.of(StreamRanges(), table, np.ones(len(table), np.bool_))
        file = io.BytesIO()
        write_redacted([str(path)], flows, redaction, reading, file, capture.options.stop)
    return file.getvalue()


def both_ways(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, bytes]:
    at_once = exported(path)
    with monkeypatch.context() as patch:
        patch.setattr(packet_pass, "PlainPackets", NonePlain)
        return at_once, exported(path)


@pytest.mark.parametrize("name", ["kafka4-errors.pcap", "librdkafka-group-cooperative.pcapng"])
def test_captures(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, one_by_one = both_ways(corpus.FOLDER / name, monkeypatch)
    assert at_once == one_by_one
    assert len(at_once) > 10_000


@pytest.mark.parametrize("seed", range(8))
def test_odd_headers(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any byte of the headers and the options of TCP may be anything."""
    noise, path = random.Random(seed), tmp_path / "a.pcap"
    packets = cli_traffic.shop().packets
    for at, each in enumerate(packets):
        data = bytearray(each.data)
        for _ in range(noise.choice((0, 0, 1, 2, 4))):
            data[noise.randrange(12, min(len(data), 60))] = noise.randrange(256)
        data += bytes(noise.choice((0, 0, 0, 4)))
        packets[at] = tcp_captures.Packet(each.time_ns, bytes(data))
    tcp_captures.write(path, packets)
    at_once, one_by_one = both_ways(path, monkeypatch)
    assert at_once == one_by_one
