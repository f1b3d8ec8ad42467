"""Rules F, part 1: scenes that break and keep each rule."""

from __future__ import annotations

import pytest

from conform.judge import Judge
from conform.report.verdict_text import side_text
from conform.rules import REGISTRY
from dissector import open_capture
from dissector.protocol.apis import api
from dissector.protocol.headers import RequestHeader, ResponseHeader
from tests.conform.scene import Scene, breaks, broken, capture_rules, findings, keeps
from tests.corpus import MADE
from tests.default_frames import body, sized
from tests.dissector.cli.cli_traffic import request_frame, response_frame

METADATA, HEARTBEAT, API_VERSIONS = 3, 12, 18
BROKER = {"node_id": 1, "host": "broker-1.example", "port": 9092}


def _head(key: int, version: int, number: int, header: int) -> bytes:
    return RequestHeader.codec(header).build(
        {
            "request_api_key": key,
            "request_api_version": version,
            "correlation_id": number,
            "client_id": "shop",
        }
    )


def _answer(number: int, header: int, rest: bytes) -> bytes:
    head = ResponseHeader.codec(header).build({"correlation_id": number})
    return sized(head + rest)


def _metadata(version: int) -> bytes:
    """Return the body of a response with one broker."""
    return response_frame(METADATA, version, 0, brokers=[BROKER])[4 + 4 + (version >= 9) :]


@keeps("F01")
@keeps("F02")
@keeps("F07")
@keeps("F08")
@keeps("F10")
@keeps("F11")
def all_in_order() -> Scene:
    scene = Scene()
    connection = scene.connect()
    connection.request(METADATA, 9, 1, topics=None).request(METADATA, 8, 2, topics=None)
    connection.response(METADATA, 9, 1, brokers=[BROKER]).response(METADATA, 8, 2, brokers=[BROKER])
    connection.request(HEARTBEAT, 4, 3, group_id="g", member_id="m").fin()
    return scene


def _proxied(header: bytes) -> Scene:
    scene = Scene()
    connection = scene.connect().client(header)
    for number in (1, 2):
        connection.request(METADATA, 9, number, topics=None).response(METADATA, 9, number)
    connection.fin()
    return scene


PROXY = b"PROXY TCP4 203.0.113.7 10.0.0.2 51234 9092\r\n"


@keeps("F01")
@keeps("F02")
def header_of_a_proxy() -> Scene:
    return _proxied(PROXY)


def test_bytes_before_the_first_frame_may_be_those_of_a_proxy() -> None:
    """A broker would have closed the connection: somebody has accepted them."""
    for header in (PROXY + b"\xff" * 16, b"PROXY UNKNOWN " + b"x" * 100 + b"\r\n"):
        verdict = _proxied(header).judge([REGISTRY["F01"]])
        assert broken(verdict) == []
        reason = "the bytes before the first frame may be those of a proxy or a login"
        assert verdict.tallies["F01"].unjudged == {reason: 1}


def test_a_finding_names_the_client_before_the_proxy() -> None:
    scene = Scene()
    connection = scene.connect().client(PROXY)
    connection.request(METADATA, 9, 1, topics=None).response(METADATA, 9, 1)
    connection.client((0xFFFFFFFE).to_bytes(4, "big") + b"\0" * 16)
    connection.request(METADATA, 9, 2, topics=None).response(METADATA, 9, 2).fin()
    (finding,) = findings(scene.judge([REGISTRY["F01"]]))
    assert (finding.client, finding.origin) == ("10.0.0.1:50001", "203.0.113.7:51234")
    assert side_text(finding) == "client 10.0.0.1:50001 from 203.0.113.7:51234"


@pytest.mark.parametrize("name", ["proxy_v1.pcap", "http_connect.pcap"])
def test_captures_behind_proxies_break_no_rule(name: str) -> None:
    verdict = Judge(capture_rules()).judge_capture(open_capture(MADE / name))
    assert broken(verdict) == []
    reasons = {reason for tally in verdict.tallies.values() for reason in tally.unjudged}
    assert not any("can't be decoded" in reason for reason in reasons)


@breaks("F01")
def size_is_negative() -> Scene:
    scene = Scene()
    connection = scene.connect()
    connection.request(METADATA, 9, 1, topics=None).response(METADATA, 9, 1)
    connection.client((0xFFFFFFFE).to_bytes(4, "big") + b"\0" * 16)
    connection.request(METADATA, 9, 2, topics=None).response(METADATA, 9, 2).fin()
    return scene


