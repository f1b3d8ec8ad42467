"""Record batches inside Produce requests, Fetch and ShareFetch responses."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.protocol.api import Kind
from dissector.protocol.apis import all_apis, api
from dissector.protocol.messages import Message, decode_request, decode_response
from dissector.protocol.records import Record, new_batch, new_message_set
from dissector.protocol.records.batch import with_crc
from dissector.protocol.records.layout import BATCH, MAGIC_AT
from dissector.protocol.records_fields import may_be_cut, record_problems, records_fields
from tests.example_counts import examples

ID = UUID(int=77)
CRC_AT = MAGIC_AT + 1
FIRST = new_batch([Record(key=b"k", value=b"first value", timestamp=1)]).to_bytes()
SECOND = new_batch([Record(value=b"second value", timestamp=2)] * 3, codec="gzip").to_bytes()
OLD = b"".join(m.to_bytes() for m in new_message_set([Record(value=b"old", timestamp=3)], magic=1))


def _body(key: int, kind: Kind, version: int, value: dict[str, Any]) -> bytes:
    found = api(key)
    assert found is not None
    return found.schema(kind).codec(version).build(value)


def produce(version: int, *records: bytes | None) -> Message:
    """Make a Produce request with one topic, and a partition (5, 6, ...) for each field."""
    partitions = [{"index": 5 + at, "records": data} for at, data in enumerate(records)]
    topic = {"name": "orders", "topic_id": ID, "partition_data": partitions}
    value = {"acks": 1, "timeout_ms": 1, "topic_data": [topic]}
    header = b"\0\0" + version.to_bytes(2, "big") + bytes.fromhex("00000007 000163")
    flexible = b"\0" if version >= 9 else b""
    return decode_request(header + flexible + _body(0, "request", version, value))


def fetch(version: int, *records: bytes | None) -> Message:
    partitions = [
        {"partition_index": 5 + at, "error_code": 0, "high_watermark": 9, "records": data}
        | {"last_stable_offset": 9, "aborted_transactions": None}
        for at, data in enumerate(records)
    ]
    topic = {"topic": "orders", "topic_id": ID, "partitions": partitions}
    value = {"throttle_time_ms": 0, "error_code": 0, "session_id": 0, "responses": [topic]}
    flexible = b"\0" if version >= 12 else b""
    return decode_response(
        b"\0\0\0\7" + flexible + _body(1, "response", version, value), 1, version
    )


def share_fetch(version: int, *records: bytes | None) -> Message:
    partitions = [
        {
            "partition_index": 5 + at,
            "error_code": 0,
            "error_message": None,
            "acknowledge_error_code": 0,
            "acknowledge_error_message": None,
            "current_leader": {"leader_id": 1, "leader_epoch": 1},
            "records": data,
            "acquired_records": [],
        }
        for at, data in enumerate(records)
    ]
    value = {
        "throttle_time_ms": 0,
        "error_code": 0,
        "error_message": None,
        "acquisition_lock_timeout_ms": 1,
        "responses": [{"topic_id": ID, "partitions": partitions}],
        "node_endpoints": [],
    }
    return decode_response(b"\0\0\0\7\0" + _body(78, "response", version, value), 78, version)


# Message, version, path of the first records, name and id of the topic.
MESSAGES = [
    (produce, 0, "topic_data[0].partition_data", "orders", None),
    (produce, 3, "topic_data[0].partition_data", "orders", None),
    (produce, 9, "topic_data[0].partition_data", "orders", None),
    (produce, 12, "topic_data[0].partition_data", "orders", None),
    (produce, 13, "topic_data[0].partition_data", None, ID),
    (fetch, 0, "responses[0].partitions", "orders", None),
    (fetch, 4, "responses[0].partitions", "orders", None),
    (fetch, 11, "responses[0].partitions", "orders", None),
    (fetch, 12, "responses[0].partitions", "orders", None),
    (fetch, 13, "responses[0].partitions", None, ID),
    (fetch, 18, "responses[0].partitions", None, ID),
    (share_fetch, 1, "responses[0].partitions", None, ID),
]
every_message = pytest.mark.parametrize(("make", "version", "path", "topic", "topic_id"), MESSAGES)


@every_message
def test_fields_with_records(
    make: Any, version: int, path: str, topic: str | None, topic_id: UUID | None
) -> None:
    message = make(version, FIRST + SECOND, None, OLD, b"")
    assert message.problems == []
    found = list(records_fields(message))
    assert [f.path for f in found] == [f"{path}[{at}].records" for at in (0, 2, 3)]
    assert [f.partition for f in found] == [5, 7, 8]
    assert [f.data for f in found] == [FIRST + SECOND, OLD, b""]
    assert {(f.topic, f.topic_id) for f in found} == {(topic, topic_id)}
    assert [[len(b.records) for b in f.batches] for f in found] == [[1, 3], [1], []]
    assert [b.position for b in found[0].batches] == [0, len(FIRST)]
    assert record_problems(message) == []


@every_message
def test_the_path_leads_to_the_records(
    make: Any, version: int, path: str, topic: str | None, topic_id: UUID | None
) -> None:
    message = make(version, None, FIRST)
    (found,) = records_fields(message)
    assert (found.topic_index, found.partition_index) == (0, 1)
    assert message.body[found.topics][0][found.partitions][1].records == FIRST


@every_message
def test_a_wrong_crc_is_reported_with_its_position_in_the_frame(
    make: Any, version: int, path: str, topic: str | None, topic_id: UUID | None
) -> None:
    bad = bytearray(SECOND)
    bad[-1] ^= 1
    message = make(version, FIRST, FIRST + bytes(bad))
    kind = message.kind
    problems = record_problems(message)
    crc = next(p for p in problems if "CRC-32C" in p.what)
    assert crc.path == f"{kind}.{path}[1].records[1].crc"
    assert crc.position == message.frame.index(bytes(bad)) + CRC_AT
    assert all(p.path.startswith(f"{kind}.{path}[1].records[1]") for p in problems)
    # The message itself is valid, with separate problems.
    assert message.problems == []


@pytest.mark.parametrize("make", [produce, fetch])
@pytest.mark.parametrize("at", range(BATCH.size + 4, len(FIRST)))
def test_a_flipped_byte_of_a_record(make: Any, at: int) -> None:
    """Positions stay inside the invalid batch, even with a matching CRC."""
    bad = bytearray(FIRST)
    bad[at] ^= 0x40
    message = make(11, SECOND, with_crc(bytes(bad)))
    begin = message.frame.index(with_crc(bytes(bad)))
    for problem in record_problems(message):
        assert problem.position is not None
        assert begin + BATCH.size <= problem.position <= begin + len(bad)
        assert ".records[0].records" in problem.path


def test_a_bad_length_inside_a_record() -> None:
    bad = bytearray(FIRST)
    assert bad[BATCH.size + 4 : BATCH.size + 6] == b"\2k"
    bad[BATCH.size + 4] = 0x7E  # the key is 63 bytes long
    message = produce(9, with_crc(bytes(bad)))
    (problem,) = record_problems(message)
    assert problem.path == "request.topic_data[0].partition_data[0].records[0].records[0].key"
    assert problem.position == message.frame.index(b"\x7ek")


def test_a_truncated_batch() -> None:
    """A broker may truncate the last batch of a Fetch response; a producer may not."""
    data = FIRST + SECOND[:30]
    assert record_problems(fetch(12, data)) == []
    assert record_problems(share_fetch(1, data)) == []
    message = produce(9, data)
    (problem,) = record_problems(message)
    assert problem.what == "batch is cut off after 30 bytes"
    assert problem.path == "request.topic_data[0].partition_data[0].records[1]"
    assert problem.position == message.frame.index(SECOND[:30])


@pytest.mark.parametrize(
    "message",
    [
        decode_response(bytes.fromhex("00000007 0000"), 12, 0),
        decode_request(
            bytes.fromhex("0001 0000 00000007 ffff ffffffff 00000001 00000001 00000000")
        ),
        decode_response(bytes.fromhex("00000007 00000000"), 0, 0),
        decode_response(bytes.fromhex("00000007 0000"), None, None),
        decode_request(b"\0\0"),
        decode_request(bytes.fromhex("0000 0003 00000007 ffff 0001")),
        decode_request(bytes.fromhex("0000 0003 00000007 ffff ffff 0001 00000001 ffffffff")),
        produce(9),
    ],
)
def test_messages_without_records(message: Message) -> None:
    assert list(records_fields(message)) == []
    assert record_problems(message) == []


def test_every_records_field_except_of_snapshots_is_known() -> None:
    """FetchSnapshot sends an arbitrary part of a file."""
    kinds: tuple[Kind, ...] = ("request", "response")
    fields = {
        (found.name, kind)
        for found in all_apis()
        for kind in kinds
        for version in found.schema(kind).versions
        if any(field.type == "records" for _, field in found.schema(kind).iter_fields(version))
    }
    assert fields == {
        ("Produce", "request"),
        ("Fetch", "response"),
        ("ShareFetch", "response"),
        ("FetchSnapshot", "response"),
    }
    assert may_be_cut(0, "request") is False
    assert may_be_cut(1, "response") is True
    assert may_be_cut(78, "response") is True
    assert may_be_cut(0, "response") is None
    assert may_be_cut(12, "request") is None


@given(st.data())
@settings(max_examples=examples(100), deadline=None)
def test_problems_of_damaged_records_are_inside_their_field(data: st.DataObject) -> None:
    bad = bytearray(FIRST + OLD + SECOND)
    for _ in range(data.draw(st.integers(1, 4))):
        bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    records = bytes(bad[: data.draw(st.integers(BATCH.size, len(bad)))])
    make, version, path, _, _ = data.draw(st.sampled_from(MESSAGES))
    message = make(version, b"", records)
    begin = message.frame.rindex(records)
    for problem in record_problems(message):
        assert problem.path.startswith(f"{message.kind}.{path}[1].records[")
        assert problem.position is not None
        assert begin <= problem.position <= begin + len(records)
