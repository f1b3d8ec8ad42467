"""Rules B, part 1: scenes that break and keep each rule."""

from __future__ import annotations

import pytest

from dissector.protocol.records import build_records, new_message_set
from dissector.protocol.records.compression import compress
from dissector.protocol.records.layout import zigzag
from dissector.protocol.records.record import write_records
from tests.conform.produce_scenes import NOW_MS, RECORDS, batch, edited, fetched, produced
from tests.conform.scene import Case, Scene, breaks, findings, keeps

GOOD = batch()
GOOD_BYTES = GOOD.to_bytes()
OLD = build_records(new_message_set(RECORDS, magic=1))


@keeps("B01")
@keeps("B03")
@keeps("B09")
@keeps("B10")
def whole_batch() -> Scene:
    return produced(GOOD_BYTES)


@keeps("B03")
def cut_off_by_the_broker() -> Scene:
    second = batch(base_offset=2).to_bytes()
    return fetched(GOOD_BYTES + second[:-4], version=2 + 2)


@keeps("B02")
@keeps("B03")
@keeps("B06")
def message_set() -> Scene:
    return fetched(OLD, version=2)


@keeps("B12")
def lz4_frame() -> Scene:
    return produced(batch(codec="lz4").to_bytes())


@keeps("B12")
def lz4_of_magic_0() -> Scene:
    return fetched(build_records(new_message_set(RECORDS, magic=0, codec="lz4")), version=1)


@keeps("B13")
def bare_snappy() -> Scene:
    import snappy

    return produced(edited(GOOD, attributes=2, payload=snappy.compress(GOOD.payload)))


@keeps("B13")
def framed_snappy() -> Scene:
    return produced(batch(codec="snappy").to_bytes())


@breaks("B01")
def wrong_crc() -> Scene:
    return produced(GOOD_BYTES[:-6] + b"X" + GOOD_BYTES[-5:])


@breaks("B02")
def wrong_crc_of_message() -> Scene:
    return fetched(OLD[:-2] + b"X" + OLD[-1:], version=2)


@breaks("B02")
def wrong_crc_inside_wrapper() -> Scene:
    (wrapper,) = new_message_set(RECORDS, magic=1, codec="gzip")
    inner = bytearray(build_records(new_message_set(RECORDS, magic=1)))
    inner[12] ^= 1
    value = compress(1, bytes(inner), magic=1)
    wrapper.payload = (-1).to_bytes(4, "big", signed=True) + len(value).to_bytes(4, "big") + value
    wrapper.message_size = 22 + len(value)
    return fetched(wrapper.to_bytes(fix_crc=True), version=2)


@breaks("B03")
def unknown_magic() -> Scene:
    return fetched(GOOD_BYTES[:16] + b"\x03" + GOOD_BYTES[17:])


@breaks("B03")
def too_short_for_a_header() -> Scene:
    return fetched(GOOD_BYTES[:8] + b"\x00\x00\x00\x20" + GOOD_BYTES[12 : 12 + 32])


@breaks("B03")
def cut_off_by_a_producer() -> Scene:
    return produced(GOOD_BYTES[:-4])


@breaks("B09")
def record_too_long() -> Scene:
    payload = write_records(GOOD.records[:1])
    longer = zigzag(len(payload)) + payload[1:] + b"\0"
    return produced(edited(GOOD, payload=longer, records_count=1, last_offset_delta=0))


@breaks("B10")
def null_header_key() -> Scene:
    payload = write_records(GOOD.records[:1])
    at = payload.index(b"\x02h")
    nameless = zigzag(len(payload) - 2) + payload[1:at] + b"\x01" + payload[at + 2 :]
    return produced(
        edited(GOOD, payload=nameless, records_count=1, last_offset_delta=0, max_timestamp=NOW_MS)
    )


@breaks("B12")
def no_lz4_frame() -> Scene:
    return produced(edited(GOOD, attributes=3))


@breaks("B13")
def no_snappy() -> Scene:
    return produced(edited(GOOD, attributes=2, payload=b"\xff\x06\x00\x00sNaPpY"))


@pytest.mark.parametrize(
    ("scene", "width"),
    [(wrong_crc, 4), (unknown_magic, 1), (wrong_crc_of_message, 4)],
)
def test_findings_point_at_the_field(scene: Case, width: int) -> None:
    (found,) = (each for each in findings(scene().judge()) if each.rule.id[0] == "B")
    assert found.span is not None
    assert found.span[1] - found.span[0] == width
