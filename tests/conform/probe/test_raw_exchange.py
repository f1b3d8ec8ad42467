"""What was said, and what came back."""

from __future__ import annotations

from conform.probe.raw_exchange import encode_request
from dissector.protocol.messages import decode_request
from tests.dissector.cli.plays import told


def test_a_request_is_what_it_says() -> None:
    said = encode_request("Metadata", 9, {"topics": []}, 7, client_id=None)
    message = decode_request(said.request)
    assert (message.api, message.api_version, message.correlation_id) == ("Metadata", 9, 7)
    assert message.client_id is None
    assert message.problems == []
    assert str(said) == "Metadata v9"


def test_a_version_that_nobody_knows_takes_bytes() -> None:
    said = encode_request("ApiVersions", 99, {}, 7, body=b"\0")
    assert said.request.endswith(b"\0")
    assert decode_request(said.request).api_version == 99


def test_answers_are_looked_into_by_path() -> None:
    said = encode_request("Metadata", 9, {"topics": []}, 7)
    assert said.field("topics[0].name", "nothing") == "nothing"
    said.set_response(told(3, 9, 7, topics=[{"name": "a", "partitions": [{"leader_id": 4}]}])[4:])
    assert said.field("topics[0].partitions[0].leader_id") == 4
    assert said.field("topics[1].name") is None
    assert said.field("topics[0].no.such", -1) == -1
