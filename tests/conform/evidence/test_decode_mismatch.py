"""Reasons for undecodable messages."""

from __future__ import annotations

from conform.evidence.decode_mismatch import decode_mismatch_of
from dissector.protocol.messages import decode_request, decode_response
from tests.dissector.cli.cli_traffic import request_frame, response_frame

METADATA, HEARTBEAT = 3, 12


def test_a_decodable_message_is_no_mismatch() -> None:
    assert (
        decode_mismatch_of(decode_request(request_frame(HEARTBEAT, 4, 1, group_id="g")[4:])) is None
    )
    assert (
        decode_mismatch_of(decode_response(response_frame(HEARTBEAT, 4, 1)[4:], HEARTBEAT, 4))
        is None
    )


def test_unknown_apis_are_no_mismatch() -> None:
    frame = request_frame(HEARTBEAT, 4, 1, group_id="g")[4:]
    assert decode_mismatch_of(decode_request(b"\x7f\x00" + frame[2:])) is None
    assert (
        decode_mismatch_of(decode_response(response_frame(HEARTBEAT, 4, 1)[4:], None, None)) is None
    )


def test_bytes_left_over_are_tolerated() -> None:
    found = decode_mismatch_of(
        decode_response(response_frame(HEARTBEAT, 4, 1)[4:] + b"\1", HEARTBEAT, 4)
    )
    assert found is not None
    assert (found.rule, found.is_tolerated) == ("F02", True)


def test_a_mismatch_names_its_field() -> None:
    frame = request_frame(HEARTBEAT, 4, 1, group_id="g")[4:]
    at = frame.index(b"\2g")
    found = decode_mismatch_of(decode_request(frame[:at] + b"\x7f" + frame[at + 1 :]))
    assert found is not None
    assert (found.rule, found.path, found.is_tolerated) == ("F02", "group_id", False)


def test_a_mismatch_suggests_the_nearest_fitting_version() -> None:
    brokers = [{"node_id": 1, "host": "broker-1.example", "port": 9092}]
    found = decode_mismatch_of(
        decode_response(response_frame(METADATA, 8, 1, brokers=brokers)[4:], METADATA, 9)
    )
    assert found is not None
    assert found.rule == "F07"
    assert found.found == "the body has version 8 instead of 9"


def test_small_bodies_prove_nothing() -> None:
    # Three bytes fit many versions by chance.
    found = decode_mismatch_of(
        decode_response(response_frame(HEARTBEAT, 0, 1)[4:] + b"\1", HEARTBEAT, 4)
    )
    assert found is not None
    assert found.rule == "F02"
