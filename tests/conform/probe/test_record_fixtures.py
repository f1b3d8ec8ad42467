"""Records produced and fetched by probes."""

from __future__ import annotations

from typing import Any

from conform.probe.probe_fixtures import NO_ID, Topic
from conform.probe.raw_exchange import encode_request
from conform.probe.record_fixtures import (
    encode_batch,
    encode_one_record,
    fetch_fields,
    fetched_batches,
    fetched_values,
    produce_fields,
)
from dissector.protocol.messages import decode_request
from dissector.protocol.records import parse_records
from tests.dissector.cli.cli_traffic import response_frame

TOPIC = Topic("t", NO_ID, 1)


def test_batches_are_valid() -> None:
    (found,) = parse_records(encode_batch(b"a", b"b", codec="gzip", producer_id=7, base_sequence=3))
    assert found.problems == []
    assert [each.value for each in found.records] == [b"a", b"b"]


def test_old_formats() -> None:
    for magic in (0, 1, 2):
        (found,) = parse_records(encode_one_record(b"a", magic))
        assert (found.magic, found.problems) == (magic, [])


def test_requests_fit_every_version() -> None:
    for name, fields, versions in (
        ("Produce", produce_fields(TOPIC, encode_batch(b"a")), range(14)),
        ("Fetch", fetch_fields(TOPIC, 5, current_leader_epoch=3, max_bytes=1), range(19)),
    ):
        for version in versions:
            message = decode_request(encode_request(name, version, fields, 1).request)
            assert message.problems == []


def test_options_set_their_fields() -> None:
    fields: dict[str, Any] = fetch_fields(TOPIC, 5, partition_max_bytes=1, max_bytes=2)
    assert fields["max_bytes"] == 2
    assert fields["topics"][0]["partitions"][0]["partition_max_bytes"] == 1


def test_fetched_batches_and_values() -> None:
    exchange = encode_request("Fetch", 4, fetch_fields(TOPIC, 0), 1)
    partitions = [{"partition_index": 0, "records": encode_batch(b"a", b"b", base_offset=5)}]
    exchange.set_response(
        response_frame(1, 4, 1, responses=[{"topic": "t", "partitions": partitions}])[4:]
    )
    assert len(fetched_batches(exchange)) == 1
    assert fetched_values(exchange) == [(5, b"a"), (6, b"b")]
