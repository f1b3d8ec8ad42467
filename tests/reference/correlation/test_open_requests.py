"""Open requests of a connection."""

from __future__ import annotations

from itertools import count

import pytest

from dissector.engine.correlation import correlation_limits as limits
from tests.default_frames import request
from tests.reference.correlation.framer import Frame
from tests.reference.correlation.open_requests import OpenRequests

HEARTBEAT, HANDSHAKE = 12, 17
NUMBERS = count()


def request_frame(n: int, key: int = HEARTBEAT, version: int = 0) -> Frame:
    return frame(request(key, version, n)[4:])


def frame(data: bytes, packet: int | None = None) -> Frame:
    return Frame(0, data, len(data), next(NUMBERS) if packet is None else packet, 0, 0)


def answer(n: int) -> Frame:
    return frame(n.to_bytes(4, "big", signed=True))


def test_the_oldest_request_with_the_id_is_paired() -> None:
    waiting = OpenRequests()
    frames = [request_frame(1), request_frame(2), request_frame(1)]
    for each in frames:
        assert list(waiting.add(each)) == []
    assert (len(waiting), 1 in waiting, 3 in waiting) == (3, True, False)
    assert waiting.oldest(1).frame is frames[0]
    assert waiting.first_packet == frames[0].packet
    assert [waiting.pop_match(answer(n)).frame for n in (1, 1)] == [frames[0], frames[2]]
    assert waiting.pop_match(answer(1)) is None
    assert [each.frame for each in waiting.pop_all()] == [frames[1]]
    assert (len(waiting), 2 in waiting) == (0, False)


def test_negative_ids_and_short_responses() -> None:
    waiting = OpenRequests()
    list(waiting.add(request_frame(-5)))
    assert waiting.pop_match(frame(b"\xff\xff")) is None
    assert waiting.pop_match(answer(-5)) is not None


def test_a_request_truncated_before_its_id_has_no_id() -> None:
    """Its few bytes of an id must not match the id of another request."""
    waiting = OpenRequests()
    other = request_frame(7)
    list(waiting.add(other))
    list(waiting.add(frame(b"\0\x0c\0\0\x07")))
    assert waiting.pop_match(answer(7)).frame is other
    assert len(waiting.pop_all()) == 1


def test_tokens_are_paired_in_the_order_of_all_requests() -> None:
    waiting = OpenRequests()
    list(waiting.add(request_frame(1, HANDSHAKE)))
    tokens = [frame(data)._replace(token=True) for data in (b"one", b"two")]
    for token in tokens:
        list(waiting.add(token))
    list(waiting.add(request_frame(2)))
    assert waiting.has_tokens
    assert waiting.pop_match(answer(1)).correlation_id == 1
    assert waiting.pop_match(answer(2)).frame is tokens[0]
    assert waiting.pop_match(frame(b"")).frame is tokens[1]
    assert not waiting.has_tokens
    assert waiting.pop_match(answer(2)).correlation_id == 2


def test_the_oldest_request_is_dropped_at_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_OPEN", 3)
    waiting = OpenRequests()
    dropped = [each for n in range(5) for each in waiting.add(request_frame(n))]
    assert [each.correlation_id for each in dropped] == [0, 1]
    assert len(waiting) == 3
    monkeypatch.setattr(limits, "MAX_OPEN_BYTES", 100)
    large = frame(request(HEARTBEAT, 0, 9, group_id="g" * 200)[4:])
    assert [each.correlation_id for each in waiting.add(large)] == [2, 3, 4]
    assert [each.correlation_id for each in waiting.pop_all()] == [9]


def test_ids_without_expected_response_are_kept_for_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = OpenRequests()
    for n in range(limits.MAX_SUPPRESSED + 1):
        waiting.suppress(request_frame(n))
    assert [waiting.is_suppressed(answer(n)) for n in (0, 1, limits.MAX_SUPPRESSED)] == [
        False,
        True,
        True,
    ]
    assert not waiting.is_suppressed(frame(b""))
