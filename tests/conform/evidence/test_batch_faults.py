"""Each problem of a batch belongs to a rule, or is a limit of the decoder."""

from __future__ import annotations

import pytest

from conform.evidence.batch_faults import LIMIT_EXCEEDED, batch_faults
from dissector.protocol.records import Limits, build_records, new_message_set, parse_records
from dissector.protocol.records.layout import zigzag
from dissector.protocol.records.record import write_records
from tests.conform.produce_scenes import RECORDS, batch, edited

GOOD = batch()


def rules(data: bytes, **limits: int) -> list[str]:
    found = parse_records(data, limits=Limits(**limits), may_be_cut=False)
    return [fault.rule for each in found for fault in batch_faults(each)]


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (GOOD.to_bytes()[:-1] + b"\1", "B01"),
        (GOOD.to_bytes()[:-1], "B03"),
        (edited(GOOD, records_count=-1), "B04"),
        (edited(GOOD, records_count=3), "B04"),
        (edited(GOOD, payload=(GOOD.payload or b"") + b"\0"), "B04"),
        (edited(GOOD, attributes=1), "B04"),
        (edited(GOOD, attributes=4), "B04"),
        (edited(GOOD, payload=zigzag(99) + bytes(20)), "B09"),
        (edited(GOOD, attributes=7), "B11"),
        (edited(GOOD, attributes=3), "B12"),
        (edited(GOOD, attributes=2), "B13"),
    ],
)
def test_problems_of_batches(data: bytes, rule: str) -> None:
    assert rules(data)[:1] == [rule]


def test_problems_of_headers() -> None:
    payload = write_records(GOOD.records).replace(b"\x02h", b"\x7fh")
    assert rules(edited(GOOD, payload=payload)) == ["B10"]


def test_problems_of_control_records() -> None:
    assert rules(edited(GOOD, attributes=0x20)) == ["B20", "B20"]


@pytest.mark.parametrize(("codec", "rule"), [("gzip", "B04"), ("lz4", "B12"), ("snappy", "B13")])
def test_problems_of_wrappers(codec: str, rule: str) -> None:
    (wrapper,) = new_message_set(RECORDS, magic=1, codec=codec)
    data = bytearray(wrapper.to_bytes())
    at = 12 + 22
    data[at:] = bytes(len(data) - at)
    (read,) = parse_records(bytes(data))
    assert rules(read.to_bytes(fix_crc=True)) == [rule]


def test_problems_of_messages() -> None:
    old = build_records(new_message_set(RECORDS[:1], magic=1))
    (read,) = parse_records(old[:26] + b"\0\0\0\x70" + old[30:])
    assert rules(old[:-1] + b"X") == ["B02"]
    assert rules(read.to_bytes(fix_crc=True)) == ["B03"]


def test_limits_of_the_decoder_belong_to_no_rule() -> None:
    assert rules(batch(RECORDS * 99, codec="gzip").to_bytes(), max_decompressed_bytes=9) == [
        LIMIT_EXCEEDED
    ]
    assert set(rules(GOOD.to_bytes(), max_records=1)) == {LIMIT_EXCEEDED}
