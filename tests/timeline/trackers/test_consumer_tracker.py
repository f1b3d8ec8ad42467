"""Consumers: sessions, offsets out of range, leaders that move."""

from __future__ import annotations

from tests.timeline.events_of import corpus_events, only


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
