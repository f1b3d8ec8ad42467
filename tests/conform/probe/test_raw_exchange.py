"""Requests as bytes, and fields of their responses."""

from __future__ import annotations

from conform.probe.raw_exchange import encode_request
from dissector.protocol.messages import decode_request
from tests.dissector.cli.cli_traffic import response_frame


def test_a_request_is_encoded() -> None:
    exchange = encode_request("Metadata", 9, {"topics": []}, 7, client_id=None)
    message = decode_request(exchange.request)
    assert (message.api, message.api_version, message.correlation_id) == ("Metadata", 9, 7)
    assert message.client_id is None
    assert message.problems == []
    assert str(exchange) == "Metadata v9"


def test_requests_in_unknown_versions_have_bytes_as_body() -> None:
    exchange = encode_request("ApiVersions", 99, {}, 7, body=b"\0")
    assert exchange.request.endswith(b"\0")
    assert decode_request(exchange.request).api_version == 99


def test_fields_of_responses_are_found_by_path() -> None:
    exchange = encode_request("Metadata", 9, {"topics": []}, 7)
    assert exchange.field("topics[0].name", "nothing") == "nothing"
    exchange.set_response(
        response_frame(3, 9, 7, topics=[{"name": "a", "partitions": [{"leader_id": 4}]}])[4:]
    )
    assert exchange.field("topics[0].partitions[0].leader_id") == 4
    assert exchange.field("topics[1].name") is None
    assert exchange.field("topics[0].no.such", -1) == -1
