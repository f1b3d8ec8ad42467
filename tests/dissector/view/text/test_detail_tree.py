from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.api import Api, Kind
from dissector.protocol.apis import api
from dissector.protocol.embedded.log_records.cluster_metadata import UserScramCredentialRecord
from dissector.protocol.embedded.log_records.group_coordinator import (
    OffsetCommitKey,
    OffsetCommitValue,
)
from dissector.protocol.embedded.membership.consumer_protocol import ConsumerProtocolSubscription
from dissector.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from dissector.protocol.messages import Message, decode_request, decode_response
from dissector.protocol.records import Record, build_records, new_batch, new_message_set
from dissector.protocol.records.message_set import LegacyRecord
from dissector.view.text.detail_tree import detail_tree
from tests.default_frames import request, response
from tests.value_sources import DRAWN, Source, Version, every_api, go_through, sources, versions

TOPIC_ID = UUID("3f2504e0-4f89-11d3-9a0c-0305e82c3301")
SECRET = "s3cr3t"


def decoded_request(*args: Any, **fields: Any) -> Message:
    return decode_request(request(*args, **fields)[4:])


def answered(key: int, version: int, **fields: Any) -> Message:
    return decode_response(response(key, version, 7, **fields)[4:], key, version)


def produce(records: bytes | None, topic: str = "orders") -> Message:
    partition = {"index": 0, "records": records}
    topics = [{"name": topic, "partition_data": [partition]}]
    return decoded_request(0, 9, 7, acks=-1, timeout_ms=500, topic_data=topics)


def fetched(records: bytes, topic: str) -> Message:
    partition = {
        "partition_index": 0,
        "error_code": 0,
        "high_watermark": 1,
        "aborted_transactions": None,
        "records": records,
    }
    return answered(1, 12, responses=[{"topic": topic, "partitions": [partition]}])


def block(lines: Sequence[str], first: str) -> list[str]:
    """Return the line with this start, and those below it, relative to its indentation."""
    start = next(n for n, line in enumerate(lines) if line.strip().startswith(first))
    depth = len(lines[start]) - len(lines[start].lstrip())
    found = [lines[start][depth:]]
    for line in lines[start + 1 :]:
        if len(line) - len(line.lstrip()) <= depth:
            break
        found.append(line[depth:])
    return found


def test_a_request() -> None:
    message = decoded_request(
        0,
        9,
        7,
        "cli\x1b[31m",
        acks=-1,
        timeout_ms=500,
        topic_data=[{"name": "orders", "partition_data": [{"index": 0, "records": None}]}],
        unknown_tags={77: b"abc"},
    )
    assert detail_tree(message) == [
        "Produce v9 request, 48 bytes",
        "  header [0..19)",
        "    request_api_key: 0 (Produce) [0..2)",
        "    request_api_version: 9 [2..4)",
        "    correlation_id: 7 [4..8)",
        r'    client_id: "cli\x1b[31m" [8..18)',
        "  body [19..48)",
        "    transactional_id: null [19..20)",
        "    acks: -1 (all in-sync replicas) [20..22)",
        "    timeout_ms: 500 [22..26)",
        "    topic_data: 1 item [26..42)",
        "      [0] [27..42)",
        '        name: "orders" [27..34)',
        "        partition_data: 1 item [34..41)",
        "          [0] [35..41)",
        "            index: 0 [35..39)",
        "            records: null [39..40)",
        "    tag 77: *** [45..48)",
    ]


def test_a_response_with_bytes_left_over() -> None:
    message = decode_response(
        response(
            3,
            1,
            7,
            brokers=[],
            topics=[
                {
                    "error_code": 5,
                    "name": "t",
                    "is_internal": False,
                    "partitions": [
                        {
                            "error_code": 0,
                            "partition_index": 0,
                            "leader_id": -1,
                            "replica_nodes": [1, 2],
                            "isr_nodes": [],
                        }
                    ],
                }
            ],
        )[4:]
        + b"xx",
        3,
        1,
    )
    assert block(detail_tree(message), "topics") == [
        "topics: 1 item [12..52)",
        "  [0] [16..52)",
        "    error_code: 5 (LEADER_NOT_AVAILABLE) [16..18)",
        '    name: "t" [18..21)',
        "    is_internal: false [21..22)",
        "    partitions: 1 item [22..52)",
        "      [0] [26..52)",
        "        error_code: 0 (NONE) [26..28)",
        "        partition_index: 0 [28..32)",
        "        leader_id: -1 (none) [32..36)",
        "        replica_nodes: 2 items: 1, 2 [36..48)",
        "        isr_nodes: 0 items [48..52)",
    ]
    assert detail_tree(message)[-2:] == [
        "  left over: 2 bytes 7878 [52..54)",
        "  ! response at byte 52: 2 bytes are left over after the body",
    ]


