"""Messages in packet order."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector import Capture, Options, open_capture
from dissector.engine.reading import packet_order
from dissector.engine.reading.packet_order import OrderedMessage, PacketOrder
from tests.default_frames import request, response
from tests.tcp_captures import Wire, pcap_file


def beat(n: int) -> bytes:
    return request(12, 4, n, group_id="g")


def response_frame(n: int) -> bytes:
    return response(12, 4, n)


def capture() -> bytes:
    """Return a capture with slow responses on several connections."""
    wire = Wire()
    first, second = wire.connect(50000).syn(), wire.connect(50001).syn()
    first.client(beat(1), beat(2))
    second.client(beat(3)).broker(response_frame(3)).client(beat(4))
    first.broker(response_frame(2))
    second.broker(response_frame(4))
    first.broker(response_frame(1)).client(beat(5))
    return pcap_file(wire.packets)


def order(window_bytes: int, jobs: int = 1) -> list[tuple[int, str, int]]:
    """Put the messages of a capture in order, releasing those ready after each window."""
    made, ordered = PacketOrder(), list[OrderedMessage]()
    it = Capture(["-"], Options(window_bytes=window_bytes, stdin=io.BytesIO(capture()), jobs=jobs))
    for window in it.windows():
        for exchange in it.exchanges_of(window):
            ordered += made.add(exchange)
        ordered += made.ready(window.low_watermark)
    ordered += made.drain()
    return [(each.packet, each.message.kind, each.message.correlation_id) for each in ordered]


@pytest.mark.long
@given(st.integers(1, 300))
def test_order_does_not_depend_on_windows(window_bytes: int) -> None:
    ordered = order(window_bytes)
    assert [packet for packet, _, _ in ordered] == sorted(packet for packet, _, _ in ordered)
    assert ordered == order(1 << 20)
    assert ordered == order(window_bytes, jobs=3)
    assert [n for _, kind, n in ordered if kind == "request"] == [1, 2, 3, 4, 5]
    assert [n for _, kind, n in ordered if kind == "response"] == [3, 2, 4, 1]


def test_number_of_waiting_messages_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packet_order, "MAX_WAITING", 3)
    made = PacketOrder()
    early = [
        each
        for exchange in open_capture("-", stdin=io.BytesIO(capture()))
        for each in made.add(exchange)
    ]
    assert len(early) == 6
    assert len(list(made.drain())) == 3
