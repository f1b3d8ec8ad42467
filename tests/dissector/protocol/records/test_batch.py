from __future__ import annotations

import dataclasses
import struct

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from crc32c import crc32c
from hypothesis import assume, given
from hypothesis import strategies as st

from dissector.errors import EncodeError, Problem
from dissector.protocol.records import (
    Limits,
    Record,
    RecordBatch,
    build_records,
    new_batch,
    parse_records,
)
from dissector.protocol.records.compression import CODEC_IDS, compress
from tests.dissector.protocol.records.record_values import BATCHES, CODECS

FIELDS = struct.Struct(">hiqqqhii")


def batch_bytes(
    payload: bytes, *, attributes: int = 0, count: int = 1, epoch: int = 5, base: int = 100
) -> bytes:
    """Encode a batch by hand, independently of the tested code."""
    body = FIELDS.pack(attributes, count - 1, 1000, 2000, -1, -1, -1, count) + payload
    head = struct.pack(">qiibI", base, 9 + len(body), epoch, 2, crc32c(body))
    return head + body


def only(data: bytes, **kwargs: Limits) -> RecordBatch:
    (batch,) = parse_records(data, **kwargs)
    assert isinstance(batch, RecordBatch)
    return batch


ONE = bytes.fromhex("0c 00 00 00 01 01 00")


def test_hand_encoded_batch() -> None:
    data = batch_bytes(bytes.fromhex("1a 00 06 00 02 6b 04 7676 02 02 68 02 78"))
    batch = only(data)
    assert batch.problems == []
    assert batch.to_dict() == {
        "base_offset": 100,
        "batch_length": 63,
        "partition_leader_epoch": 5,
        "magic": 2,
        "crc": batch.crc,
        "attributes": 0,
        "last_offset_delta": 0,
        "base_timestamp": 1000,
        "max_timestamp": 2000,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "records_count": 1,
        "codec": "none",
        "timestamp_type": "CreateTime",
        "transactional": False,
        "control": False,
        "has_delete_horizon": False,
        "crc_ok": True,
        "records": [
            {
                "attributes": 0,
                "timestamp_delta": 3,
                "offset_delta": 0,
                "key": b"k",
                "value": b"vv",
                "headers": [{"key": "h", "value": b"x"}],
                "offset": 100,
                "timestamp": 1003,
            }
        ],
    }


@pytest.mark.parametrize(
    ("attributes", "codec", "kind", "transactional", "control", "horizon"),
    [
        (0x00, "none", "CreateTime", False, False, False),
        (0x0C, "zstd", "LogAppendTime", False, False, False),
        (0x10, "none", "CreateTime", True, False, False),
        (0x31, "gzip", "CreateTime", True, True, False),
        (0x42, "snappy", "CreateTime", False, False, True),
        (0x07, "codec 7", "CreateTime", False, False, False),
    ],
)
def test_meaning_of_attributes(
    attributes: int, codec: str, kind: str, transactional: bool, control: bool, horizon: bool
) -> None:
    batch = RecordBatch(attributes=attributes)
    assert batch.codec == codec
    assert batch.timestamp_type == kind
    assert (batch.transactional, batch.control) == (transactional, control)
    assert batch.has_delete_horizon == horizon


def test_log_append_time_applies_to_every_record() -> None:
    assert only(batch_bytes(ONE, attributes=0x08)).records[0].timestamp == 2000


@pytest.mark.parametrize(("kind", "name"), [(0, "ABORT"), (1, "COMMIT"), (3, "SNAPSHOT_HEADER")])
def test_control_records_have_types(kind: int, name: str) -> None:
    marker = bytes.fromhex(f"20 00 00 00 08 0000 000{kind} 0c 0000 00000007 00")
    batch = only(batch_bytes(marker, attributes=0x30))
    assert batch.problems == []
    assert [record.control_type for record in batch.records] == [name]
    assert batch.records[0].value == b"\x00\x00\x00\x00\x00\x07"
    assert batch.to_dict()["records"][0]["control_type"] == name