def test_the_tree_shows_where_decoding_stopped() -> None:
    whole = produce(b"\0" * 30)
    message = decode_request(whole.frame[:45], len(whole.frame))
    lines = detail_tree(message)
    assert block(lines, "partition_data") == [
        "partition_data [30..35)",
        "  [0] [31..35)",
        "    index: 0 [31..35)",
        "    records [35..35)",
        "      ! length 30 but 9 bytes are left in the message",
    ]
    assert lines[-2:] == [
        "  not read: 10 bytes 1f000000000000000000 [35..45)",
        f"  ! request at byte 45: {len(whole.frame) - 45} bytes of the request were not captured",
    ]


def test_unknown_messages() -> None:
    lines = detail_tree(decode_request(b"\x03\xe7\0\1\0\0\0\7\0\1c\1\2\3"))
    assert lines[0] == "api 999 v1 request, 14 bytes"
    assert lines[-2:] == [
        "  body: *** [11..14)",
        "  ! request at byte 11: api 999 is not known",
    ]
    lines = detail_tree(decode_response(b"\0\0\0\7abc", None, None))
    assert lines == [
        "unknown response, 7 bytes",
        "  header [0..4)",
        "    correlation_id: 7 [0..4)",
        "  body: *** [4..7)",
    ]
    assert detail_tree(decode_request(b"\0\1")) == [
        "request: 2 bytes 0001 [0..2)",
        "  ! request.header at byte 0: a request header has at least 8 bytes, but only 2 are there",
    ]


def test_an_undecodable_header_ends_the_tree() -> None:
    frame = b"\0\x24\0\1\0\0\0\7\x7f\xff" + SECRET.encode()
    lines = detail_tree(decode_request(frame))
    assert lines[-1].startswith("  ! request.header.client_id at byte 8: ")
    assert SECRET.encode().hex() not in "\n".join(lines)


def test_topic_ids_have_their_names() -> None:
    topics = [
        {"topic_id": TOPIC_ID, "partitions": []},
        {"topic_id": UUID(int=0), "partitions": []},
        {"topic_id": UUID(int=5), "partitions": []},
    ]
    message = decoded_request(
        1, 13, 7, max_wait_ms=1, min_bytes=1, topics=topics, forgotten_topics_data=[]
    )
    lines = detail_tree(message, topic_name={TOPIC_ID: "ord\x07ers"}.get)
    assert [line.strip().partition(" [")[0] for line in lines if "topic_id" in line] == [
        rf"topic_id: {TOPIC_ID} (ord\x07ers)",
        f"topic_id: {UUID(int=0)} (none)",
        f"topic_id: {UUID(int=5)}",
    ]


def test_record_batches() -> None:
    records = [
        Record(key=b"k\x1b", value="é\n".encode(), headers=(("h\x07", b"\xff"), ("g", None))),
        Record(offset_delta=1, value=None),
    ]
    data = build_records([new_batch(records, codec="gzip", base_offset=5)])
    message = produce(data + b"\0\0\0")
    lines = block(detail_tree(message), "records: ")
    size = len(data)
    assert lines[0].startswith(f"records: {size + 3} bytes ")
    assert lines[1:] == [
        f"  [0]: record batch of magic 2, gzip, 2 records [36..{36 + size})",
        "    base_offset: 5 [36..44)",
        f"    batch_length: {size - 12} [44..48)",
        "    partition_leader_epoch: -1 (unknown) [48..52)",
        "    magic: 2 [52..53)",
        f"    crc: 0x{int.from_bytes(data[17:21], 'big'):08x} (correct) [53..57)",
        "    attributes: 1 (gzip, CreateTime) [57..59)",
        "    last_offset_delta: 1 [59..63)",
        "    base_timestamp: 0 (1970-01-01 00:00:00.000Z) [63..71)",
        "    max_timestamp: 0 (1970-01-01 00:00:00.000Z) [71..79)",
        "    producer_id: -1 (none) [79..87)",
        "    producer_epoch: -1 (none) [87..89)",
        "    base_sequence: -1 (none) [89..93)",
        "    records_count: 2 [93..97)",
        "    [0]: offset 5, 1970-01-01 00:00:00.000Z, key 2 bytes 6b1b, "
        r'value "é\x0a"',
        r'      header "h\x07": 1 byte ff',
        '      header "g": null',
        "    [1]: offset 6, 1970-01-01 00:00:00.000Z, key null, value null",
        f"  [1]: a batch that is cut off: 3 bytes 000000 [{36 + size}..{39 + size})",
        f"    ! records[1] at byte {36 + size}: batch is cut off after 3 bytes",
    ]


