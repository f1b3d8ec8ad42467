"""Captures stopped by Ctrl-C: their rows so far can be shown."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from dissector import Capture, Options
from dissector.capture.formats.byte_source import StopSignal
from tests import tcp_captures
from tests.default_frames import request, response

FETCH, TOPIC = 1, UUID(int=7)


def test_topic_ids_are_shown_when_the_rest_is_not_searched_for_names(tmp_path: Path) -> None:
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    connection.client(request(FETCH, 13, 1, topics=[{"topic_id": TOPIC, "partitions": []}]))
    connection.broker(response(FETCH, 13, 1))
    path = tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    stop = StopSignal()
    exchange = next(iter(Capture([path], Options(stop=stop))))
    stop.request()
    assert exchange.topics == [str(TOPIC)]


def test_a_capture_stopped_before_its_first_byte_is_empty(tmp_path: Path) -> None:
    path = tcp_captures.write(tmp_path / "a.pcap", [])
    stop = StopSignal()
    stop.request()
    assert list(Capture([path], Options(stop=stop))) == []
