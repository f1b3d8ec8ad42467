"""Records of Kafka's internal topics."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.embedded.log_records.group_coordinator import (
    ConsumerGroupMemberMetadataValue,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from dissector.protocol.embedded.log_records.share_coordinator import (
    ShareUpdateKey,
    ShareUpdateValue,
)
from dissector.protocol.embedded.log_records.transaction_coordinator import (
    TransactionLogKey,
    TransactionLogValue,
)
from dissector.protocol.embedded.own_topics import decode_record, is_own_topic
from dissector.protocol.facts import CLUSTER_METADATA

OFFSETS, TRANSACTIONS, SHARES = "__consumer_offsets", "__transaction_state", "__share_group_state"
SUBSCRIPTION = bytes.fromhex("0000 00000001 0001 74 ffffffff")
ASSIGNMENT = bytes.fromhex("0000 00000000 ffffffff")
OFFSET_KEY = b"\0\1" + OffsetCommitKey.codec(1).build({"group": "g", "topic": "t", "partition": 3})
GROUP_KEY = b"\0\2\0\1g"


@pytest.mark.parametrize("version", list(OffsetCommitValue.versions))
@pytest.mark.parametrize("key_version", list(OffsetCommitKey.versions))
def test_an_offset_commit(version: int, key_version: int) -> None:
    value = {"offset": 42, "metadata": "m", "commit_timestamp": 7}
    data = version.to_bytes(2, "big") + OffsetCommitValue.codec(version).build(value)
    record = decode_record(OFFSETS, key_version.to_bytes(2, "big") + OFFSET_KEY[2:], data)
    assert record is not None
    assert (record.name, record.tombstone, record.problems) == ("OffsetCommit", False, [])
    assert record.key is not None
    assert record.key.value == {"group": "g", "topic": "t", "partition": 3}
    assert record.value is not None
    assert record.value.version == version
    assert record.value.value is not None
    assert value.items() <= record.value.value.items()


def test_an_offset_commit_in_the_bytes_of_kafka() -> None:
    """Key and value as stored by a Kafka 3.x broker, byte by byte."""
    key = bytes.fromhex("0001 0005 67726f7570 0006 6f7264657273 00000000")
    value = bytes.fromhex("0003 000000000000002a ffffffff 0000 0000018bcfe56800")
    record = decode_record(OFFSETS, key, value)
    assert record is not None
    assert record.key is not None
    assert record.key.value == {"group": "group", "topic": "orders", "partition": 0}
    assert record.value is not None
    assert record.value.value == {
        "offset": 42,
        "leader_epoch": -1,
        "metadata": "",
        "commit_timestamp": 1_700_000_000_000,
    }
    assert not record.problems


def test_a_tombstone() -> None:
    record = decode_record(OFFSETS, OFFSET_KEY, None)
    assert record is not None
    assert (record.tombstone, record.value, record.problems) == (True, None, [])


def test_a_member_of_a_kip_848_group_has_no_classic_metadata() -> None:
    """As written by Kafka 4: the tagged struct is present and null."""
    key = bytes.fromhex("0005 0001 67 0001 6d")
    value = bytes.fromhex("0000 00 00 02 63 02 2f 02 02 74 00 00000000 00 01 00 01 00")
    record = decode_record(OFFSETS, key, value)
    assert record is not None
    assert (record.name, record.problems) == ("ConsumerGroupMemberMetadata", [])
    assert record.value is not None
    assert record.value.value is not None
    assert record.value.value.subscribed_topic_names == ["t"]
    assert record.value.value.classic_member_metadata is None


def test_a_record_of_a_streams_group() -> None:
    record = decode_record(
        OFFSETS, b"\x00\x11\x00\x01g", bytes.fromhex("0000 00000003 0000000000000007 00")
    )
    assert record is not None
    assert (record.name, record.problems) == ("StreamsGroupMetadata", [])
    assert record.value is not None
    assert record.value.value == {
        "epoch": 3,
        "metadata_hash": 7,
        "validated_topology_epoch": -1,
        "last_assignment_configs": [],
        "stored_description_topology_epoch": -1,
        "failed_description_topology_epoch": -1,
    }


def test_group_metadata_has_the_metadata_of_members() -> None:
    member = {
        "member_id": "m",
        "group_instance_id": None,
        "client_id": "c",
        "client_host": "/h",
        "rebalance_timeout": 1,
        "session_timeout": 2,
        "subscription": SUBSCRIPTION,
        "assignment": ASSIGNMENT,
    }
    group = {
        "protocol_type": "consumer",
        "generation": 1,
        "protocol": "range",
        "leader": "m",
        "current_state_timestamp": 0,
        "members": [member, {**member, "subscription": b"\0", "assignment": b""}],
    }
    record = decode_record(OFFSETS, GROUP_KEY, b"\0\3" + GroupMetadataValue.codec(3).build(group))
    assert record is not None
    assert record.name == "GroupMetadata"
    assert record.value is not None
    assert [(e.path, e.value and dict(e.value)) for e in record.value.inner] == [
        ("members[0].subscription", {"topics": ["t"], "user_data": None}),
        ("members[0].assignment", {"assigned_partitions": [], "user_data": None}),
        ("members[1].subscription", None),
    ]
    assert [p.path for p in record.problems] == ["value.members[1].subscription"]


def test_a_classic_member_of_a_consumer_group() -> None:
    value = {
        "instance_id": None,
        "rack_id": None,
        "client_id": "c",
        "client_host": "/h",
        "subscribed_topic_names": ["t"],
        "subscribed_topic_regex": None,
        "rebalance_timeout_ms": 1,
        "server_assignor": None,
        "classic_member_metadata": {
            "session_timeout_ms": 1,
            "supported_protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
        },
    }
    written = ConsumerGroupMemberMetadataValue.codec(0).build(value)
    record = decode_record(OFFSETS, b"\0\5\0\1g\0\1m", b"\0\0" + written)
    assert record is not None
    assert record.name == "ConsumerGroupMemberMetadata"
    assert record.value is not None
    (protocol,) = record.value.inner
    assert protocol.path == "classic_member_metadata.supported_protocols[0].metadata"
    assert protocol.value == {"topics": ["t"], "user_data": None}


def test_transactions_and_share_groups() -> None:
    log = {
        "producer_id": 1,
        "producer_epoch": 0,
        "transaction_timeout_ms": 9,
        "transaction_status": 4,
        "transaction_partitions": None,
        "transaction_last_update_timestamp_ms": 1,
        "transaction_start_timestamp_ms": 1,
    }
    key = b"\0\0" + TransactionLogKey.codec(0).build({"transactional_id": "x"})
    for version in TransactionLogValue.versions:
        value = version.to_bytes(2, "big") + TransactionLogValue.codec(version).build(log)
        record = decode_record(TRANSACTIONS, key, value)
        assert record is not None
        assert (record.name, record.problems) == ("TransactionLog", [])
        assert record.value is not None
        assert record.value.value is not None
        assert ("previous_producer_id" in record.value.value) == (version == 1)
    share = {"group_id": "g", "topic_id": "0" * 32, "partition": 1}
    update = {"snapshot_epoch": 1, "leader_epoch": 2, "start_offset": 3, "state_batches": []}
    record = decode_record(
        SHARES,
        b"\0\1" + ShareUpdateKey.codec(1).build(share),
        b"\0\0" + ShareUpdateValue.codec(0).build(update),
    )
    assert record is not None
    assert (record.name, record.problems) == ("ShareUpdate", [])


METADATA_RECORDS = [
    # As in KIP-631: frame 1, type, version, body, no tagged fields.
    ("01 07 00 00000001 0000000000000005 00", "FenceBrokerRecord", {"id": 1, "epoch": 5}),
    ("01 14 00 00", "NoOpRecord", {}),
    ("01 0c 00 02 61 0003 00", "FeatureLevelRecord", {"name": "a", "feature_level": 3}),
    ("01 11 01 00000001 0000000000000005 01 00 01 01", "BrokerRegistrationChangeRecord", None),
    ("01 1c 00 02 74 00", "ClearElrRecord", {"topic_name": "t"}),
]


@pytest.mark.parametrize(("data", "name", "value"), METADATA_RECORDS)
def test_metadata_records(data: str, name: str, value: dict[str, object] | None) -> None:
    record = decode_record(CLUSTER_METADATA, None, bytes.fromhex(data))
    assert record is not None
    assert (record.name, record.key, record.problems) == (name, None, [])
    assert record.value is not None
    assert record.value.start == 3
    if value is None:
        value = {"broker_id": 1, "broker_epoch": 5, "fenced": 1, "in_controlled_shutdown": 0}
    assert record.value.value == value


def test_a_newer_tagged_field_is_preserved() -> None:
    record = decode_record(CLUSTER_METADATA, None, bytes.fromhex("01 14 00 01 63 02 abcd"))
    assert record is not None
    assert record.value is not None
    assert record.value.value == {"unknown_tags": {99: b"\xab\xcd"}}
    assert not record.problems


UNREADABLE = [
    (OFFSETS, None, b"", "record without a type", "key at byte 0: the key is null"),
    (OFFSETS, b"\0", b"", "record without a type", "key at byte 0: the key has 1 bytes"),
    (OFFSETS, b"\0\x63", b"", "record type 99", "key at byte 0: record type 99 is not known"),
    (
        OFFSETS,
        OFFSET_KEY,
        b"\0\x09",
        "OffsetCommit",
        "value at byte 0: version 9 of OffsetCommitValue is not known (known: 0-4)",
    ),
    (
        OFFSETS,
        OFFSET_KEY,
        b"\0",
        "OffsetCommit",
        "value at byte 0: OffsetCommitValue begins with a version of 2 bytes, but only 1 are there",
    ),
    (
        OFFSETS,
        OFFSET_KEY + b"x",
        None,
        "OffsetCommit",
        "key at byte 12: 1 bytes are left over after OffsetCommitKey",
    ),
    (CLUSTER_METADATA, None, None, "record without a type", "value: the value is null"),
    (
        CLUSTER_METADATA,
        None,
        b"\0\1\2",
        "record without a type",
        "value at byte 0: version 0 of the record's frame is not known",
    ),
    (
        CLUSTER_METADATA,
        None,
        b"\1\x7f\0",
        "record type 127",
        "value at byte 0: record type 127 is not known",
    ),
    (
        CLUSTER_METADATA,
        None,
        b"\1\x14",
        "record without a type",
        "value at byte 2: frame of the record: 1 bytes expected, 0 left",
    ),
]


@pytest.mark.parametrize(("topic", "key", "value", "name", "problem"), UNREADABLE)
def test_undecodable_bytes_are_a_problem(
    topic: str, key: bytes | None, value: bytes | None, name: str, problem: str
) -> None:
    record = decode_record(topic, key, value)
    assert record is not None
    assert record.name == name
    assert [str(p) for p in record.problems] == [problem]


def test_records_of_other_topics_are_not_decoded() -> None:
    assert decode_record("orders", OFFSET_KEY, None) is None


@given(
    topic=st.sampled_from([OFFSETS, TRANSACTIONS, SHARES, CLUSTER_METADATA]),
    kind=st.integers(0, 28),
    key=st.none() | st.binary(max_size=20),
    version=st.integers(0, 4),
    value=st.none() | st.binary(max_size=60),
)
def test_hostile_bytes(
    topic: str, kind: int, key: bytes | None, version: int, value: bytes | None
) -> None:
    if topic == CLUSTER_METADATA:
        value = value and bytes((1, kind, version)) + value
    else:
        key = key and kind.to_bytes(2, "big") + key
        value = value and version.to_bytes(2, "big") + value
    record = decode_record(topic, key, value)
    assert record is not None
    unread = record.value is None or record.value.value is None
    assert record.problems or record.tombstone or not unread


def test_internal_topics_are_those_with_decoders() -> None:
    assert is_own_topic(OFFSETS)
    assert is_own_topic(CLUSTER_METADATA)
    assert not is_own_topic("orders")
