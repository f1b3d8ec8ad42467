"""Resynchronisation of streams without framing."""

from __future__ import annotations

import pytest

from dissector.capture.columns import NEVER
from tests.default_frames import request, response, sized
from tests.reference.correlation import resync
from tests.reference.correlation.framer import Frame, Framer
from tests.reference.correlation.open_requests import OpenRequests
from tests.reference.correlation.resync import (
    StreamBreak,
    sync_at_request,
    sync_at_response,
    sync_without_requests,
)

HEARTBEAT, METADATA = 12, 3


def beat(n: int, client_id: str | None = "test", size: int = 1) -> bytes:
    return request(HEARTBEAT, 3, n, client_id, group_id="g" * size)


def stream(*packets: bytes, fresh: bool = True, limit: int = 10_000) -> Framer:
    made = Framer(0, limit)
    for number, data in enumerate(packets):
        made.add_data(data, number, number)
    made.at_packet_start = fresh
    return made


def believe(buffer: bytearray, size: int) -> bool:
    return True


def entered(made: Framer, broken: StreamBreak | None = None) -> int | None:
    """Return the position at which a stream of requests is resynchronised."""
    return made.base if sync_at_request(made, believe, broken) else None


@pytest.mark.parametrize(
    ("packets", "at"),
    [
        ([beat(1)], 0),
        ([b"tail" + beat(1)], 4),
        # The body decodes to its last byte: sufficient evidence, except without a client id.
        ([b"\0" * 40 + beat(1) + b"x"], 40),
        ([b"\0" * 40 + beat(1, None) + b"x"], None),
        ([b"\0" * 40 + beat(1, None)], 40),
        ([b"\0" * 40, beat(1, None) + b"x"], 40),
        ([b"\0" * 40 + beat(1, None) + beat(2)], 40),
        # An undecodable body, up to the end of a packet or the next header.
        ([b"tail" + request(HEARTBEAT, 3, 1)[:4] + beat(1)[4:-3] + b"\xff\xff\xff"], None),
        ([b"no kafka at all, but long enough to be looked at"], None),
        ([b""], None),
        # Zeros are a Produce request without records, and no evidence.
        ([b"tail" + sized(bytes(18)) + b"x", b"x"], None),
        ([sized(bytes(18)) + b"x"], None),
    ],
)
def test_the_first_credible_request_is_found(packets: list[bytes], at: int | None) -> None:
    assert entered(stream(*packets, fresh=False)) == at


def garbled(n: int) -> bytes:
    """Return a request with a valid header and an undecodable body."""
    good = beat(n, size=30)
    return good[:18] + b"\xff" * (len(good) - 18)


def test_a_header_suffices_if_its_size_leads_to_a_boundary() -> None:
    assert entered(stream(b"tail" + garbled(1), fresh=False)) == 4
    assert entered(stream(b"tail" + garbled(1) + garbled(2), fresh=False)) == 4
    assert entered(stream(b"tail" + garbled(1) + bytes(20), fresh=False)) is None


def test_an_incomplete_request_is_awaited_without_a_new_search() -> None:
    data = b"tail" + beat(1, size=300)
    made = stream(data[:50], fresh=False)
    assert entered(made) is None
    assert made.scanned == 4
    made.add_data(data[50:], 1, 1)
    assert entered(made) == 4


def test_contradictory_requests_are_not_awaited() -> None:
    """The end of a truncated header can resemble the start of another one."""
    false_header = b"\0\x07\0\0" + b"\0\x09" + b"\0\x04" + b"test" + b"\0\x02ab" + b"\xff" * 30
    made = stream(false_header + beat(2), fresh=True, limit=1 << 20)
    assert entered(made) == len(false_header)


def test_weak_incomplete_requests_are_awaited_at_packet_starts_only() -> None:
    weak = beat(1, None, 300)[:40]
    at_start, inside = stream(weak), stream(b"x" + weak, fresh=False)
    assert (entered(at_start), at_start.scanned) == (None, 0)
    assert entered(inside) is None
    assert inside.scanned > 1


@pytest.mark.parametrize(
    ("broken", "at"),
    [
        (None, None),
        (StreamBreak(1, True), None),
        (StreamBreak(0, False), None),
        (StreamBreak(0, True, 270), 0),
    ],
)
def test_requests_truncated_by_the_capture_are_accepted(
    broken: StreamBreak | None, at: int | None
) -> None:
    assert entered(stream(beat(1, size=300)[:40]), broken) == at


