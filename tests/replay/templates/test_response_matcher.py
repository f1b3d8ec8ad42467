"""Responses matched in batches, compared with one at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.client.pending_request import LAST_CORRELATION_ID, next_id
from dissector.protocol.messages import decode_response
from replay.mapping.offset_map import PartitionOffsets
from replay.plan.request_shapes import ResponseShape, response_shape_of
from replay.templates import response_matcher as match_module
from replay.templates.request_writer import RequestRows
from replay.templates.response_matcher import ResponseMatcher
from tests.default_frames import sized
from tests.kernel_modes import MODES, running
from tests.replay.support.produce_messages import (
    PRODUCE,
    Written,
    arrays_of,
    produce_request,
    produce_response,
)

PLACES = (("orders", 0), ("audit", 3))
LIVE = (("p-audit", 3), ("p-orders", 0))
ORDER = (1, 0)

Places = tuple[tuple[str, int], ...]


@pytest.fixture(scope="module", params=MODES, autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    with running(request.param, match_module):
        yield


def answer(
    version: int,
    places: tuple[tuple[str, int], ...],
    offsets: list[int],
    number: int = 0,
    **more: int,
) -> bytes:
    found = [(*place, offset) for place, offset in zip(places, offsets, strict=True)]
    return produce_response(version, found, number, **more)


def shape(frame: bytes, version: int) -> ResponseShape:
    found = response_shape_of(decode_response(frame, PRODUCE, version))
    assert found is not None
    return found


class RecordingOffsets(PartitionOffsets):
    """Records learned offsets."""

    def __init__(self, is_last: bool) -> None:
        super().__init__()
        self.is_last = is_last
        self.learned: list[list[int]] = []

    def ends_before(self, captured: int, live: int) -> bool:
        return self.is_last

    def learn_appended(self, captured: int, live: int, count: int, step: int) -> None:
        self.learned.append([captured, live, count])


def request_rows(count: int, record_counts: list[int]) -> RequestRows:
    """Return rows of requests, with the records for each partition."""
    rows = RequestRows.empty(count, len(record_counts) // count)
    rows.requests["step"], rows.requests["latency_ns"] = range(count), 0
    rows.batches["record_count"] = record_counts
    return rows


offsets = st.lists(st.sampled_from([0, 1, 2, 3, 5, 9, 2**40]), min_size=2, max_size=2)


@given(data=st.data(), version=st.integers(3, 12), start=st.sampled_from([7, LAST_CORRELATION_ID]))
def test_matching_many_responses_equals_matching_each(
    data: st.DataObject, version: int, start: int
) -> None:
    more = data.draw(st.sampled_from([{}, {"log_start_offset": 2}] if version >= 5 else [{}]))
    captured = [answer(version, PLACES[::-1], data.draw(offsets), **more) for _ in range(4)]
    request = produce_request(version, [Written(*place) for place in PLACES])
    arrays = arrays_of([(request, each) for each in captured])
    counts = data.draw(st.lists(st.integers(1, 4), min_size=8, max_size=8))
    rows = request_rows(4, counts)
    ids = [start]
    for _ in range(3):
        ids.append(next_id(ids[-1]))
    live = [answer(version, LIVE, data.draw(offsets), each, **more) for each in ids]
    at = data.draw(st.integers(0, 3))
    other = data.draw(
        st.sampled_from(
            [
                live[at],
                live[at][:-1],
                live[at] + b"\0",
                answer(version, LIVE, [-1, 3], ids[at], **more),
                answer(version, LIVE, [1, 3], ids[at] ^ 1, **more),
                answer(version, LIVE, [1, 3], ids[at], **more, error_code=3),
                answer(version, PLACES, [1, 3], ids[at], **more),
                answer(version, LIVE, [1, 3], ids[at], **more, log_append_time_ms=5),
            ]
        )
    )
    came = [*live[:at], other, *live[at + 1 :]]
    stream = b"".join(map(sized, came))
    cut = stream[: data.draw(st.integers(0, len(stream)))]

    expected: list[tuple[int, int, int, int]] = []
    ours, theirs = (shape(frames[0], version) for frames in (captured, live))
    end = taken = 0
    for number, frame in enumerate(came):
        found = theirs.base_offsets(frame)
        is_next = frame[:4] == ids[number].to_bytes(4, "big")
        if found is None or not is_next or end + 4 + len(frame) > len(cut):
            break
        before = ours.base_offsets(captured[number])
        assert before is not None
        for partition, (old, new) in enumerate(zip(before, found, strict=True)):
            count = counts[2 * number + ORDER[partition]]
            expected.append((partition, old, new, count))
        end += 4 + len(frame)
        taken += 1

    prefix = b"\0" * data.draw(st.integers(0, 3))
    logs = [RecordingOffsets(data.draw(st.booleans())) for _ in range(2)]
    matching = ResponseMatcher(ours, theirs, (ORDER, ORDER), logs)
    matched = matching.match(arrays, prefix + cut, len(prefix), start, rows, 0, 99)
    assert matched == (taken, len(prefix) + end)
    for partition, log in enumerate(logs):
        one_by_one = [each for number, *each in expected if number == partition]
        if log.is_last:
            log.learned = [[old + i, new + i, 1] for old, new, n in log.learned for i in range(n)]
            one_by_one = [[old + i, new + i, 1] for old, new, n in one_by_one for i in range(n)]
        assert log.learned == one_by_one
    assert rows.requests["latency_ns"].tolist() == [99] * taken + [0] * (4 - taken)
    assert arrays.is_done.tolist() == [1] * taken + [0] * (4 - taken)


def test_adjacent_records_are_one_stretch() -> None:
    captured = [answer(9, PLACES[:1], [10 + at]) for at in range(3)]
    request = produce_request(9, [Written(*PLACES[0])])
    arrays = arrays_of([(request, each) for each in captured])
    rows = request_rows(3, [1] * 3)
    live = [answer(9, PLACES[:1], [50 + at], at) for at in range(3)]
    log = RecordingOffsets(True)
    matching = ResponseMatcher(shape(captured[0], 9), shape(live[0], 9), ((0,), (0,)), [log])
    stream = b"".join(map(sized, live))
    found = matching.match(arrays, stream, 0, 0, rows, 0, 5)
    assert found == (3, len(stream))
    later = matching.match(arrays, stream, len(stream) // 3, 1, rows, 1, 6)
    assert later == (2, len(stream))
    assert log.learned == [[10, 50, 3], [11, 51, 2]]
