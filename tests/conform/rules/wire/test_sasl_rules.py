"""Rules V06 and S: scenes that break and keep each rule."""

from __future__ import annotations

from tests.conform.scene import Scene, SceneConnection, breaks, broken, findings, keeps
from tests.default_frames import sized
from tests.dissector.cli.cli_traffic import request_frame

METADATA, HANDSHAKE, AUTHENTICATE = 3, 17, 36
PLAIN = b"\0alice\0made-up"


def _handshake(version: int = 1) -> SceneConnection:
    connection = Scene().connect().request(HANDSHAKE, version, 1, mechanism="PLAIN")
    return connection.response(HANDSHAKE, version, 1, mechanisms=["PLAIN"])


def _authenticated(lifetime_ms: int = 0) -> SceneConnection:
    connection = _handshake().request(AUTHENTICATE, 2, 2, auth_bytes=PLAIN)
    return connection.response(AUTHENTICATE, 2, 2, session_lifetime_ms=lifetime_ms)


def _metadata(connection: SceneConnection, number: int = 3) -> SceneConnection:
    return connection.request(METADATA, 9, number, topics=None).response(METADATA, 9, number)


@keeps("S01")
@keeps("S03")
@keeps("S04")
@keeps("V06")
def logs_in() -> Scene:
    connection = _handshake()
    connection.request(HANDSHAKE, 1, 7, mechanism="PLAIN").response(
        HANDSHAKE, 1, 7, mechanisms=["PLAIN"]
    )
    connection.request(AUTHENTICATE, 2, 2, auth_bytes=PLAIN).response(AUTHENTICATE, 2, 2)
    return _metadata(connection).scene


@keeps("S01")
def logs_in_with_raw_tokens() -> Scene:
    return _metadata(_handshake(0).client(sized(PLAIN)).broker(sized(b""))).scene


def _too_early() -> SceneConnection:
    return _metadata(_handshake())


@breaks("V06")
def asks_before_the_login() -> Scene:
    return _too_early().scene


def test_a_broker_may_respond_with_an_error_but_not_continue() -> None:
    once, twice = asks_before_the_login(), _metadata(_too_early(), 4).scene
    assert [each.side for each in findings(once.judge()) if each.rule.id == "V06"] == ["client"]
    sides = [each.side for each in findings(twice.judge()) if each.rule.id == "V06"]
    assert sorted(sides) == ["broker", "client", "client"]


@breaks("S01")
def wraps_tokens_after_version_0() -> Scene:
    connection = _handshake(0).request(AUTHENTICATE, 2, 2, auth_bytes=PLAIN)
    return connection.response(AUTHENTICATE, 2, 2, error_code=34, auth_bytes=b"").scene


@breaks("S02")
def stays_too_long() -> Scene:
    connection = _authenticated(lifetime_ms=60_000)
    connection.scene.wait_ms(70_000)
    return _metadata(connection).scene


@keeps("S02")
def logs_in_again() -> Scene:
    connection = _authenticated(lifetime_ms=60_000)
    connection.scene.wait_ms(50_000)
    connection.request(AUTHENTICATE, 2, 4, auth_bytes=PLAIN)
    connection.response(AUTHENTICATE, 2, 4, session_lifetime_ms=60_000)
    connection.scene.wait_ms(50_000)
    return _metadata(connection, 5).scene


def test_an_incomplete_login_is_not_judged() -> None:
    scene = asks_before_the_login()
    scene.lose(1)
    verdict = scene.judge()
    assert broken(verdict) == []
    assert verdict.tallies["V06"].unjudged


def test_findings_hold_no_secrets() -> None:
    spoilt = request_frame(AUTHENTICATE, 2, 2, auth_bytes=PLAIN)[4:] + b"\7"
    verdict = _handshake().client(sized(spoilt)).scene.judge()
    assert broken(verdict) == ["F02"]
    assert not any("made-up" in each.found for each in findings(verdict))


@breaks("S03")
def authenticates_without_handshake() -> Scene:
    connection = Scene().connect().request(AUTHENTICATE, 2, 2, auth_bytes=PLAIN)
    return connection.response(AUTHENTICATE, 2, 2).scene


@breaks("S04")
def accepts_an_unlisted_mechanism() -> Scene:
    connection = Scene().connect().request(HANDSHAKE, 1, 1, mechanism="PLAIN")
    return connection.response(HANDSHAKE, 1, 1, mechanisms=["SCRAM-SHA-256"]).scene


@breaks("S04")
def refuses_a_listed_mechanism() -> Scene:
    connection = Scene().connect().request(HANDSHAKE, 1, 1, mechanism="PLAIN")
    return connection.response(HANDSHAKE, 1, 1, error_code=33, mechanisms=["PLAIN"]).scene
