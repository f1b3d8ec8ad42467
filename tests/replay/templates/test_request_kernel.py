"""Ready requests of one shape are written together."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import pytest

from cluster.client.pending_request import LAST_CORRELATION_ID
from replay.templates import request_writer as writer_module
from replay.templates.request_writer import MAX_REQUESTS
from replay.templates.step_arrays import StepArrays
from tests.default_frames import sized
from tests.kernel_modes import MODES, running
from tests.replay.support.produce_messages import arrays_of, plan_of
from tests.replay.support.request_writers import (
    NOBODY,
    count,
    produce_requests,
    request_writer,
    write,
)


@pytest.fixture(scope="module", params=MODES, autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    with running(request.param, writer_module):
        yield


def test_all_ready_requests_are_written() -> None:
    frames = produce_requests(*[NOBODY] * 3)
    found = write(request_writer(frames[0]), arrays_of([(each, b"") for each in frames]), 1)
    assert found is not None
    expected = [
        sized(frame[:4] + (7 + number).to_bytes(4, "big") + frame[8:])
        for number, frame in enumerate(frames[1:])
    ]
    assert found.data == b"".join(expected)
    assert found.rows.batches["record_count"].tolist() == [1, 1]
    assert found.rows.steps.tolist() == [1, 2]
    assert found.rows.requests["lag_ns"].tolist() == [0, 0]


def test_written_requests_stay_valid_when_others_are_written() -> None:
    frames = produce_requests(*[NOBODY] * 2)
    arrays = arrays_of([(each, b"") for each in frames])
    first = write(request_writer(frames[0]), arrays)
    assert count(write(request_writer(frames[0]), arrays, 1)) == 1
    assert first is not None
    assert first.rows.steps.tolist() == [0, 1]


def test_writing_stops_before_another_shape() -> None:
    frames = produce_requests(*[NOBODY] * 3)
    arrays = arrays_of([(each, b"") for each in frames], (0, 0, 1))
    assert count(write(request_writer(frames[0]), arrays)) == 2
    assert count(write(request_writer(frames[0]), arrays, 2)) == 0


def test_writing_stops_before_an_unmet_dependency() -> None:
    frames = produce_requests(*[NOBODY] * 3)
    plan = plan_of([(each, b"") for each in frames])
    plan.causes.append(0)
    plan.cause_ends = array("q", [0, 0, 0, 1])
    arrays = StepArrays(plan, bytearray(3), array("q"))
    assert count(write(request_writer(frames[0]), arrays)) == 2
    arrays.is_done[0] = 1
    assert count(write(request_writer(frames[0]), arrays)) == 3


def test_writing_stops_before_a_request_not_yet_due() -> None:
    frames = produce_requests(*[NOBODY] * 3)
    plan = plan_of([(each, b"") for each in frames])
    arrays = StepArrays(plan, bytearray(3), array("q", [0, 5, 9]))
    found = write(request_writer(frames[0]), arrays, now_ns=8)
    assert found is not None
    assert found.rows.requests["lag_ns"].tolist() == [8, 3]


def test_number_of_requests_at_once_is_bounded() -> None:
    frames = produce_requests(*[NOBODY] * (MAX_REQUESTS + 1))
    arrays = arrays_of([(each, b"") for each in frames])
    assert count(write(request_writer(frames[0]), arrays)) == MAX_REQUESTS


def test_correlation_ids_wrap_around() -> None:
    frames = produce_requests(*[NOBODY] * 2)
    arrays = arrays_of([(each, b"") for each in frames])
    found = write(request_writer(frames[0]), arrays, correlation_id=LAST_CORRELATION_ID)
    assert found is not None
    half = len(found.data) // 2
    ids = [int.from_bytes(data[8:12], "big") for data in (found.data, found.data[half:])]
    assert ids == [LAST_CORRELATION_ID, 1]
