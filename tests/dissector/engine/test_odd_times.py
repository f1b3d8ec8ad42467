"""Impossible packet times: rows are the same from objects and columns."""

from __future__ import annotations

import itertools
from itertools import product
from pathlib import Path

import pytest

from dissector import open_capture
from dissector.capture.formats.packet_rows import TIME_MAX, TIME_MIN
from dissector.engine.exchanges import exchange_facts
from tests.default_frames import request, response
from tests.dissector.capture.handmade_packets import enhanced, interface, section
from tests.tcp_captures import TSRESOL, Wire

HEARTBEAT = 12
TSOFFSET = 14
TICKS = (0, 1, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
"""Numbers of nanoseconds near zero and near the ends of what 64 bits hold."""


PAIRS = list(product(TICKS, TICKS))


def capture(offset_s: int) -> bytes:
    """Return connections of one exchange each, one for each pair of times."""
    wire, ports = Wire(), itertools.count(50000)
    for _ in PAIRS:
        connection = wire.connect(next(ports)).syn()
        connection.send(0, request(HEARTBEAT, 0, 1, "c", group_id="g"))
        connection.send(1, response(HEARTBEAT, 0, 1))
    options = [(TSRESOL, b"\x09"), (TSOFFSET, offset_s.to_bytes(8, "little", signed=True))]
    rows = (
        enhanced(each.data, PAIRS[each.connection][each.side == 1 and len(each.payload) > 0])
        for each in wire.packets
    )
    return section() + interface(options=options) + b"".join(rows)


@pytest.mark.parametrize("offset_s", [0, 1, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("worthwhile", [1, 10**9])
def test_rows_are_the_same_and_no_latency_wraps(
    worthwhile: int, offset_s: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange_facts, "MIN_BULK_EXCHANGES", worthwhile)
    path = tmp_path / "odd.pcapng"
    path.write_bytes(capture(offset_s))
    by_objects = [exchange.row() for exchange in open_capture(path)]
    assert by_objects == open_capture(path).exchanges().to_dicts()
    assert len(by_objects) == len(PAIRS)
    for row in by_objects:
        ticks = PAIRS[row["connection"]]
        times = [min(max(tick + offset_s * 10**9, TIME_MIN), TIME_MAX) for tick in ticks]
        assert [row["request_time_ns"], row["response_time_ns"]] == times
        assert row["latency_ms"] == (times[1] - times[0]) / 1e6