def test_message_sets_and_a_wrong_crc() -> None:
    data = bytearray(build_records(new_message_set([LegacyRecord(magic=0, value=b"v")], magic=0)))
    data[12] ^= 1
    lines = block(detail_tree(produce(bytes(data))), "records: ")
    assert lines[1] == "  [0]: message of magic 0, none, 1 record [36..63)"
    assert next(line for line in lines if " crc: " in line).endswith(" (incorrect) [48..52)")
    assert any("! records[0]" in line and "at byte 48" in line for line in lines)
    assert '    [0]: offset 0, key null, value "v"' in lines


def test_control_records_and_records_of_internal_topics() -> None:
    key = b"\0\1" + OffsetCommitKey.codec(1).build({"group": "g", "topic": "t", "partition": 0})
    commit = {"offset": 42, "leader_epoch": -1, "metadata": "", "commit_timestamp": 0}
    value = b"\0\3" + OffsetCommitValue.codec(3).build(commit)
    data = build_records([new_batch([Record(key=key, value=value), Record(key=key)])])
    lines = detail_tree(fetched(data, "__consumer_offsets"))
    assert block(lines, "OffsetCommit") == [
        "OffsetCommit",
        "  OffsetCommitKey v1",
        '    group: "g"',
        '    topic: "t"',
        "    partition: 0",
        "  OffsetCommitValue v3",
        "    offset: 42",
        "    leader_epoch: -1 (unknown)",
        '    metadata: ""',
        "    commit_timestamp: 0 (1970-01-01 00:00:00.000Z)",
    ]
    assert any(line.strip() == "OffsetCommit, a tombstone" for line in lines)
    batch = new_batch([Record(key=b"\0\0\0\1", value=b"\0\0\0\0\0\5")])
    batch.attributes |= 0x20
    lines = block(detail_tree(fetched(build_records([batch]), "t")), "COMMIT")
    assert lines[-2:] == ["  EndTxnMarker v0", "    coordinator_epoch: 5"]


def test_group_metadata_of_members() -> None:
    subscription = {"topics": ["orders"], "user_data": None}
    metadata = b"\0\0" + ConsumerProtocolSubscription.codec(0).build(subscription)
    message = decoded_request(
        11,
        2,
        7,
        group_id="g",
        session_timeout_ms=1,
        rebalance_timeout_ms=1,
        member_id="",
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": metadata}],
    )
    end = len(message.frame)
    assert block(detail_tree(message), "ConsumerProtocolSubscription") == [
        f"ConsumerProtocolSubscription v0 [{end - 16}..{end})",
        f'  topics: 1 item: "orders" [{end - 16}..{end - 4})',
        f"  user_data: null [{end - 4}..{end})",
    ]


def configs(value: str) -> bytes:
    entry = {"name": "sasl.jaas.config", "config_operation": 0, "value": value}
    resource = {"resource_type": 2, "resource_name": "t", "configs": [entry]}
    return request(44, 1, 9, resources=[resource])[4:]


def envelope(inner: bytes, **more: Any) -> Message:
    principal = {"request_principal": b"\0\0\5User\4bob\0\0", "client_host_address": b"\x7f\0\0\1"}
    return decoded_request(58, 0, 7, request_data=inner, **principal, **more)


def scram_record() -> bytes:
    fields = {
        "name": "bob",
        "mechanism": 1,
        "salt": SECRET.encode(),
        "stored_key": SECRET.encode(),
        "server_key": SECRET.encode(),
        "iterations": 4096,
    }
    value = b"\1\x0b\0" + UserScramCredentialRecord.codec(0).build(fields)
    return build_records([new_batch([Record(value=value)])])


def raw_token() -> Message:
    frame = f"\0bob\0{SECRET}".encode()
    return Message("request", frame, len(frame))


