"""Redaction in two passes: messages first, then packets."""

from __future__ import annotations

import io
from contextlib import closing
from pathlib import Path

import numpy as np

from dissector.engine.export.flow_filter import FlowFilter
from dissector.engine.export.stream_ranges import StreamRanges
from dissector.engine.reading.capture import Capture
from dissector.protocol.field_roles import ValueKind
from dissector.redaction.packet_pass import write_redacted
from dissector.redaction.redaction import Redaction
from tests import tcp_captures
from tests.dissector.cli import cli_traffic


def redacted(path: Path, kept: frozenset[ValueKind] = frozenset()) -> bytes:
    capture = Capture([path])
    with closing(Redaction(b"a key of the test", kept, capture.names, decrypts=False)) as redaction:
        for window in capture.windows():
            redaction.read(capture, window)
        assert capture.reading is not None
        table = capture.reading.streams.connections
        flows = FlowFilter.of(StreamRanges(), table, np.ones(len(table), np.bool_))
        file, stop = io.BytesIO(), capture.options.stop
        written = write_redacted([str(path)], flows, redaction, capture.reading, file, stop)
        assert written[0] == written[1]
    return file.getvalue()


def test_other_protocols_become_zeros(tmp_path: Path) -> None:
    """Also if its packets are written."""
    path, out = tmp_path / "a.pcap", tmp_path / "out.pcapng"
    tcp_captures.write(path, cli_traffic.shop().packets)
    content = redacted(path)
    for word in (*cli_traffic.HTTP, b"orders", b"shop", b"anna", b"lamp", "grüße".encode()):
        assert word not in content
    out.write_bytes(content)
    assert len(list(Capture([out]))) == len(list(Capture([path])))
    assert b"orders" in redacted(path, frozenset((ValueKind.TOPIC,)))


def test_an_incomplete_capture_gives_zeros(tmp_path: Path) -> None:
    """A message without its captured start is unknown."""
    path = tmp_path / "a.pcap"
    every = cli_traffic.shop().packets
    at = next(n for n, each in enumerate(every) if b"orders" in each.payload)
    torn = every[at].data[:54] + every[at].data[54:][: len(every[at].payload)]
    tcp_captures.write(
        path, [*every[:at], tcp_captures.Packet(every[at].time_ns, torn[:90]), *every[at + 1 :]]
    )
    assert b"orders" not in redacted(path)