def test_a_large_request_is_accepted_but_not_text_resembling_one() -> None:
    large = beat(1, size=5000)
    assert entered(stream(large[:100], limit=1000)) == 0
    assert entered(stream(b"AAAA" + large[4:100], limit=1000)) is None


def test_an_unknown_request_is_accepted_if_it_fills_its_packets() -> None:
    strange = request(HEARTBEAT, 3, 1)
    strange = strange[:4] + b"\x03\xe7" + strange[6:]
    assert entered(stream(strange)) == 0
    assert entered(stream(strange[:20], strange[20:])) == 0
    assert entered(stream(b"x" + strange, fresh=False)) is None
    assert entered(stream(strange + b"x")) is None


def waiting(*ids: int, packet: int = -1) -> OpenRequests:
    made = OpenRequests()
    for n in ids:
        data = beat(n)[4:]
        list(made.add(Frame(0, data, len(data), packet, 0, 0)))
    return made


def answer_at(
    made: Framer, opened: OpenRequests, broken: StreamBreak | None = None, horizon: int = NEVER
) -> int | None:
    found = sync_at_response(made, believe, opened, broken, horizon)
    return made.base if found else None


def response_frame(n: int) -> bytes:
    return response(HEARTBEAT, 3, n)


def test_a_response_to_an_open_request() -> None:
    made = stream(b"tail" + response_frame(5) + response_frame(6), fresh=False)
    assert answer_at(made, waiting(6)) == 4 + len(response_frame(5))


@pytest.mark.parametrize("size", [6, 10, 12])
def test_zeros_are_no_response(size: int) -> None:
    made = stream(b"tail" + sized(bytes(size)) + bytes(20), fresh=False)
    assert answer_at(made, waiting(0)) is None
    assert (
        answer_at(stream(b"tail" + response_frame(0) + bytes(20), fresh=False), waiting(0)) is None
    )


def test_earlier_responses_are_accepted_if_sizes_lead_to_a_known_one() -> None:
    assert (
        answer_at(stream(response_frame(4), response_frame(5) + response_frame(6)), waiting(6)) == 0
    )
    assert (
        answer_at(stream(response_frame(4)[3:], response_frame(5) + response_frame(6)), waiting(6))
        == len(response_frame(4)) - 3
    )


def test_a_response_can_not_precede_its_request() -> None:
    assert answer_at(stream(response_frame(6)), waiting(6, packet=3)) is None


def test_responses_behind_the_horizon_are_searched_later() -> None:
    made = stream(response_frame(5), response_frame(6))
    assert answer_at(made, waiting(9), horizon=1) is None
    assert made.scanned == len(response_frame(5))
    assert answer_at(made, waiting(6)) is not None


def test_incomplete_responses_are_awaited_or_accepted_if_truncated() -> None:
    data = response(METADATA, 1, 6, controller_id=9)
    assert answer_at(stream(data[:10]), waiting(6)) is None
    for broken, at in (
        (StreamBreak(0, True, len(data) - 10), 0),
        (StreamBreak(0, True, len(data)), None),
        (StreamBreak(0, False, len(data) - 10), None),
    ):
        assert answer_at(stream(data[:10]), waiting(6), broken) == at


def test_responses_without_requests_are_recognised_by_ascending_ids() -> None:
    rising = [response_frame(n) for n in (7, 8, 9)]
    assert sync_without_requests(stream(b"x" * 9, *rising), believe)
    assert not sync_without_requests(stream(*rising[:2]), believe)
    assert not sync_without_requests(
        stream(response_frame(7), response_frame(9), response_frame(8)), believe
    )
    assert not sync_without_requests(stream(b"x" + b"".join(rising)), believe)
    assert sync_without_requests(stream(response_frame(7)), believe, minimum=1)


def test_attempts_on_overlapping_candidates_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hostile bytes: a candidate every 16 bytes, each far larger."""
    tried = []
    monkeypatch.setattr(resync, "ALWAYS_TRIED_BYTES", 0)
    monkeypatch.setattr(resync, "decodes_exactly", lambda frame: bool(tried.append(len(frame))))
    header = b"\0\0\x70\0" + b"\0\x0c\0\x03" + b"\xff\xff\xff\x01" + b"\0\x02ab"
    made = stream(header * 4000, limit=1 << 20)
    assert entered(made) is None
    assert len(tried) > 10
    assert sum(tried) <= resync.MAX_TRIES_PER_BYTE * made.end
