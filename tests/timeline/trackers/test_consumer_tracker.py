"""Consumers: sessions, offsets out of range, moved leaders."""

from __future__ import annotations

import pytest

from tests.conform.fetch_scenes import SESSION, fetch_request, fetch_response
from tests.conform.produce_scenes import RECORDS, batch
from tests.conform.scene import Scene
from tests.timeline.events_of import corpus_events, events_of, only

OFFSET_OUT_OF_RANGE, FETCH_SESSION_ID_NOT_FOUND = 1, 70


def test_an_offset_out_of_range_is_reset() -> None:
    (event,) = only(corpus_events("kafka4-errors.pcap", "consumer"), "offset reset")
    assert event.cause == "OFFSET_OUT_OF_RANGE"
    assert event.text.startswith("kafka4-errors.orders 0: offset 1000000 is out of range; went on")
    assert event.certain


def test_a_leader_that_moves() -> None:
    events = corpus_events("kafka4-leader-change.pcap", "consumer")
    (event,) = only(events, "leader changed")
    assert event.cause == "FENCED_LEADER_EPOCH"
    assert "went on at 127.0.0.1:31793 after 1.45 s" in event.text


def test_fetch_sessions() -> None:
    events = only(corpus_events("kafka44-java-clients.pcap", "consumer"), "fetch session")
    assert events
    assert all(each.text.startswith("session ") for each in events)


def test_followers_are_no_consumers() -> None:
    assert not [
        each
        for each in corpus_events("kafka4-three-nodes.pcap", "consumer")
        if "fetcher" in each.subject
    ]


def test_an_offset_out_of_range_without_a_reset_is_reported_at_the_end() -> None:
    scene = Scene()
    connection = scene.connect()
    fetch_request(connection, 1, {0: 500})
    fetch_response(connection, 1, {0: {"error_code": OFFSET_OUT_OF_RANGE}})
    (event,) = only(events_of(scene, "consumer"), "offset out of range")
    assert event.cause == "OFFSET_OUT_OF_RANGE"
    assert event.text.startswith("orders 0: offset 500 is out of range, no other offset")


def test_a_session_dropped_by_the_broker() -> None:
    scene = Scene()
    connection = scene.connect()
    fetch_request(connection, 1, {}, session=(SESSION, 4))
    fetch_response(connection, 1, {}, error_code=FETCH_SESSION_ID_NOT_FOUND)
    (event,) = only(events_of(scene, "consumer"), "fetch session lost")
    assert event.cause == "FETCH_SESSION_ID_NOT_FOUND"
    assert event.text.startswith(f"session {SESSION} at 10.0.0.2:9092")


@pytest.mark.parametrize("version", [6, 11, 13])
def test_fetches_by_the_hour(version: int) -> None:
    scene = Scene()
    connection = scene.connect()
    data = batch(RECORDS, base_offset=10).to_bytes()
    empty_ms = 400
    for number, records in enumerate((data, b"", b"")):
        fetch_request(connection, number, {0: 10}, version=version)
        if not records:
            scene.wait_ms(empty_ms)
        fetch_response(connection, number, {0: {"records": records}}, version=version)
    scene.wait_ms(3_600_000)
    fetch_request(connection, 9, {0: 12}, version=version)
    fetch_response(connection, 9, {0: {}}, version=version)
    hour, rest = only(events_of(scene, "consumer"), "fetches")
    assert (hour.certain, rest.certain) == (True, False)
    assert hour.text.startswith("3 fetches in 8")
    assert "ms, 2 without records, which waited 80" in hour.text
    assert f"fetch position at most {100 - 10 - len(RECORDS)} records behind (" in hour.text
    assert rest.text.startswith("1 fetch in")
    assert {each.api for each in hour.evidence} == {"Fetch"}