def _cut(size: int, broker: bool = False) -> Scene:
    """A response, and then an incomplete frame."""
    connection = Scene().connect().request(METADATA, 9, 1, topics=None).response(METADATA, 9, 1)
    connection.request(METADATA, 8, 2, topics=None)
    if broker:
        frame = response_frame(METADATA, 8, 2, brokers=[BROKER])
        return connection.broker(frame[:-5]).fin().scene
    connection.response(METADATA, 8, 2)
    return (
        connection.client(size.to_bytes(4, "big") + request_frame(METADATA, 8, 3)[4:] + bytes(9))
        .fin()
        .scene
    )


@breaks("F01")
def size_above_the_limit_of_brokers() -> Scene:
    return _cut(200 << 20)


@breaks("F01")
def size_is_the_largest_number() -> Scene:
    return _cut(2**31 - 1)


@breaks("F01")
def the_last_response_has_no_end() -> Scene:
    return _cut(0, broker=True)


@breaks("F02")
def byte_is_left_over() -> Scene:
    scene = Scene()
    connection = scene.connect().request(HEARTBEAT, 4, 1, group_id="g", member_id="m")
    connection.broker(sized(response_frame(HEARTBEAT, 4, 1)[4:] + b"\7"))
    return scene


@breaks("F02", "E10")
def length_is_beyond_the_frame() -> Scene:
    scene = Scene()
    connection = scene.connect()
    good = request_frame(HEARTBEAT, 4, 1, group_id="g", member_id="m")
    at = good.index(b"\2g")
    connection.client(good[:at] + b"\x7f" + good[at + 1 :]).response(HEARTBEAT, 4, 1)
    return scene


@breaks("F07")
def answers_in_another_version() -> Scene:
    scene = Scene()
    connection = scene.connect().request(METADATA, 9, 1, topics=None)
    connection.broker(_answer(1, 0, _metadata(1)))
    return scene


@breaks("F08")
def request_header_without_tags() -> Scene:
    scene = Scene()
    rest = body(api(METADATA).request, 9, topics=[{"name": "orders"}])
    scene.connect().client(sized(_head(METADATA, 9, 1, 1) + rest)).response(METADATA, 9, 1)
    return scene


@breaks("F09")
def versions_with_tags_in_the_header() -> Scene:
    scene = Scene()
    connection = scene.connect().request(API_VERSIONS, 3, 1, **SOFTWARE)
    rest = response_frame(API_VERSIONS, 3, 1, api_keys=[{"api_key": 18, "max_version": 3}])[8:]
    connection.broker(_answer(1, 1, rest))
    return scene


@keeps("F09")
def versions_without_tags_in_the_header() -> Scene:
    scene = Scene()
    connection = scene.connect().request(API_VERSIONS, 3, 1, **SOFTWARE)
    connection.response(API_VERSIONS, 3, 1, api_keys=[{"api_key": 18, "max_version": 3}])
    return scene


SOFTWARE = {"client_software_name": "test", "client_software_version": "1"}


@breaks("F10")
def response_header_without_tags() -> Scene:
    scene = Scene()
    connection = scene.connect().request(METADATA, 9, 1, topics=None)
    connection.broker(_answer(1, 0, _metadata(9)))
    return scene


@breaks("F11")
def compact_client_id() -> Scene:
    # As an int16 its length is 1395: the request must be longer to be valid otherwise.
    scene = Scene()
    topics = [{"name": f"orders-{number}"} for number in range(200)]
    rest = body(api(METADATA).request, 9, topics=topics)
    head = _head(METADATA, 9, 1, 2)[:8] + b"\5shop\0"
    connection = scene.connect().request(METADATA, 9, 0, topics=None).response(METADATA, 9, 0)
    connection.client(sized(head + rest)).response(METADATA, 9, 1)
    return scene


def test_a_finding_has_peer_position_and_text() -> None:
    scene = Scene()
    connection = scene.connect().request(API_VERSIONS, 3, 1, **SOFTWARE)
    connection.response(API_VERSIONS, 3, 1, api_keys=[{"api_key": 18, "max_version": 3}])
    connection.client(
        sized(request_frame(HEARTBEAT, 4, 2, group_id="g", member_id="m")[4:] + b"\7")
    )
    finding = next(each for each in findings(scene.judge()) if each.rule.id == "F02")
    assert (finding.side, finding.software) == ("client", "test 1")
    assert (finding.connection, finding.packet, finding.correlation_id) == (0, 8, 2)
    assert (finding.api, finding.version, finding.message) == ("Heartbeat", 4, "request")
    assert finding.found == "bytes left over after the body: 1"