def test_a_control_record_without_a_key_is_a_problem() -> None:
    batch = only(batch_bytes(ONE, attributes=0x20))
    assert batch.records[0].control_type == "unknown control type"
    what = "key of a control record is shorter than 4 bytes"
    path = "records[0].records[0].key"
    assert batch.problems == [Problem(what, path, 61, "control_key")]


def test_a_client_s_record_has_no_control_type() -> None:
    batch = only(batch_bytes(bytes.fromhex("14 00 00 00 08 0000 0001 01 00")))
    assert batch.records[0].control_type is None


@pytest.mark.parametrize("codec", CODECS[1:])
def test_compressed_records(codec: str) -> None:
    payload = compress(CODEC_IDS[codec], ONE * 3)
    batch = only(batch_bytes(payload, attributes=CODEC_IDS[codec], count=3))
    assert batch.problems == []
    assert (batch.codec, len(batch.records), batch.payload) == (codec, 3, payload)


def test_an_empty_batch_left_by_compaction_is_valid() -> None:
    for attributes in (0, 1, 4):
        batch = only(batch_bytes(b"", attributes=attributes, count=0))
        assert (batch.problems, batch.records) == ([], [])


GOOD = "0c 00 00 00 01 01 00 "
LENGTH, KEY = ".records[0].length", ".records[1].key"
BAD = [
    # payload, attributes, count; what, path, position
    ("0c 00 00 00 01 01", 0, 1, "length 6 but 5 bytes are left in the batch", LENGTH, 61),
    (GOOD + "0c 00 00 00 08 01 00", 0, 2, "length 4 but 2 bytes are left in the message", KEY, 72),
    (GOOD, 0, 3, "records_count is 3, but there are 1 records", ".records_count", 57),
    ("", 0, 1, "records_count is 1, but there are 0 records", ".records_count", 57),
    (GOOD + "ffff", 0, 1, "2 bytes left after the last of 1 records", ".records", 68),
    (GOOD, 0, -1, "records_count is -1", ".records_count", 57),
    (GOOD, 5, 1, "codec 5 is unknown", ".records", 61),
    (GOOD, 1, 1, "gzip: incorrect header check", ".records", 61),
    ("", 4, 1, "no zstd data", ".records", 61),
]


@pytest.mark.parametrize(("payload", "attributes", "count", "what", "path", "position"), BAD)
def test_a_bad_batch_is_kept_with_its_problem(
    payload: str, attributes: int, count: int, what: str, path: str, position: int
) -> None:
    data = batch_bytes(bytes.fromhex(payload), attributes=attributes, count=count)
    batch = only(data)
    assert batch.base_offset == 100
    kind = "trailing" if "left after" in what else ""
    assert batch.problems == [Problem(what, f"records[0]{path}", position, kind)]
    assert build_records([batch]) == data


def test_problems_inside_compressed_records_have_positions() -> None:
    payload = compress(1, ONE + bytes.fromhex("0c 00 00 00 08 01 00"))
    batch = only(batch_bytes(payload, attributes=1, count=2))
    what = "length 4 but 2 bytes are left in the message (byte 11 of the decompressed records)"
    assert batch.problems == [Problem(what, "records[0].records[1].key", 61)]
    payload = compress(1, ONE + b"xyz")
    assert only(batch_bytes(payload, attributes=1)).problems == [
        Problem("3 bytes left after the last of 1 records", "records[0].records", 61, "trailing")
    ]


def test_a_truncated_payload_gives_its_whole_records() -> None:
    records = [Record(value=bytes((n,)) * 1000, offset_delta=n) for n in range(200)]
    payload = new_batch(records, codec="gzip").to_bytes()[61:]
    batch = only(batch_bytes(payload[:-30], attributes=1, count=200))
    assert 0 < len(batch.records) <= 200
    assert [str(p) for p in batch.problems] == [
        "records[0].records at byte 61: gzip data ends early"
    ]


