"""Limits of the memory and waiting time of a connection."""

from __future__ import annotations

import pytest

from dissector.engine.correlation import correlation_limits
from dissector.engine.correlation.correlation_limits import MAX_EARLY_RESPONSE_NS
from dissector.engine.tables.exchange_table import STATUS
from tests.default_frames import request, response
from tests.reference.correlation.connection_correlator import ConnectionCorrelator
from tests.reference.correlation.exchange_rows import ExchangeRow

HEARTBEAT = 12
MS = 1_000_000


def beat(n: int) -> bytes:
    return request(HEARTBEAT, 4, n, group_id="g")


def response_frame(n: int) -> bytes:
    return response(HEARTBEAT, 4, n)


def statuses(lines: list[tuple[int, bytes, int]], whole: bool = True) -> list[tuple[str, int]]:
    """Correlate (side, data, millisecond) lines; return status and id of the rows."""
    rows: list[ExchangeRow] = []
    correlator = ConnectionCorrelator(0, whole, rows.append)
    for packet, (side, data, ms) in enumerate(lines):
        correlator.add_data(side, data, packet, ms * MS)
    before = len(rows)
    correlator.end()
    seen = []
    for number, row in enumerate(rows):
        head = row.request.data[4:8] if row.request else row.response.data[:4]
        status = STATUS[row.status] + (" at the end" if number >= before else "")
        seen.append((status, int.from_bytes(head, "big")))
    return seen


@pytest.mark.parametrize("whole", [True, False])
def test_a_response_captured_before_its_request_waits(whole: bool) -> None:
    lines = [
        (0, beat(1), 0),
        (1, response_frame(1), 1),
        (1, response_frame(2), 2),
        (0, beat(2), 3),
        (1, response_frame(3), 4),
    ]
    assert statuses(lines, whole) == [("answered", 1), ("answered", 2), ("orphan at the end", 3)]


def test_response_before_the_first_request_of_a_whole_connection() -> None:
    assert statuses([(1, response_frame(0), 0), (0, beat(0), 1)]) == [("answered", 0)]


def test_a_response_waits_for_a_limited_time() -> None:
    late = MAX_EARLY_RESPONSE_NS // MS
    lines = [
        (0, beat(1), 0),
        (1, response_frame(2), 1),
        (0, beat(3), 1 + late),
        (1, response_frame(3), 2 + late),
    ]
    assert statuses(lines) == [("orphan", 2), ("answered", 3), ("unanswered at the end", 1)]


def test_a_response_with_a_past_id_does_not_wait() -> None:
    """A client that reuses ids must not get a response one request too early."""
    lines = [
        (0, beat(5), 0),
        (1, response_frame(5), 1),
        (1, response_frame(5), 2),
        (0, beat(5), 3),
        (1, response_frame(5), 4),
    ]
    assert statuses(lines) == [("answered", 5), ("orphan", 5), ("answered", 5)]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("side", [0, 1])
def test_an_unrecognised_stream_is_not_kept(
    whole: bool, side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(correlation_limits, "MIN_RETAINED_BYTES", 5000)
    monkeypatch.setattr(correlation_limits, "MAX_FIRST_REQUEST_OFFSET", 1 << 30)
    correlator = ConnectionCorrelator(0, whole, lambda row: None)
    for packet in range(100):
        correlator.add_data(side, b"\x80" * 1000, packet, 0)
        assert len(correlator.streams[side].buffer) <= 11_000
    assert correlator.speaks == ""
    correlator.end()
    assert correlator.speaks == "other"


def test_unsolicited_responses_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correlation_limits, "MIN_RETAINED_BYTES", 5000)
    correlator = ConnectionCorrelator(0, False, lambda row: None)
    correlator.add_data(0, beat(1), 0, 0)
    correlator.add_data(1, response_frame(1), 1, 1)
    correlator.add_gap(1, 7, 2, 2)
    for packet in range(100):
        correlator.add_data(1, b"\x80" * 1000, 3 + packet, 3)
        assert len(correlator.streams[1].buffer) <= 11_000
    assert correlator.streams[1].skipped >= 89_000


def test_responses_without_requests_are_recognised_before_being_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(correlation_limits, "MIN_RETAINED_BYTES", 200)
    rows: list[ExchangeRow] = []
    correlator = ConnectionCorrelator(0, False, rows.append)
    for n in range(100):
        correlator.add_data(1, response_frame(n), n, n)
    assert len(rows) > 90
    correlator.end()
    assert [row.response.data[:4] for row in rows] == [n.to_bytes(4, "big") for n in range(100)]
