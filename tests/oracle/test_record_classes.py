"""Record batches and message sets: ours decoded by Kafka, Kafka's decoded by us."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dissector.protocol.embedded import control_records
from dissector.protocol.embedded.control_payloads import decode_control
from dissector.protocol.records import (
    LegacyBatch,
    Record,
    RecordBatch,
    build_records,
    new_batch,
    new_message_set,
    parse_records,
)
from dissector.protocol.records.compression import CODEC_MASK
from dissector.protocol.schema import Schema
from tests.dissector.protocol.records.record_values import CODECS, FIELDS, RECORDS, problems
from tests.oracle import drawn
from tests.oracle.kafka_classes import Oracle
from tests.oracle.kafka_json_values import kafka_json
from tests.oracle.kafka_records import assert_agrees

Count = Counter[tuple[str, str]]
pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

FEW = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    # The fixture is stateless.
    suppress_health_check=list(HealthCheck),
)
MAGIC_AND_CODEC = [
    (magic, codec)
    for magic, codec in itertools.product((0, 1, 2), CODECS)
    if magic == 2 or codec != "zstd"  # KIP-110: not in message sets
]
TIMESTAMP_TYPES = {
    0: ("NoTimestampType",),
    1: ("CreateTime", "LogAppendTime"),
    2: ("CreateTime", "LogAppendTime"),
}
RECORD_LIST = [
    Record(key=b"key", value=b"value " * 50, timestamp=1_700_000_000_000),
    Record(key=None, value=b"", timestamp=1_700_000_000_005),
    Record(key=b"", value=None, timestamp=1_699_999_999_999),
    Record(key=b"k" * 70, value=bytes(range(256)) * 300, timestamp=1_700_000_000_001),
]
HEADERS = (("a", b"1"), ("a", None), ("größe", b""))


@pytest.mark.parametrize(("magic", "codec"), MAGIC_AND_CODEC)
def test_kafka_decodes_our_records(
    oracles: list[Oracle], compared: Count, magic: int, codec: str
) -> None:
    @FEW
    @given(RECORDS.filter(len), st.integers(0, 1 << 50), st.booleans())
    def each(records: list[Record], offset: int, transactional: bool) -> None:
        if magic < 2:
            batches: Any = new_message_set(records, magic=magic, codec=codec, base_offset=offset)
        else:
            batches = [
                new_batch(
                    records,
                    codec=codec,
                    base_offset=offset,
                    producer_id=offset if transactional else -1,
                    producer_epoch=7 if transactional else -1,
                    base_sequence=0 if transactional else -1,
                    partition_leader_epoch=3,
                    transactional=transactional,
                )
            ]
        read_by_all(oracles, compared, build_records(batches))

    each()


def is_known_to_kafka(batches: list[RecordBatch | LegacyBatch]) -> bool:
    """Return whether no message set uses zstd, which Kafka refuses there (KIP-110)."""
    sets = [each for each in batches if isinstance(each, LegacyBatch)]
    return all(CODECS[each.attributes & CODEC_MASK] != "zstd" for each in sets)


@FEW
@given(FIELDS.filter(is_known_to_kafka))
def test_kafka_decodes_fields_of_several_batches(
    oracles: list[Oracle], compared: Count, batches: list[RecordBatch | LegacyBatch]
) -> None:
    read_by_all(oracles, compared, build_records(batches))


def read_by_all(oracles: list[Oracle], compared: Count, data: bytes) -> None:
    batches = parse_records(data, may_be_cut=False)
    for oracle in oracles:
        assert_agrees(oracle.read_records(data), batches)
        compared["batches of ours", oracle.jars.version] += len(batches)


@pytest.mark.parametrize(
    ("magic", "codec", "timestamp_type"),
    [
        (magic, codec, timestamp_type)
        for magic, codec in MAGIC_AND_CODEC
        for timestamp_type in TIMESTAMP_TYPES[magic]
    ],
)
def test_records_of_kafka_are_decoded(
    oracles: list[Oracle], compared: Count, magic: int, codec: str, timestamp_type: str
) -> None:
    appended = 1_800_000_000_000 if timestamp_type == "LogAppendTime" else None
    headers = HEADERS if magic == 2 else ()
    for oracle in oracles:
        data = oracle.write_records(
            magic=magic,
            codec=codec,
            base_offset=40,
            timestamp_type=timestamp_type,
            append_time=-1 if appended is None else appended,
            producer_id=9 if magic == 2 else -1,
            producer_epoch=1 if magic == 2 else -1,
            base_sequence=5 if magic == 2 else -1,
            transactional=magic == 2,
            records=[as_kafka_record(record, headers) for record in RECORD_LIST],
        )
        batches = parse_records(data, may_be_cut=False)
        assert not problems(batches)  # type: ignore[arg-type]
        assert all(batch.crc_ok and batch.codec == codec for batch in batches)  # type: ignore[union-attr]
        read = [record for batch in batches for record in batch.records]
        assert [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in read] == [
            (
                40 + index,
                None if magic == 0 else appended or record.timestamp,
                record.key,
                record.value,
                headers,
            )
            for index, record in enumerate(RECORD_LIST)
        ]
        assert build_records(batches) == data
        assert_agrees(oracle.read_records(data), batches)
        compared["batches of Kafka's", oracle.jars.version] += len(batches)


def as_kafka_record(record: Record, headers: Any) -> dict[str, Any]:
    return {
        "timestamp": record.timestamp,
        "key": record.key,
        "value": record.value,
        "headers": headers,
    }


PREFIXES = {
    "gzip": 2,
    # xerial's magic and versions.
    "snappy": 16,
    # Frame header with its checksum, wrong in magic 0.
    "lz4": 7,
    "zstd": 4,
}


@pytest.mark.parametrize(
    ("magic", "codec"), [each for each in MAGIC_AND_CODEC if each[1] != "none"]
)
def test_compressed_data_has_the_header_of_kafkas(
    oracles: list[Oracle], magic: int, codec: str
) -> None:
    for oracle in oracles:
        theirs = oracle.write_records(
            magic=magic,
            codec=codec,
            timestamp_type=TIMESTAMP_TYPES[magic][0],
            records=[as_kafka_record(record, ()) for record in RECORD_LIST],
        )
        batch = new_batch(RECORD_LIST, codec=codec)
        ours = build_records(
            [batch] if magic == 2 else new_message_set(RECORD_LIST, magic=magic, codec=codec)
        )
        # The compressed data follows the header, in a message set also an empty key and a length.
        start = {0: 26, 1: 34, 2: 61}[magic]
        end = start + PREFIXES[codec]
        assert ours[start:end] == theirs[start:end]


@pytest.mark.parametrize("kind", ["ABORT", "COMMIT"])
def test_the_end_of_a_transaction(oracles: list[Oracle], compared: Count, kind: str) -> None:
    for oracle in oracles:
        marker = {"type": kind, "coordinatorEpoch": 12}
        producer = {"producer_id": 9, "producer_epoch": 1, "transactional": True}
        data = control_batch(oracle, "EndTransactionMarker", marker, **producer)
        assert control_value(oracle, compared, data, kind) == {"coordinator_epoch": 12}


@pytest.mark.parametrize(
    ("kind", "schema", "version"),
    [
        ("LEADER_CHANGE", control_records.LeaderChangeMessage, 0),  # Kafka writes no v1 yet
        ("SNAPSHOT_HEADER", control_records.SnapshotHeaderRecord, 0),
        ("SNAPSHOT_FOOTER", control_records.SnapshotFooterRecord, 0),
        ("KRAFT_VERSION", control_records.KRaftVersionRecord, 0),
        ("KRAFT_VOTERS", control_records.VotersRecord, 0),
    ],
)
def test_control_records_of_kraft(
    oracles: list[Oracle], compared: Count, kind: str, schema: Schema, version: int
) -> None:
    name = next(name for name, each in vars(control_records).items() if each is schema)
    body = drawn.full(schema, version) | {"version": version}
    for oracle in oracles:
        value = kafka_json(schema.fields, version, body, {})
        data = control_batch(oracle, name, value, version=version)
        assert control_value(oracle, compared, data, kind) == body


def control_batch(
    oracle: Oracle, message: str, value: Any, version: int = 0, **batch: Any
) -> bytes:
    record = {"timestamp": 6, "message": message, "version": version, "value": value}
    return oracle.write_records(
        control=True, partition_leader_epoch=4, base_offset=70, records=[record], **batch
    )


def control_value(oracle: Oracle, compared: Count, data: bytes, kind: str) -> Any:
    """Decode a batch with one control record, compare it with Kafka, and return its content."""
    (batch,) = parse_records(data, may_be_cut=False)
    assert isinstance(batch, RecordBatch)
    assert batch.control
    assert not batch.problems
    (record,) = batch.records
    assert record.control_type == kind
    assert build_records([batch]) == data
    assert_agrees(oracle.read_records(data), [batch])
    compared["batches of Kafka's", oracle.jars.version] += 1
    decoded = decode_control(record.key, record.value)
    assert not decoded.problems
    assert decoded.value is not None
    return decoded.value.value


def test_kafka_finds_the_same_wrong_checksum(oracles: list[Oracle]) -> None:
    for magic in (0, 1, 2):
        batches: Any = (
            [new_batch(RECORD_LIST)] if magic == 2 else new_message_set(RECORD_LIST, magic=magic)
        )
        data = bytearray(build_records(batches))
        data[-1000] ^= 1  # in the last value
        read = parse_records(bytes(data))
        assert [batch.crc_ok for batch in read] == [  # type: ignore[union-attr]
            *[True] * (len(read) - 1),
            False,
        ]
        for oracle in oracles:
            assert_agrees(oracle.read_records(bytes(data)), read)
