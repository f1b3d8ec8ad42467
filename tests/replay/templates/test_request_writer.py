"""Requests of any size are written with the producer ids of the target."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dissector.protocol.messages import decode_request
from dissector.protocol.records import parse_records
from replay.mapping.producer_ids import ProducerMap
from replay.templates import request_writer as writer_module
from replay.templates.request_writer import WrittenRequests
from tests.kernel_modes import MODES, running
from tests.replay.support.produce_messages import arrays_of
from tests.replay.support.request_writers import (
    NOBODY,
    count,
    produce_requests,
    request,
    request_writer,
    write,
)


@pytest.fixture(scope="module", params=MODES, autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    with running(request.param, writer_module):
        yield


def test_a_large_request_is_written_alone() -> None:
    frames = produce_requests(NOBODY, NOBODY, value=b"v" * (1 << 16))
    arrays = arrays_of([(each, b"") for each in frames])
    found = write(request_writer(frames[0]), arrays)
    assert count(found) == 1
    assert found is not None
    assert found.data[12:] == frames[0][8:]


def producers_of(found: WrittenRequests | None) -> list[tuple[int, int, int]]:
    assert found is not None
    out, data = [], found.data
    while data:
        end = 4 + int.from_bytes(data[:4], "big")
        body = decode_request(data[4:end]).body
        assert body is not None
        (batch,) = parse_records(body.topic_data[0].partition_data[0].records)
        assert batch.crc_ok
        out.append((batch.producer_id, batch.producer_epoch, batch.base_sequence))
        data = data[end:]
    return out


def test_alternating_producers_have_their_own_ids() -> None:
    known = ProducerMap()
    known.learn((4, 2), (9, 0))
    known.learn((5, 0), (8, 1))
    frames = produce_requests((4, 2, 100), (4, 2, 101), (5, 0, 7), (4, 2, 2**31 - 1), (4, 3, 0))
    made, arrays = request_writer(frames[0]), arrays_of([(each, b"") for each in frames])
    assert producers_of(write(made, arrays, known=known)) == [(9, 0, 0), (9, 0, 1)]
    assert producers_of(write(made, arrays, 2, known=known)) == [(8, 1, 0)]
    assert producers_of(write(made, arrays, 3, known=known)) == [(9, 0, 2**31 - 101)]
    assert producers_of(write(made, arrays, 4, known=known)) == [(9, 1, 0)]
    known.learn((4, 2), (6, 6))
    assert producers_of(write(made, arrays, 0, known=known))[0] == (6, 6, 0)


@pytest.mark.parametrize("size", [0, 700, 800, 5000])
def test_crcs_are_valid_in_batches_of_any_size(size: int) -> None:
    known = ProducerMap()
    known.learn((4, 2), (9, 0))
    frames = produce_requests((4, 2, 100), (4, 2, 101), value=b"v" * size)
    arrays = arrays_of([(each, b"") for each in frames])
    assert producers_of(write(request_writer(frames[0]), arrays, known=known)) == [
        (9, 0, 0),
        (9, 0, 1),
    ]


def test_a_producer_without_sequences_gets_none() -> None:
    known = ProducerMap()
    known.learn((4, 2), (9, 0))
    frames = produce_requests((4, 2, -1), (4, 2, 5))
    made, arrays = request_writer(frames[0]), arrays_of([(each, b"") for each in frames])
    assert producers_of(write(made, arrays, known=known)) == [(9, 0, -1)]
    assert producers_of(write(made, arrays, 1, known=known)) == [(9, 0, 0)]


def test_requests_left_to_the_general_encoder() -> None:
    known = ProducerMap()
    frames = produce_requests((4, 2, 100))
    arrays = arrays_of([(frames[0], b"")])
    assert write(request_writer(frames[0]), arrays, known=known) is None
    known.learn((4, 2), (9, 2))
    assert write(request_writer(frames[0], frozenset({"producer_id"})), arrays, known=known) is None
    assert count(write(request_writer(frames[0]), arrays, known=known)) == 1
    known.learn((4, 2), (9, 1 << 15))
    assert write(request_writer(frames[0]), arrays, known=known) is None


def test_a_truncated_batch_header_is_left_to_the_general_encoder() -> None:
    frame = produce_requests(NOBODY)[0]
    literals = request(frame).literals
    short = frame[:8] + literals[0] + b"\x3b" + bytes(58) + literals[-1]
    arrays = arrays_of([(short, b"")])
    assert write(request_writer(frame), arrays) is None
