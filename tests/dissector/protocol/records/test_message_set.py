from __future__ import annotations

import dataclasses

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder
from hypothesis import given

from dissector.errors import EncodeError
from dissector.protocol.records import (
    LegacyBatch,
    LegacyRecord,
    build_records,
    parse_records,
)
from tests.dissector.protocol.records.record_values import MESSAGE_SETS, problems


def only(data: bytes) -> LegacyBatch:
    (batch,) = parse_records(data)
    assert isinstance(batch, LegacyBatch)
    return batch


def test_header_and_meaning_are_shown() -> None:
    batch = LegacyBatch(offset=7, attributes=0x08, timestamp=5, records=[LegacyRecord(value=b"v")])
    shown = only(batch.to_bytes()).to_dict()
    assert shown["records"][0].pop("crc") == shown.pop("crc")
    assert shown == {
        "offset": 7,
        "message_size": 23,
        "magic": 1,
        "attributes": 8,
        "timestamp": 5,
        "codec": "none",
        "timestamp_type": "LogAppendTime",
        "crc_ok": True,
        "records": [
            {
                "offset": 7,
                "inner_offset": 7,
                "message_size": 23,
                "magic": 1,
                "attributes": 8,
                "timestamp": 5,
                "key": None,
                "value": b"v",
            }
        ],
    }


def test_magic_0_has_no_timestamps() -> None:
    batch = LegacyBatch(magic=0, records=[LegacyRecord(value=b"v")])
    shown = only(batch.to_bytes()).to_dict()
    assert "timestamp" not in shown
    assert shown["timestamp_type"] is None
    assert shown["records"][0]["timestamp"] is None


def test_a_wrong_crc_is_kept_and_corrected_on_request() -> None:
    good = LegacyBatch(magic=0, offset=7, records=[LegacyRecord(key=b"k")]).to_bytes()
    bad = good[:12] + b"\x00\x00\x00\x00" + good[16:]
    batch = only(bad)
    assert not batch.crc_ok
    assert build_records([batch]) == bad
    assert build_records([batch], fix_crc=True) == good


def test_other_records_in_a_wrapper() -> None:
    batch = LegacyBatch(attributes=1, timestamp=1, records=[LegacyRecord(timestamp=1, value=b"a")])
    wrapper = only(batch.to_bytes())
    records = [
        LegacyRecord(offset=40, timestamp=9, value=b"x"),
        LegacyRecord(offset=43, timestamp=4, value=b"y"),
    ]
    out = only(wrapper.with_records(records).to_bytes())
    assert out.problems == []
    assert (out.offset, out.timestamp) == (43, 9)
    assert [(r.offset, r.inner_offset, r.timestamp, r.value) for r in out.records] == [
        (40, 0, 9, b"x"),
        (43, 3, 4, b"y"),
    ]


@pytest.mark.parametrize("records", [[], [LegacyRecord(), LegacyRecord()]])
def test_without_a_codec_a_message_is_one_record(records: list[LegacyRecord]) -> None:
    with pytest.raises(EncodeError, match="need a codec"):
        LegacyBatch(timestamp=0).with_records(records).to_bytes()


def test_unencodable_values_are_errors_with_their_path() -> None:
    with pytest.raises(EncodeError, match="at least one message"):
        LegacyBatch(attributes=1, timestamp=0).to_bytes()
    with pytest.raises(EncodeError, match="timestamp"):
        LegacyBatch(records=[LegacyRecord()]).to_bytes()


def test_messages_have_no_headers() -> None:
    assert LegacyRecord().headers == ()


@given(MESSAGE_SETS)
def test_a_composed_set_round_trips(batches: list[LegacyBatch]) -> None:
    data = build_records(batches)
    out = parse_records(data)
    assert problems(out) == []

    def facts(given: list[LegacyBatch]) -> list[tuple[object, ...]]:
        return [(r.offset, r.timestamp, r.key, r.value) for b in given for r in b.records]

    assert facts(out) == facts(batches)
    assert build_records(out) == data
    anew = [dataclasses.replace(batch, payload=None) for batch in out]
    assert facts(parse_records(build_records(anew))) == facts(out)


@given(MESSAGE_SETS)
def test_aiokafka_decodes_our_message_sets(batches: list[LegacyBatch]) -> None:
    for batch in batches:
        if batch.codec == "zstd" or (batch.codec, batch.magic) == ("lz4", 0):
            continue  # its decoder supports neither
        reader = LegacyRecordBatch(batch.to_bytes(), batch.magic)
        assert reader.validate_crc()
        got = [(r.offset, r.timestamp, r.key, r.value) for r in reader]
        times = [
            None if r.timestamp == -1 else r.timestamp for r in batch.records
        ]  # its convention
        assert got == [
            (r.offset, time, r.key, r.value) for r, time in zip(batch.records, times, strict=True)
        ]


@pytest.mark.parametrize(
    ("magic", "codec"),
    [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3)],
)
def test_bytes_written_by_aiokafka(magic: int, codec: int) -> None:
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for n in range(10):
        builder.append(n, 1000 + n, b"k", b"v" * n)
    data = bytes(builder.build())
    out = parse_records(data)
    assert problems(out) == []
    rows = [(r.offset, r.timestamp, r.value) for b in out for r in b.records]
    assert rows == [(n, 1000 + n if magic else None, b"v" * n) for n in range(10)]
    assert build_records(out) == data
