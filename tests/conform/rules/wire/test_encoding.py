"""Rules E: scenes that break and keep each rule."""

from __future__ import annotations

from uuid import UUID

from tests import default_frames
from tests.conform.scene import Scene, breaks, keeps
from tests.dissector.cli.cli_traffic import request_frame, response_frame

PRODUCE, FETCH, METADATA, DESCRIBE_TOPIC_PARTITIONS = 0, 1, 3, 75
TOPIC = UUID(int=7)


def swapped(frame: bytes, old: bytes, new: bytes) -> bytes:
    """Return a frame with bytes replaced that occur once."""
    assert frame.count(old) == 1, frame
    return default_frames.sized(frame[4:].replace(old, new))


def asks(frame: bytes) -> Scene:
    """Return a scene with this request only."""
    scene = Scene()
    scene.connect().client(frame)
    return scene


def answered_with(key: int, version: int, frame: bytes) -> Scene:
    """Return a scene with a request and a frame of correlation id 1 as response."""
    scene = Scene()
    scene.connect().request(key, version, 1).broker(frame)
    return scene


def metadata(version: int = 9, **values: object) -> bytes:
    return default_frames.request(METADATA, version, 1, topics=[{"name": "orders"}], **values)


@keeps("E01")
@keeps("E02")
@keeps("E03")
@keeps("E04")
@keeps("E05")
@keeps("E07")
@keeps("E09")
@keeps("E10")
@keeps("E11")
@keeps("E12")
@keeps("E13")
@keeps("E14")
def written_as_kafka_does() -> Scene:
    return answered_with(METADATA, 9, response_frame(METADATA, 9, 1, cluster_id="grüße"))


@keeps("E03")
@keeps("E05")
@keeps("E07")
def unknown_tags() -> Scene:
    return asks(metadata(unknown_tags={5: b"", 9: b"later"}))


@breaks("E01", "F02")
def endless_varint() -> Scene:
    return asks(swapped(metadata(), b"\x07orders", b"\xff\xff\xff\xff\xff\x01orders"))


@breaks("E02")
def long_varint() -> Scene:
    return asks(swapped(metadata(), b"\x07orders", b"\x87\x00orders"))


@breaks("E03")
def tags_out_of_order() -> Scene:
    frame = metadata(unknown_tags={5: b"five", 9: b"nine"})
    return asks(swapped(frame, b"\x05\x04five\x09\x04nine", b"\x09\x04nine\x05\x04five"))


@breaks("E04", "F02")
def tag_beyond_the_end() -> Scene:
    return asks(swapped(metadata(unknown_tags={5: b"five"}), b"\x05\x04five", b"\x05\x7ffive"))


@breaks("E04", "F02")
def field_shorter_than_its_size() -> Scene:
    frame = response_frame(FETCH, 16, 1, node_endpoints=[{"node_id": 3, "host": "h"}])
    return answered_with(FETCH, 16, swapped(frame, b"\x00\x0d\x02\x00", b"\x00\x0c\x02\x00"))


@breaks("E05", "F02")
def tag_twice() -> Scene:
    frame = metadata(unknown_tags={5: b"five", 9: b"nine"})
    return asks(swapped(frame, b"\x09\x04nine", b"\x05\x04nine"))


@breaks("E06", "F02")
def section_in_an_old_version() -> Scene:
    return asks(default_frames.sized(metadata(8)[4:] + b"\0"))


@keeps("E06")
def old_version_without_section() -> Scene:
    return asks(metadata(8))


@breaks("E07")
def default_is_written() -> Scene:
    # The last byte of the body is its empty tag section: tag 0, one byte, an array of none.
    frame = response_frame(FETCH, 16, 1)
    return answered_with(FETCH, 16, default_frames.sized(frame[4:-1] + b"\x01\x00\x01\x01"))


@breaks("E09")
def null_name() -> Scene:
    return asks(swapped(metadata(), b"\x07orders", b"\x00"))


@breaks("E09")
def null_name_of_old() -> Scene:
    return asks(swapped(metadata(8), b"\x00\x06orders", b"\xff\xff"))


@breaks("E10", "F02")
def length_below_null() -> Scene:
    return asks(swapped(metadata(8), b"\x00\x06orders", b"\xff\xfeorders"))


@breaks("E10", "F02")
def length_beyond_the_end() -> Scene:
    return asks(swapped(metadata(), b"\x07orders", b"\x70orders"))


@breaks("E11", "B22")
def invalid_utf8() -> Scene:
    return asks(swapped(metadata(), b"\x07orders", b"\x07orde\xff\xfe"))


@breaks("E12")
def boolean_of_two() -> Scene:
    frame = metadata(allow_auto_topic_creation=True, include_topic_authorized_operations=True)
    return asks(default_frames.sized(frame[4:-2] + b"\x02\x00"))


@breaks("E13", "F02")
def array_beyond_the_end() -> Scene:
    return asks(swapped(metadata(8), b"\x00\x00\x00\x01\x00\x06", b"\x70\x00\x00\x01\x00\x06"))


@breaks("E14")
def invalid_null_mark() -> Scene:
    frame = request_frame(DESCRIBE_TOPIC_PARTITIONS, 0, 1, cursor={"topic_name": "orders"})
    return asks(swapped(frame, b"\x01\x07orders", b"\x05\x07orders"))


def _fetch(topic_id: UUID) -> Scene:
    topics = [{"topic_id": topic_id, "partitions": [{"fetch_offset": 3}]}]
    return asks(request_frame(FETCH, 13, 1, session_epoch=-1, topics=topics))


@breaks("E15")
def topic_without_id() -> Scene:
    return _fetch(UUID(int=0))


@keeps("E15")
def topic_with_id() -> Scene:
    return _fetch(TOPIC)
