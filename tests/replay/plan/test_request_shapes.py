"""Exchanges of one shape differ in records, offsets and times only."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.messages import decode_request, decode_response
from replay.plan.request_shapes import Shape, ShapeIndex, producer_at, shape_of
from tests.replay.support.produce_messages import (
    PRODUCE,
    Written,
    produce_request,
    produce_response,
)

PLACES = (("orders", 0, 7), ("audit", 3, 9))
WRITTEN = [Written(topic, partition) for topic, partition, _ in PLACES]


def _shape(version: int, request: bytes, response: bytes) -> Shape | None:
    return shape_of(decode_request(request), decode_response(response, PRODUCE, version))


@given(
    version=st.integers(3, 13),
    values=st.lists(st.binary(max_size=300), min_size=1, max_size=3),
    offsets=st.tuples(st.integers(0, 2**62), st.integers(0, 2**62)),
    start=st.integers(0, 2**62),
    time_ms=st.integers(-1, 2**62),
)
def test_variable_fields_of_a_shape_are_located(
    version: int, values: list[bytes], offsets: tuple[int, int], start: int, time_ms: int
) -> None:
    more: dict[str, Any] = {"log_start_offset": 5} if version >= 5 else {}
    shape = _shape(
        version, produce_request(version, WRITTEN), produce_response(version, PLACES, **more)
    )
    assert shape is not None
    written = [WRITTEN[0]._replace(values=values, producer=(4, 2, 8)), WRITTEN[1]]
    request = produce_request(version, written, 1)
    batches = shape.request.batch_positions(request)
    assert batches is not None
    for begin, each in zip(batches, written, strict=True):
        assert request[begin : begin + len(each.records())] == each.records()
    assert [producer_at(request, begin) for begin in batches] == [
        (4, 2, 8, len(values)),
        (-1, -1, -1, 1),
    ]
    places = [(*place[:2], offset) for place, offset in zip(PLACES, offsets, strict=True)]
    more = {"log_start_offset": start} if version >= 5 else {}
    answer = produce_response(version, places, 1, log_append_time_ms=time_ms, **more)
    if time_ms >= 0:
        assert shape.response.base_offsets(answer) is None  # the other times are not set
        more["log_append_time_ms"] = 5
        shape = _shape(version, request, produce_response(version, PLACES, **more))
        assert shape is not None
    assert shape.response.base_offsets(answer) == offsets
    assert _shape(version, request, answer) == shape


@pytest.mark.parametrize("version", range(3, 14))
def test_any_other_difference_gives_another_shape(version: int) -> None:
    shape = _shape(version, produce_request(version, WRITTEN), produce_response(version, PLACES))
    assert shape is not None
    others = [
        produce_request(version, WRITTEN, acks=1),
        produce_request(version, WRITTEN, transactional_id="t"),
        produce_request(version, WRITTEN[:1]),
        produce_request(version, [WRITTEN[0], WRITTEN[1]._replace(partition=4)]),
        produce_request(version, WRITTEN) + b"\0",
        produce_request(version, WRITTEN)[:-1],
        produce_request(3 if version > 3 else 4, WRITTEN),
    ]
    assert not any(shape.request.batch_positions(each) for each in others)
    answers = [
        produce_response(version, PLACES, error_code=3),
        produce_response(version, PLACES, throttle_time_ms=1),
        produce_response(version, PLACES[:1]),
        produce_response(version, [PLACES[0], ("audit", 3, -1)]),
        produce_response(version, [PLACES[0], ("audit", 4, 9)]),
        produce_response(version, PLACES) + b"\0",
    ]
    assert not any(shape.response.base_offsets(each) for each in answers)


@given(at=st.integers(min_value=0), value=st.integers(0, 255))
def test_a_change_of_any_byte_but_offsets_changes_the_shape(at: int, value: int) -> None:
    request, response = produce_request(9, WRITTEN), produce_response(9, PLACES, log_start_offset=0)
    shape = _shape(9, request, response)
    assert shape is not None
    at %= len(response)
    other = response[:at] + bytes([value]) + response[at + 1 :]
    if shape.response.base_offsets(other) is not None:
        assert _shape(9, request, other) == shape


@given(st.data())
def test_arbitrary_bytes_raise_no_error(data: st.DataObject) -> None:
    version = data.draw(st.integers(3, 13))
    request, response = produce_request(version, WRITTEN), produce_response(version, PLACES)
    shape = _shape(version, request, response)
    assert shape is not None
    for frame in (request, response):
        at = data.draw(st.integers(4, len(frame)))
        other = frame[:at] + data.draw(st.binary(max_size=90))
        shape.request.batch_positions(other)
        shape.response.base_offsets(other)


def test_requests_without_a_shape() -> None:
    good = produce_request(9, WRITTEN), produce_response(9, PLACES)
    assert _shape(9, *good) is not None
    assert _shape(9, good[0], produce_response(9, PLACES, error_code=6)) is None
    assert _shape(9, good[0], produce_response(9, PLACES, throttle_time_ms=5)) is None
    assert _shape(9, good[0], produce_response(9, PLACES[:1])) is None
    assert (
        _shape(9, produce_request(9, WRITTEN[:1] * 2), produce_response(9, PLACES[:1] * 2)) is None
    )
    assert shape_of(decode_request(good[0]), None) is None
    two = WRITTEN[0].records() + WRITTEN[1].records()
    topics = [{"name": "orders", "partition_data": [{"index": 0, "records": two}]}]
    assert (
        _shape(9, produce_request(9, [], topic_data=topics), produce_response(9, PLACES[:1]))
        is None
    )


def test_responses_may_have_another_order_of_partitions() -> None:
    shape = _shape(9, produce_request(9, WRITTEN), produce_response(9, PLACES[::-1]))
    assert shape is not None
    assert shape.partition_order == (1, 0)


def test_shapes_are_cached_per_connection() -> None:
    shapes = ShapeIndex()
    request, response = produce_request(9, WRITTEN), produce_response(9, PLACES)
    assert shapes.find(0, request, response) is None
    shape = _shape(9, request, response)
    assert shape is not None
    assert shapes.add(0, shape, len(response)) == 0
    found = shapes.find(0, produce_request(9, WRITTEN, 5), produce_response(9, PLACES, 5))
    assert found is not None
    assert (found[0], found[2]) == (0, (7, 9))
    assert shapes.find(1, request, response) is None
    assert shapes.add(1, shape, len(response)) == 0
    assert len(shapes.shapes) == 1
