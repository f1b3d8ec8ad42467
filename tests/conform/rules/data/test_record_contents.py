"""Rules B, part 2: scenes that break and keep each rule."""

from __future__ import annotations

from dataclasses import replace

from dissector.protocol.records import build_records, new_message_set, parse_records
from dissector.protocol.records.compression import compress
from dissector.protocol.records.record import write_records
from tests.conform.produce_scenes import NOW_MS, RECORDS, batch, edited, fetched, produced
from tests.conform.scene import Scene, breaks, keeps

GOOD = batch()
GOOD_BYTES = GOOD.to_bytes()
OLD = build_records(new_message_set(RECORDS, magic=1))


@keeps("B04")
@keeps("B05")
@keeps("B06")
@keeps("B08")
@keeps("B11")
def whole_batch() -> Scene:
    return produced(GOOD_BYTES)


@keeps("B06")
@keeps("B11")
def message_set() -> Scene:
    return fetched(OLD, version=2)


@keeps("B01")
@keeps("B05")
@keeps("B06")
def compacted_batch() -> Scene:
    kept = [record._replace(offset_delta=3 + 4 * at) for at, record in enumerate(GOOD.records)]
    return fetched(edited(GOOD, payload=write_records(kept), last_offset_delta=9))


@keeps("B04")
def emptied_batch() -> Scene:
    return fetched(edited(GOOD, payload=b"", records_count=0))


@keeps("B11")
def broker_sets_the_time() -> Scene:
    return fetched(edited(GOOD, attributes=8, max_timestamp=NOW_MS + 77))


@breaks("B04")
def count_too_high() -> Scene:
    return produced(edited(GOOD, records_count=3, last_offset_delta=2))


@breaks("B04")
def count_too_low() -> Scene:
    return fetched(edited(GOOD, records_count=1))


@breaks("B04")
def no_records_produced() -> Scene:
    return produced(edited(GOOD, payload=b"", records_count=0, last_offset_delta=-1))


@breaks("B04")
def torn_gzip() -> Scene:
    torn = compress(1, GOOD.payload or b"")[:-9]
    return produced(edited(GOOD, attributes=1, payload=torn))


@breaks("B05")
def last_delta_too_high() -> Scene:
    return produced(edited(GOOD, last_offset_delta=5))


@breaks("B05")
def last_delta_too_low() -> Scene:
    return fetched(edited(GOOD, last_offset_delta=0))


@breaks("B06")
def deltas_from_one() -> Scene:
    shifted = [record._replace(offset_delta=at + 1) for at, record in enumerate(GOOD.records)]
    return produced(edited(GOOD, payload=write_records(shifted)))


@breaks("B06")
def equal_deltas() -> Scene:
    equal = [record._replace(offset_delta=1) for record in GOOD.records]
    return fetched(edited(GOOD, payload=write_records(equal)))


@breaks("B06")
def wrapper_before_its_messages() -> Scene:
    (wrapper,) = new_message_set(RECORDS * 3, magic=1, codec="gzip")
    (read,) = parse_records(wrapper.to_bytes())
    return fetched(replace(read, offset=2).to_bytes(fix_crc=True), version=2)


@breaks("B08")
def stale_maximum() -> Scene:
    return produced(edited(GOOD, max_timestamp=NOW_MS))


@breaks("B08")
def producer_sets_append_time() -> Scene:
    return produced(edited(GOOD, attributes=8))


@breaks("B11")
def unknown_bits() -> Scene:
    return produced(edited(GOOD, attributes=0x80))


@breaks("B11")
def unknown_codec() -> Scene:
    return produced(edited(GOOD, attributes=5))
