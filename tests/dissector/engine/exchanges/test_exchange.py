"""One exchange as an object."""

from __future__ import annotations

import gc
import re
import weakref
from io import BytesIO
from pathlib import Path
from uuid import UUID

from dissector import Capture, Options
from dissector.engine.exchanges.exchange import COLUMNS, TOKEN, Exchange
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.tables.exchange_table import ANSWERED, NO_RESPONSE, ORPHAN, UNANSWERED
from tests.default_frames import request, response
from tests.reference.correlation.exchange_rows import (
    ExchangeRow,
    to_exchange_table,
)
from tests.reference.correlation.framer import Frame

HEARTBEAT, METADATA = 12, 3
CAPTURES = Path(__file__).parents[4] / "captures"
UNNAMED = re.compile("[0-9a-f-]{36}$")


def frame(side: int, data: bytes, packet: int, size: int | None = None) -> Frame:
    size = len(data) if size is None else size
    return Frame(side, data, size, packet, packet * 1_500_000, packet * 100)


def exchange(row: ExchangeRow) -> Exchange:
    return Exchange(
        to_exchange_table([row]),
        0,
        capture="a.pcap",
        client="c:1",
        broker="b:2",
        names=TopicNames(),
    )


REQUEST = frame(1, request(HEARTBEAT, 4, 7, "me", group_id="g")[4:], 3)
RESPONSE = frame(0, response(HEARTBEAT, 4, 7, error_code=25)[4:], 5)


def test_answered_exchange() -> None:
    it = exchange(ExchangeRow(2, ANSWERED, 1, REQUEST, RESPONSE))
    assert it.row() == {
        "capture": "a.pcap",
        "connection": 2,
        "client": "c:1",
        "broker": "b:2",
        "origin": None,
        "api_key": 12,
        "api": "Heartbeat",
        "api_version": 4,
        "correlation_id": 7,
        "client_id": "me",
        "status": "answered",
        "request_packet": 4,
        "response_packet": 6,
        "request_time_ns": 4_500_000,
        "response_time_ns": 7_500_000,
        "latency_ms": 3.0,
        "network_ms": None,
        "server_ms": None,
        "request_bytes": len(REQUEST.data),
        "response_bytes": len(RESPONSE.data),
        "errors": ["UNKNOWN_MEMBER_ID"],
        "topics": [],
        "problems": [],
    }
    assert tuple(it.row()) == COLUMNS
    assert (it.request_packet, it.response_packet) == (4, 6)
    assert it.place_of("request") == (300, 1)
    assert it.place_of("response") == (500, 0)
    assert it.body("request") is it.request.body
    assert it.body("response").error_code == 25


def test_unanswered_has_no_response() -> None:
    it = exchange(ExchangeRow(0, UNANSWERED, 1, REQUEST, None))
    assert it.response is None
    assert it.body("response") is None
    assert [it.column(n) for n in ("response_bytes", "latency_ms", "errors")] == [None, None, []]
    assert it.messages == [it.request]


def test_orphan_has_its_correlation_id_only() -> None:
    it = exchange(ExchangeRow(0, ORPHAN, 1, None, RESPONSE, answers_acks_0=True))
    assert (it.api, it.api_key, it.api_version, it.client_id) == (None, None, None, None)
    assert it.correlation_id == 7
    assert it.response.body is None
    assert "acks = 0" in str(it.problems[0])


def test_sasl_tokens_have_no_api() -> None:
    it = exchange(
        ExchangeRow(0, ANSWERED, 1, frame(1, b"\0user\0pass", 1), frame(0, b"", 2), token=True)
    )
    assert (it.api, it.api_key, it.correlation_id, it.client_id) == (TOKEN, None, None, None)
    assert (it.request.frame, it.response.frame) == (b"\0user\0pass", b"")
    assert it.problems == []


def test_truncated_frame_keeps_its_size_and_has_a_problem() -> None:
    it = exchange(
        ExchangeRow(0, NO_RESPONSE, 1, frame(1, REQUEST.data[:14], 1, len(REQUEST.data)), None)
    )
    assert it.request_bytes == len(REQUEST.data)
    assert (it.api, it.client_id) == ("Heartbeat", "me")
    assert "were not captured" in it.column("problems")[0]


def test_topics_of_request_and_response_are_listed_once() -> None:
    request_frame = request(METADATA, 1, 1, topics=[{"name": "b"}, {"name": "a"}])
    topics = [
        {"error_code": code, "name": name, "is_internal": False, "partitions": []}
        for name, code in (("a", 0), ("b", 3), ("c", 3), ("c", 5))
    ]
    response_frame = response(METADATA, 1, 1, topics=topics)
    it = exchange(
        ExchangeRow(0, ANSWERED, 1, frame(1, request_frame[4:], 1), frame(0, response_frame[4:], 2))
    )
    assert it.topics == ["b", "a", "c"]
    assert it.errors == ["UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE"]


def test_retained_exchanges_have_their_own_bytes() -> None:
    other = ExchangeRow(1, UNANSWERED, 1, frame(1, b"\0" * 50, 1), None)
    table = to_exchange_table([other, ExchangeRow(2, ANSWERED, 1, REQUEST, RESPONSE), other])
    it = Exchange(table, 1, capture="a.pcap", client="c:1", broker="b:2", names=TopicNames())
    kept = it.kept()
    assert kept.row() == it.row()
    assert (kept.request.frame, kept.response.frame) == (REQUEST.data, RESPONSE.data)
    lonely = Exchange(table, 2, capture="a.pcap", client="c:1", broker="b:2", names=TopicNames())
    assert lonely.kept().row() == lonely.row()
    window = weakref.ref(table.data), weakref.ref(table.carry_over)
    del table, it, lonely
    gc.collect()
    assert (window[0](), window[1]()) == (None, None)
    assert kept.request.frame == REQUEST.data


def test_a_decoded_exchange_holds_its_window_in_no_cycle() -> None:
    """Windows of a capture would wait for the next search for cycles of references."""

    def decoded_window() -> weakref.ref[object]:
        table = to_exchange_table([ExchangeRow(2, ANSWERED, 1, REQUEST, RESPONSE)])
        it = Exchange(table, 0, capture="a.pcap", client="c:1", broker="b:2", names=TopicNames())
        for message in it.messages:
            message.topic_name(UUID(int=1))
        return weakref.ref(table.data)

    gc.disable()
    try:
        assert decoded_window()() is None
    finally:
        gc.enable()


def test_names_on_standard_input_do_not_depend_on_windows() -> None:
    content = (CAPTURES / "kafka39-three-nodes.pcap").read_bytes()

    def topics(window_bytes: int) -> list[list[str]]:
        options = Options(window_bytes=window_bytes, stdin=BytesIO(content))
        # Rows are requested at the end, when all names are known.
        return [each.topics for each in list(Capture(["-"], options))]

    whole = topics(1 << 20)
    assert any(UNNAMED.match(topic) for each in whole for topic in each)
    assert topics(3000) == whole
