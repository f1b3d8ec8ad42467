"""The columns of a window hold the values that `Exchange` reads one at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from conform.registry.exchange_row import ExchangeRow
from conform.screens.row_numbers import row_numbers
from dissector import open_capture
from dissector.engine.exchanges.exchange import Exchange
from tests import corpus, tcp_captures
from tests.conform.scene import Scene

METADATA = 3

SMALL = [path for path in corpus.CAPTURES if path.stat().st_size < 60_000]


def _row(exchange: Exchange) -> ExchangeRow:
    return ExchangeRow(
        exchange.api_key,
        exchange.api_version,
        exchange.correlation_id,
        exchange.request_packet,
        exchange.response_packet,
        exchange.request_time_ns,
        exchange.response_time_ns,
        -1 if exchange.request_offset is None else exchange.request_offset,
    )


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.name)
def test_rows_are_those_of_the_exchanges(path: Path) -> None:
    capture = open_capture(path)
    for window in capture.windows():
        exchanges = [_row(exchange) for exchange in capture.exchanges_of(window)]
        assert row_numbers(window.exchanges) == exchanges


def test_missing_messages_have_no_values(tmp_path: Path) -> None:
    scene = Scene()
    connection = scene.connect()
    connection.request(METADATA, 9, 1).response(METADATA, 9, 1)
    connection.response(METADATA, 9, 2).request(METADATA, 9, 3).fin()
    path = tcp_captures.write(tmp_path / "scene.pcap", scene.wire.packets)
    windows = open_capture(path).windows()
    rows = {row.correlation_id: row for each in windows for row in row_numbers(each.exchanges)}
    orphan, unanswered = rows[2], rows[3]
    assert orphan == (None, None, 2, None, orphan.response_packet, None, orphan.response_ns, -1)
    assert None not in (orphan.response_packet, orphan.response_ns)
    assert unanswered[:3] == (METADATA, 9, 3)
    assert (unanswered.response_packet, unanswered.response_ns) == (None, None)
    assert unanswered.request_offset > 0
