"""Rules B, part 3: scenes that break and keep each rule."""

from __future__ import annotations

from dissector.protocol.records import Record, build_records, new_message_set
from tests.conform.produce_scenes import (
    NOW_MS,
    PRODUCER,
    RECORDS,
    batch,
    edited,
    fetched,
    produced,
)
from tests.conform.scene import Scene, breaks, keeps

GOOD = batch()
GOOD_BYTES = GOOD.to_bytes()
CONTROL = 0x20 | 0x10
CREATE_TOPICS, METADATA = 19, 3


def marker(key: bytes = bytes(4), value: bytes = bytes(6)) -> bytes:
    """Return a control batch with one marker."""
    whole = batch([Record(key=key, value=value, timestamp=NOW_MS)], producer_id=7, producer_epoch=0)
    return edited(whole, attributes=CONTROL)


@keeps("B07")
@keeps("B15")
@keeps("B17")
@keeps("B18")
@keeps("B22")
def plain_batch() -> Scene:
    return produced(GOOD_BYTES)


@keeps("B18")
def idempotent_batch() -> Scene:
    return produced(batch(**PRODUCER).to_bytes())


@keeps("B19")
def transactional_batch() -> Scene:
    data = batch(**PRODUCER, transactional=True).to_bytes()
    return produced(data, version=12, transactional_id="till")


@keeps("B14")
def zstd_in_a_new_version() -> Scene:
    return produced(batch(codec="zstd").to_bytes(), version=7)


@keeps("B16")
def old_fetch() -> Scene:
    return fetched(build_records(new_message_set(RECORDS, magic=1)), version=3)


@keeps("B20")
def usual_marker() -> Scene:
    return fetched(marker())


@breaks("B07")
def base_offset_of_a_producer() -> Scene:
    return produced(edited(GOOD, base_offset=12))


@breaks("B14")
def zstd_too_early() -> Scene:
    return produced(batch(codec="zstd").to_bytes(), version=6)


@breaks("B14")
def zstd_for_an_old_consumer() -> Scene:
    return fetched(batch(codec="zstd").to_bytes(), version=9)


@breaks("B15")
def two_batches() -> Scene:
    return produced(GOOD_BYTES * 2)


@breaks("B15")
def message_set_in_new_produce() -> Scene:
    return produced(build_records(new_message_set(RECORDS[:1], magic=1)))


@breaks("B16")
def batch_for_an_old_consumer() -> Scene:
    return fetched(GOOD_BYTES, version=3)


@breaks("B16")
def magic_1_for_the_oldest() -> Scene:
    return fetched(build_records(new_message_set(RECORDS, magic=1)), version=1)


@breaks("B17")
def marker_of_a_client() -> Scene:
    return produced(edited(GOOD, attributes=0x20))


@breaks("B18")
def producer_without_sequence() -> Scene:
    return produced(batch(producer_id=7, producer_epoch=0).to_bytes())


@breaks("B18")
def sequence_without_producer() -> Scene:
    return produced(batch(base_sequence=0).to_bytes())


@breaks("B19")
def transaction_without_a_producer() -> Scene:
    return produced(batch(transactional=True).to_bytes(), version=12, transactional_id="till")


@breaks("B19")
def transaction_without_its_id() -> Scene:
    return produced(batch(**PRODUCER, transactional=True).to_bytes(), version=12)


@breaks("B20")
def short_marker() -> Scene:
    return fetched(marker(value=b""))


@breaks("B20")
def short_key() -> Scene:
    return fetched(marker(key=b"\0\0"))


@breaks("B20")
def negative_version() -> Scene:
    return fetched(marker(key=b"\xff\xff\0\0"))


@breaks("B22")
def name_with_a_slash() -> Scene:
    scene = Scene()
    scene.connect().request(CREATE_TOPICS, 4, 1, topics=[{"name": "a/b", "num_partitions": 1}])
    return scene


@breaks("B22")
def broker_has_a_bad_name() -> Scene:
    scene = Scene()
    connection = scene.connect().request(METADATA, 8, 1, topics=None)
    connection.response(METADATA, 8, 1, topics=[{"name": "..", "partitions": [{"leader_id": -1}]}])
    return scene
