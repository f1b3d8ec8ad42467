"""A request template writes the same bytes as the general encoder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.client.pending_request import codecs_of as written_as
from cluster.conversion.resource_names import NameMap
from cluster.fields.batch_rewriter import PRODUCER_ROLES
from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.protocol.messages import decode_request, decode_response
from replay.mapping.id_map import IdMap
from replay.mapping.request_rewriter import Rewritten, rewrite
from replay.model.outcome import Outcome, RequestPart
from replay.model.step import Step
from replay.plan.request_shapes import shape_of
from replay.templates import request_writer as writer_module
from replay.templates import response_matcher as match_module
from replay.templates.template import RequestTemplate, template_of
from tests.default_frames import sized
from tests.kernel_modes import MODES, running
from tests.replay.support.builders import topology, uuid
from tests.replay.support.produce_messages import (
    ID_OF,
    PRODUCE,
    Written,
    arrays_of,
    produce_request,
    produce_response,
)

HEADER = b"\0\x03own"
NO_TIME = {"log_append_time_ms": -1}


@pytest.fixture(scope="module", params=MODES, autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    how = request.param
    with running(how, writer_module, match_module):
        yield


def id_map(names: NameMap) -> IdMap:
    known = IdMap(topology({name: number for name, number in ID_OF.items() if number > 10}), names)
    known.captured_topics.learn({uuid(ID_OF[name]): name for name in ("orders", "audit")})
    known.producers.learn((4, 2), (9, 0))
    return known


def header(version: int) -> bytes:
    return HEADER + b"\0" * (version >= 9)


def general(frame: bytes, version: int, known: IdMap) -> tuple[Rewritten, bytes]:
    out = rewrite(decode_request(frame), version, known)
    assert not out.refusal
    return out, header(version) + written_as(PRODUCE, version).request.build(out.body)


def made_template(
    frame: bytes, answer: bytes, version: int, known: IdMap, live: bytes
) -> RequestTemplate | None:
    decoded_request, decoded_response = (
        decode_request(frame),
        decode_response(answer, PRODUCE, version),
    )
    shape = shape_of(decoded_request, decoded_response)
    assert shape is not None
    out, _ = general(frame, version, known)
    captured = CapturedExchange(
        0, "c", "b", PRODUCE, version, 0, "tester", frame, answer, True, 0, 0
    )
    parts = [RequestPart(1, version, out.body)]
    outcome = Outcome(Step(0, captured), parts=parts, version=version, changes=out.changes)
    return template_of(0, shape, outcome, header(version), live, 3, known)


places = st.lists(
    st.tuples(st.sampled_from(["orders", "audit"]), st.integers(0, 1)),
    min_size=1,
    max_size=3,
    unique=True,
)
producers = st.tuples(st.just(4), st.just(2), st.integers(0, 2**31 - 1))


@given(data=st.data(), version=st.integers(3, 13), at=places)
def test_templates_write_the_bytes_of_the_general_encoder(
    data: st.DataObject, version: int, at: list[tuple[str, int]]
) -> None:
    names = data.draw(
        st.sampled_from([NameMap(prefix="p-"), NameMap({"orders": "p-orders"}, "p-")])
    )
    known, more = id_map(names), data.draw(st.sampled_from([{}, {"transactional_id": "t"}]))

    def drawn() -> list[Written]:
        return [
            Written(
                *place,
                data.draw(st.lists(st.binary(max_size=200), min_size=1, max_size=3)),
                data.draw(st.just((-1, -1, -1)) | producers),
                data.draw(st.sampled_from(["none", "gzip"])),
            )
            for place in at
        ]

    captured = produce_response(version, [(*place, 5) for place in at])
    live = produce_response(version, [("p-" + topic, number, 8) for topic, number in at])
    made = made_template(produce_request(version, drawn(), **more), captured, version, known, live)
    assert made is not None
    assert made.transactional_id == ("p-t" if more else "")
    written = [drawn() for _ in range(3)]
    frames = [produce_request(version, each, number, **more) for number, each in enumerate(written)]
    arrays = arrays_of([(frame, captured) for frame in frames])
    first = 0
    while first < 3:
        expected = [general(frame, version, known) for frame in frames[first:]]
        steps = np.arange(3, dtype=np.int32)
        found = made.writer.write(arrays, steps, first, 7, 0, known.producers)
        if found is None:
            roles = {change.role for change in expected[0][0].changes} & set(PRODUCER_ROLES)
            assert roles - made.replaced
            first += 1
            continue
        data = b""
        for number, batches in enumerate(found.rows.batches_by_request()):
            out, body = expected[number]
            head = frames[first + number][:4] + (7 + number).to_bytes(4, "big")
            data += sized(head + body)
            each = written[first + number]
            assert batches["record_count"].tolist() == [len(one.values) for one in each]
            changes = Counter((change.role, change.why) for change in out.changes)
            assert made.changes + replaced_by(batches["replaced_roles"].tolist()) == changes
        assert found.data == data
        first += len(found.rows)


def replaced_by(roles: list[int]) -> Counter[tuple[str, str]]:
    return Counter(
        (role, "")
        for changed in roles
        for at, role in enumerate(PRODUCER_ROLES)
        if changed >> at & 1
    )


def test_templates_hold_broker_and_response_layout() -> None:
    request, captured = (
        produce_request(9, [Written("orders", 1)]),
        produce_response(9, [("orders", 1, 0)]),
    )
    known = id_map(NameMap(prefix="p-"))
    made = made_template(request, captured, 9, known, produce_response(9, [("p-orders", 1, 40)]))
    assert made is not None
    assert (made.node, made.cluster_revision, made.version, made.patience_s) == (1, 3, 9, 0.1)
    answer = sized(produce_response(9, [("p-orders", 1, 50)]))
    arrays = arrays_of([(request, captured)])
    written = made.writer.write(arrays, np.zeros(1, np.int32), 0, 0, 0, known.producers)
    assert written is not None
    taken = made.matcher.match(arrays, answer, 0, 0, written.rows, 0, 1)
    assert taken == (1, len(answer))
    assert known.offsets.live("orders", 1, 0) == (50, "translated")


def test_exchanges_unfit_for_a_template() -> None:
    request, captured = (
        produce_request(13, [Written("orders", 1)]),
        produce_response(13, [("orders", 1, 0)]),
    )
    known = id_map(NameMap(prefix="p-"))
    assert (
        made_template(request, captured, 13, known, produce_response(13, [("p-orders", 1, 0)]))
        is not None
    )
    refused = produce_response(13, [("p-orders", 1, 0)], error_code=3)
    assert made_template(request, captured, 13, known, refused) is None
    throttled = produce_response(13, [("p-orders", 1, 0)], throttle_time_ms=3)
    assert made_template(request, captured, 13, known, throttled) is None


@pytest.mark.parametrize("version", [9, 13])
def test_responses_may_have_another_order_of_partitions(version: int) -> None:
    at = [("orders", 1), ("audit", 0)]
    request = produce_request(version, [Written(*place, [b"v"] * 2) for place in at])
    captured = produce_response(version, [("orders", 1, 10), ("audit", 0, 20)])
    known = id_map(NameMap(prefix="p-"))
    known.live_topics.learn({uuid(ID_OF[name]): name for name in ("p-orders", "p-audit")})
    turned = [("p-audit", 0, 60), ("p-orders", 1, 50)]
    made = made_template(request, captured, version, known, produce_response(version, turned))
    assert made is not None
    arrays = arrays_of([(request, captured)])
    written = made.writer.write(arrays, np.zeros(1, np.int32), 0, 0, 0, known.producers)
    assert written is not None
    answer = sized(produce_response(version, [("p-audit", 0, 65), ("p-orders", 1, 55)]))
    assert made.matcher.match(arrays, answer, 0, 0, written.rows, 0, 1) == (1, len(answer))
    for (topic, partition), before, now in zip(at, (10, 20), (55, 65), strict=True):
        assert known.offsets.live(topic, partition, before) == (now, "translated")


def test_a_response_with_an_unexpected_time_is_not_matched() -> None:
    request, captured = (
        produce_request(9, [Written("orders", 1)]),
        produce_response(9, [("orders", 1, 0)], **NO_TIME),
    )
    known = id_map(NameMap(prefix="p-"))
    made = made_template(
        request, captured, 9, known, produce_response(9, [("p-orders", 1, 40)], **NO_TIME)
    )
    assert made is not None
    for more, taken in ((NO_TIME, 1), ({"log_append_time_ms": 5}, 0)):
        answer = sized(produce_response(9, [("p-orders", 1, 50)], **more))
        arrays = arrays_of([(request, captured)])
        written = made.writer.write(arrays, np.zeros(1, np.int32), 0, 0, 0, known.producers)
        assert written is not None
        assert made.matcher.match(arrays, answer, 0, 0, written.rows, 0, 1)[0] == taken
