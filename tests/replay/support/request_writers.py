"""Produce requests of one shape, and their writers."""

from __future__ import annotations

import numpy as np

from cluster.fields.batch_rewriter import PRODUCER_ROLES
from dissector.protocol.messages import decode_request
from replay.mapping.producer_ids import ProducerMap
from replay.plan.request_shapes import RequestShape, request_shape_of
from replay.templates.request_writer import RequestWriter, WrittenRequests
from replay.templates.step_arrays import StepArrays
from tests.replay.support import produce_messages

VERSION = 9
PLACE = ("orders", 1)

NOBODY = (-1, -1, -1)


def produce_requests(*producers: tuple[int, int, int], value: bytes = b"v") -> list[bytes]:
    return [
        produce_messages.produce_request(
            VERSION, [produce_messages.Written(*PLACE, (value,), each)], number
        )
        for number, each in enumerate(producers)
    ]


def request(frame: bytes) -> RequestShape:
    found = request_shape_of(frame, decode_request(frame).body_start)
    assert found is not None
    return found


def request_writer(
    frame: bytes, replaced: frozenset[str] = frozenset(PRODUCER_ROLES)
) -> RequestWriter:
    return RequestWriter(0, request(frame), request(frame), [PLACE], replaced)


def write(
    made: RequestWriter,
    arrays: StepArrays,
    first: int = 0,
    correlation_id: int = 7,
    now_ns: int = 0,
    known: ProducerMap | None = None,
) -> WrittenRequests | None:
    steps = np.arange(len(arrays.positions), dtype=np.int32)
    return made.write(arrays, steps, first, correlation_id, now_ns, known or ProducerMap())


def count(found: WrittenRequests | None) -> int:
    return 0 if found is None else len(found.rows)
