"""Logins end with their last round; refusals and denials are events."""

from __future__ import annotations

from pathlib import Path

from dissector import Options
from dissector.engine.reading.capture import Capture
from tests import tcp_captures
from tests.conform.scene import Scene, SceneConnection
from tests.timeline.events_of import corpus_events, events_of, only
from timeline.events.event import Event
from timeline.public import timeline

HANDSHAKE, AUTHENTICATE, METADATA, FIND_COORDINATOR, PRODUCE = 17, 36, 3, 10, 0
TOPIC_DENIED, GROUP_DENIED, CLUSTER_DENIED, TRANSACTIONAL_DENIED = 29, 30, 31, 53
CHALLENGE = b'{"status":"invalid_token"}'


def begin(mechanism: str, scene: Scene | None = None) -> tuple[Scene, SceneConnection]:
    """Return a scene with the handshake of a login."""
    scene = scene or Scene()
    connection = scene.connect()
    connection.request(HANDSHAKE, 1, 1, mechanism=mechanism)
    connection.response(HANDSHAKE, 1, 1, mechanisms=[mechanism])
    return scene, connection


def step(connection: SceneConnection, number: int, token: bytes, answer: bytes) -> None:
    """Add a round without an error."""
    connection.request(AUTHENTICATE, 1, number, auth_bytes=token)
    connection.response(AUTHENTICATE, 1, number, auth_bytes=answer)


def logins(scene: Scene) -> list[tuple[str, str, int]]:
    """Return events of logins: name, cause, and number of exchanges."""
    names = ("logged in", "login failed")
    events = events_of(scene, "connection")
    return [(each.event, each.cause, len(each.evidence)) for each in events if each.event in names]


def test_gssapi_has_several_rounds_and_one_login() -> None:
    scene, connection = begin("GSSAPI")
    step(connection, 2, b"\x60first", b"\x60answer")
    step(connection, 3, b"", b"wrapped")
    step(connection, 4, b"wrapped", b"")
    connection.request(METADATA, 9, 5, topics=None).response(METADATA, 9, 5)
    assert logins(scene) == [("logged in", "", 4)]


def test_gssapi_given_up_by_the_client() -> None:
    scene, connection = begin("GSSAPI")
    step(connection, 2, b"\x60first", b"\x60answer")
    connection.fin()
    assert logins(scene) == [("login failed", "client", 2)]


def test_a_challenge_of_oauthbearer_is_a_refusal() -> None:
    scene, connection = begin("OAUTHBEARER")
    step(connection, 2, b"n,,\x01auth=Bearer x\x01\x01", CHALLENGE)
    connection.request(AUTHENTICATE, 1, 3, auth_bytes=b"\x01")
    connection.response(AUTHENTICATE, 1, 3, error_code=58)
    assert logins(scene) == [("login failed", "SASL_AUTHENTICATION_FAILED", 3)]


def test_a_challenge_of_oauthbearer_after_which_the_client_gives_up() -> None:
    for ends in (True, False):
        scene, connection = begin("OAUTHBEARER")
        step(connection, 2, b"n,,\x01auth=Bearer x\x01\x01", CHALLENGE)
        if ends:
            connection.fin()
        assert logins(scene) == [("login failed", "invalid_token", 2)]


def test_an_unknown_mechanism_is_proved_by_the_next_answered_request() -> None:
    scene, connection = begin("AWS_MSK_IAM")
    step(connection, 2, b"{}", b"{}")
    assert logins(scene) == []
    connection.request(METADATA, 9, 3, topics=None)
    assert logins(scene) == []
    connection.response(METADATA, 9, 3)
    connection.request(METADATA, 9, 4, topics=None).response(METADATA, 9, 4)
    assert logins(scene) == [("logged in", "", 3)]


def test_logins_do_not_depend_on_windows(tmp_path: Path) -> None:
    scene, connection = begin("AWS_MSK_IAM")
    step(connection, 2, b"{}", b"{}")
    connection.request(METADATA, 9, 3, topics=None).response(METADATA, 9, 3)
    path = tcp_captures.write(tmp_path / "a.pcap", scene.wire.packets)
    small = Capture([path], Options(window_bytes=100))
    found = [
        [each.row() for each in timeline(each, kinds=["connection"])] for each in (path, small)
    ]
    assert found[0] == found[1]
    assert [each["event"] for each in found[0]] == ["logged in"]


def test_a_new_login_on_an_open_connection() -> None:
    scene, connection = begin("PLAIN")
    step(connection, 2, b"\0alice\0secret", b"")
    connection.request(HANDSHAKE, 1, 3, mechanism="PLAIN")
    connection.response(HANDSHAKE, 1, 3, mechanisms=["PLAIN"])
    step(connection, 4, b"\0alice\0secret", b"")
    (event,) = only(events_of(scene, "connection"), "logged in")
    assert (event.count, len(event.evidence)) == (2, 4)
    assert "secret" not in event.text


def denied(scene: Scene) -> list[Event]:
    return only(events_of(scene, "connection"), "denied")


def test_denials_name_the_resource_and_the_user() -> None:
    scene, connection = begin("PLAIN")
    step(connection, 2, b"\0alice\0secret", b"")
    topics = [{"name": "locked", "error_code": TOPIC_DENIED}, {"name": "open"}]
    for number in range(3, 6):
        connection.request(METADATA, 9, number, topics=None)
        connection.response(METADATA, 9, number, topics=topics)
    connection.request(FIND_COORDINATOR, 3, 6, key="secret-group")
    connection.response(FIND_COORDINATOR, 3, 6, error_code=GROUP_DENIED)
    found = [(each.cause, each.count, each.text) for each in denied(scene)]
    assert found == [
        ("TOPIC_AUTHORIZATION_FAILED", 3, "Metadata: topic locked denied to User:alice"),
        (
            "GROUP_AUTHORIZATION_FAILED",
            1,
            "FindCoordinator: group secret-group denied to User:alice",
        ),
    ]


def test_denials_of_other_apis() -> None:
    scene = Scene()
    connection = scene.connect()
    partition = {"index": 0, "error_code": TOPIC_DENIED}
    connection.request(PRODUCE, 9, 1, acks=1)
    responses = [{"name": "orders", "partition_responses": [partition]}]
    connection.response(PRODUCE, 9, 1, responses=responses)
    connection.request(22, 4, 2, transactional_id="bank")
    connection.response(22, 4, 2, error_code=TRANSACTIONAL_DENIED)
    connection.request(60, 0, 3)
    connection.response(60, 0, 3, error_code=CLUSTER_DENIED)
    assert [(each.cause.partition("_AUTH")[0], each.text) for each in denied(scene)] == [
        ("TOPIC", "Produce: topic orders denied"),
        ("TRANSACTIONAL_ID", "InitProducerId: transactional id bank denied"),
        ("CLUSTER", "DescribeCluster: cluster denied"),
    ]


def test_denials_of_real_brokers() -> None:
    events = only(corpus_events("kafka4-denied.pcap", "connection"), "denied")
    assert {each.cause for each in events} >= {
        "TOPIC_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
    }
