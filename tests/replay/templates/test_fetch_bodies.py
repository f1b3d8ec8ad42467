"""Fetch responses with known bytes have the bodies that decoding gives, with heads of their own."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.client.pending_request import codecs_of
from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.protocol.apis import KEYS
from replay.templates import fetch_bodies
from replay.templates.fetch_bodies import FetchBodies
from tests.replay.support.builders import uuid
from tests.replay.support.outcomes import outcome

FETCH = KEYS["Fetch"]


def captured(version: int, records: bytes = b"records", **head: int) -> CapturedExchange:
    """A Fetch whose response has one partition."""
    title = {"topic": "t"} if version < 13 else {"topic_id": uuid(1)}
    partition = {"partition_index": 3, "high_watermark": 9, "records": records}
    body = {**head, "responses": [{**title, "partitions": [partition]}]}
    return outcome("Fetch", version, body, None).step.captured


def frame(exchange: CapturedExchange) -> bytes:
    assert exchange.response is not None
    return exchange.response


def decoded(exchange: CapturedExchange) -> Any:
    codecs = codecs_of(FETCH, exchange.api_version)
    return codecs.response.parse(frame(exchange)[4 + codecs.response_header :])


def topics(bodies: FetchBodies, exchange: CapturedExchange) -> Any:
    body = bodies.live(frame(exchange), exchange.api_version)
    assert body is not None
    return body["responses"]


@pytest.mark.parametrize("version", range(4, 19))
def test_bodies_are_as_decoded(version: int) -> None:
    bodies = FetchBodies()
    heads = [{}, {"throttle_time_ms": 5}, {"throttle_time_ms": 70}]
    heads += [{"session_id": 8}, {"error_code": 3, "session_id": -1}] if version >= 7 else []
    for head in heads:
        for records in (b"records", b"others"):
            exchange = captured(version, records, **head)
            assert bodies.live(frame(exchange), version) == decoded(exchange)
            assert bodies.captured(exchange) == decoded(exchange)


def test_responses_of_a_session_share_their_topics_if_these_have_the_same_bytes() -> None:
    bodies = FetchBodies()
    first = topics(bodies, captured(16, session_id=1))
    assert topics(bodies, captured(16, session_id=2)) is first
    body = bodies.captured(captured(16, session_id=3))
    assert body is not None
    assert body["responses"] is first
    assert topics(bodies, captured(16, b"other", session_id=1)) is not first
    assert topics(bodies, captured(15, session_id=1)) is not first


def test_few_and_small_responses_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_bodies, "_MAX_BODIES", 2)
    monkeypatch.setattr(fetch_bodies, "_MAX_BYTES", 500)
    bodies = FetchBodies()
    assert topics(bodies, captured(16, b"r" * 500)) is not topics(bodies, captured(16, b"r" * 500))
    first = topics(bodies, captured(16, b"1"))
    topics(bodies, captured(16, b"2"))
    assert topics(bodies, captured(16, b"1")) is first
    topics(bodies, captured(16, b"3"))
    assert topics(bodies, captured(16, b"1")) is not first


def test_what_is_no_usual_response_has_no_body() -> None:
    exchange, bodies = captured(16), FetchBodies()
    usual = frame(exchange)
    assert bodies.live(usual, 16) is not None
    assert bodies.live(usual[:4] + b"\1" + usual[5:], 16) is None
    assert bodies.live(usual[:-1], 16) is None
    assert bodies.live(usual[:7], 16) is None
    exchange.response = None
    assert bodies.captured(exchange) is None