SECRETS = {
    "token": lambda: decoded_request(36, 2, 7, auth_bytes=f"\0bob\0{SECRET}".encode()),
    "raw token": raw_token,
    "config": lambda: decode_request(configs(SECRET)),
    "envelope": lambda: envelope(configs(SECRET)),
    "envelope of an unknown API": lambda: envelope(b"\x03\xe7\0\0\0\0\0\1\0\0" + SECRET.encode()),
    "envelope's response, request unknown": lambda: answered(
        58, 0, response_data=b"\0\0\0\1" + SECRET.encode(), error_code=0
    ),
    "record": lambda: fetched(scram_record(), "__cluster_metadata"),
    "unread record": lambda: fetched(SECRET.encode(), "__cluster_metadata"),
    "left over": lambda: decode_request(
        decoded_request(36, 2, 7, auth_bytes=b"").frame + SECRET.encode()
    ),
    "cut off": lambda: decode_request(configs(SECRET + "more")[:-4]),
}  # fmt: skip


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_are_masked_by_default(name: str) -> None:
    message = SECRETS[name]()
    masked, shown = (
        "\n".join(detail_tree(message)),
        "\n".join(detail_tree(message, show_secrets=True)),
    )
    for spelled in (SECRET, SECRET.encode().hex()):
        assert spelled not in masked
    assert SECRET in shown or SECRET.encode().hex() in shown
    assert "***" in masked


def test_values_beside_a_secret_are_shown() -> None:
    assert '      SASL token: PLAIN user "bob" password ***' in detail_tree(SECRETS["token"]())
    first = 'SASL token, request: PLAIN user "bob" password ***'
    assert detail_tree(raw_token()) == [first, "  bytes: *** [0..11)"]
    shown = "11 bytes 00626f6200733363723374"
    assert detail_tree(raw_token(), show_secrets=True) == [first, f"  bytes: {shown} [0..11)"]
    lines = detail_tree(SECRETS["envelope"]())
    assert any(line.strip().startswith('name: "sasl.jaas.config" [') for line in lines)
    assert '      IP address: address "127.0.0.1"' in lines


def test_nested_envelopes_are_not_decoded() -> None:
    inner = envelope(envelope(configs(SECRET)).frame)
    assert any("is not decoded" in line for line in detail_tree(inner))


def frame_of(key: int, kind: Kind, version: int, body: Any) -> bytes:
    found = api(key)
    assert found is not None
    if kind == "request":
        header = RequestHeader.codec(request_header_version(key, version)).build(
            {
                "request_api_key": key,
                "request_api_version": version,
                "correlation_id": 7,
                "client_id": "c",
            }
        )
    else:
        header = ResponseHeader.codec(response_header_version(key, version)).build(
            {"correlation_id": 7}
        )
    return bytes(header + found.schema(kind).codec(version).build(body))


def decoded(key: int, kind: Kind, version: int, frame: bytes) -> Message:
    if kind == "request":
        return decode_request(frame)
    return decode_response(frame, key, version)


def _check_tree(message: Version, source: Source) -> None:
    """Check the trees of a message, whole, truncated and changed: no error or control character."""
    key, kind, version, schema = message
    frame = frame_of(key, kind, version, source.value(schema, version))
    lines = detail_tree(decoded(key, kind, version, frame))
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("  ! request.header") for line in lines)
    hostile = source.changed(frame, 1)
    end = source.chance.randint(0, len(frame))
    for bad in (hostile, frame[:end], hostile[:end]):
        assert all(line.isprintable() for line in detail_tree(decoded(key, kind, version, bad)))


@pytest.mark.thinned(3)
@every_api
def test_each_version_has_a_tree(found: Api) -> None:
    go_through(versions(found), _check_tree, times=2)


@pytest.mark.long
@every_api
@given(data=st.data(), source=sources())
@DRAWN
def test_any_message_has_a_tree(found: Api, data: st.DataObject, source: Source) -> None:
    _check_tree(data.draw(st.sampled_from(versions(found))), source)


@given(st.binary(max_size=200), st.sampled_from(["t", "__consumer_offsets", "__cluster_metadata"]))
def test_any_bytes_in_a_records_field_have_a_tree(data: bytes, topic: str) -> None:
    for message in (produce(data, topic), fetched(data, topic)):
        assert all(line.isprintable() for line in detail_tree(message))
