"""Connections: software, logins, requests without a response, storms."""

from __future__ import annotations

from pathlib import Path

from dissector import open_capture
from tests import tcp_captures
from tests.conform.scene import Scene
from tests.timeline.events_of import brief, corpus_events, events_of, only
from timeline.public import timeline

API_VERSIONS, METADATA, PRODUCE, FETCH = 18, 3, 0, 1
SECRET = "secret-for-tests"


def test_logins_and_their_failures_without_secrets() -> None:
    events = corpus_events("kafka4-librdkafka-sasl.pcap", "connection")
    logins = [each for each in events if each.event == "logged in"]
    assert {each.text.split()[0] for each in logins} == {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}
    failures = only(events, "login failed")
    assert {each.cause for each in failures} == {"SASL_AUTHENTICATION_FAILED", "client"}
    assert not any(SECRET in each.text for each in events)


def test_the_software_of_a_client() -> None:
    first = corpus_events("kafka4-throttled.pcap", "connection")[0]
    assert first.event == "connected"
    assert first.text.startswith("connection 0, apache-kafka-java 4.3.1: the broker offers 75 APIs")


def test_versions_refused_by_the_broker() -> None:
    events = corpus_events("kafka4-sweep-too-new.pcap", "connection")
    assert ("versions refused", "UNSUPPORTED_VERSION", True) in brief(events)


def test_a_connection_closed_before_the_response() -> None:
    scene = Scene()
    scene.connect().request(METADATA, 9, 1, topics=None).fin()
    (event,) = events_of(scene, "connection")
    assert (event.event, event.cause, event.certain) == ("unanswered", "fin", False)
    assert "ended before the answer to Metadata" in event.text


def test_a_request_over_the_limit_of_the_broker(tmp_path: Path) -> None:
    scene = Scene()
    connection = scene.connect()
    connection.request(METADATA, 9, 1, topics=None).response(METADATA, 9, 1)
    size = (104_857_601).to_bytes(4, "big")
    header = bytes.fromhex("0003000900000002000161 00".replace(" ", ""))
    connection.client(size + header + bytes(500))
    connection.rst(1)
    path = tcp_captures.write(tmp_path / "scene.pcap", scene.wire.packets)
    capture = open_capture(path, max_frame_bytes=200_000_000)
    (event,) = timeline(capture, kinds=["connection"])
    assert (event.event, event.cause) == ("broken off", "request too large")


def test_a_storm() -> None:
    scene = Scene()
    for _ in range(12):
        connection = scene.connect()
        connection.request(API_VERSIONS, 2, 1).response(API_VERSIONS, 2, 1)
        connection.fin()
        scene.wait_ms(100)
    (event,) = only(events_of(scene, "connection"), "reconnect storm")
    assert event.text.startswith("12 connections in 1.")


def test_slow_connections_are_no_storm() -> None:
    scene = Scene()
    for _ in range(12):
        connection = scene.connect()
        connection.request(API_VERSIONS, 2, 1).response(API_VERSIONS, 2, 1)
        scene.wait_ms(3000)
    assert not only(events_of(scene, "connection"), "reconnect storm")


def test_the_side_that_closed_first() -> None:
    scene = Scene()
    scene.connect().request(METADATA, 9, 1, topics=None).fin()
    (event,) = events_of(scene, "connection")
    assert event.text.endswith("; the client closed it first")


def test_a_reset_by_the_broker() -> None:
    scene = Scene()
    scene.connect().request(METADATA, 9, 1, topics=None).rst(1)
    (event,) = events_of(scene, "connection")
    assert event.text.endswith("; the broker closed or reset it first")


def test_a_version_that_the_broker_lacks() -> None:
    """A legacy client sends Produce v2 to a broker that answers 3 to 13, as another client saw."""
    scene = Scene()
    asks = scene.connect()
    offered = [
        {"api_key": PRODUCE, "max_version": 13},  # 4.x refuses v0 to v2, which it offers
        {"api_key": FETCH, "min_version": 4, "max_version": 18},
    ]
    asks.request(API_VERSIONS, 3, 1).response(API_VERSIONS, 3, 1, api_keys=offered)
    for version, closer in ((2, 1), (9, 1), (2, 0)):
        connection = scene.connect()
        connection.request(PRODUCE, version, 1, acks=1, topic_data=[])
        connection.rst(closer)
    events = only(events_of(scene, "connection"), "unanswered")
    found = {each.cause: each for each in events}
    assert set(found) == {"unsupported version", "rst"}
    refused = found["unsupported version"]
    assert (refused.count, refused.certain) == (1, True)
    assert "Produce v2 is the cause: the broker offers v3-13 of it only" in refused.text