def test_a_wrong_crc_is_reported_kept_and_fixed_on_request() -> None:
    good = batch_bytes(ONE)
    bad = good[:17] + b"\x12\x34\x56\x78" + good[21:]
    batch = only(bad)
    assert not batch.crc_ok
    assert len(batch.records) == 1
    computed = int.from_bytes(good[17:21], "big")
    what = f"CRC-32C is 0x12345678, computed {computed:#010x}"
    assert batch.problems == [Problem(what, "records[0].crc", 17)]
    assert build_records([batch]) == bad
    assert build_records([batch], fix_crc=True) == good


def test_changed_records_are_re_encoded() -> None:
    batch = only(batch_bytes(compress(2, ONE), attributes=2))
    records = [Record(value=b"a", timestamp=5), Record(offset_delta=4, value=b"b", timestamp=9)]
    other = only(batch.with_records(records).to_bytes())
    assert other.problems == []
    assert (other.records_count, other.last_offset_delta, other.max_timestamp) == (2, 4, 9)
    assert (other.base_offset, other.partition_leader_epoch, other.codec) == (100, 5, "snappy")
    assert [record.value for record in other.records] == [b"a", b"b"]
    assert batch.payload is not None


def test_with_records_keeps_the_append_time() -> None:
    batch = only(batch_bytes(ONE, attributes=0x08))
    assert batch.with_records([Record(timestamp=9999)]).max_timestamp == 2000


def test_unencodable_values_are_errors_with_their_path() -> None:
    with pytest.raises(EncodeError) as error:
        dataclasses.replace(RecordBatch(), producer_epoch=1 << 15).to_bytes()
    assert error.value.path == "producer_epoch"
    with pytest.raises(EncodeError, match="codec 5 is unknown"):
        RecordBatch(attributes=5, records=[Record()]).to_bytes()


@given(BATCHES)
def test_a_composed_batch_round_trips(batch: RecordBatch) -> None:
    data = batch.to_bytes()
    out = only(data)
    assert out.problems == []
    assert out.crc_ok
    assert out.records == batch.records
    assert out.to_bytes() == data
    again = dataclasses.replace(out, payload=None)
    assert only(again.to_bytes()).records == batch.records


@given(BATCHES)
def test_aiokafka_decodes_our_batches(batch: RecordBatch) -> None:
    assume(batch.records)  # it requires compressed data even for empty batches
    reader = DefaultRecordBatch(batch.to_bytes())
    assert reader.validate_crc()
    assert reader.base_offset == batch.base_offset
    assert reader.producer_id == batch.producer_id
    assert reader.producer_epoch == batch.producer_epoch
    assert reader.base_sequence == batch.base_sequence
    assert reader.is_transactional == batch.transactional
    rows = [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in reader]
    assert rows == [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in batch.records]


@pytest.mark.parametrize("codec", range(5))
def test_bytes_written_by_aiokafka(codec: int) -> None:
    builder = DefaultRecordBatchBuilder(2, codec, 1, 77, 3, 12, 1 << 20)
    for n in range(20):
        builder.append(n, 1_700_000_000_000 + n, b"key", b"v" * n, [("h", b"x"), ("none", None)])
    batch = only(bytes(builder.build()))
    assert batch.problems == []
    assert (batch.transactional, batch.producer_id, batch.producer_epoch) == (True, 77, 3)
    assert batch.base_sequence == 12
    assert [r.value for r in batch.records] == [b"v" * n for n in range(20)]
    assert batch.records[19][5:8] == ((("h", b"x"), ("none", None)), 19, 1_700_000_000_019)


@given(st.integers(0, 30))
def test_the_limit_of_records(limit: int) -> None:
    batch = only(batch_bytes(ONE * 20, count=20), limits=Limits(max_records=limit + 1))
    assert len(batch.records) == min(limit + 1, 20)
    assert bool(batch.problems) == (limit + 1 < 20)
