"""Rules X, part 1: scenes that break and keep each rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dissector.protocol.records import Record
from tests.conform.fetch_scenes import fetch_request, fetch_response
from tests.conform.produce_scenes import NOW_MS, batch, edited
from tests.conform.scene import Scene, breaks, keeps

MARKER_BITS = 0x30


def fetched(offset: int, partition: Mapping[str, Any], version: int = 11, **values: Any) -> Scene:
    """Return a scene with one fetch of one partition."""
    scene = Scene()
    connection = scene.connect()
    fetch_request(connection, 1, {0: offset}, version=version, **values)
    fetch_response(connection, 1, {0: partition}, version=version)
    return scene


def at(*offsets: int) -> bytes:
    """Return batches of two records from these offsets on."""
    return b"".join(batch(base_offset=offset).to_bytes() for offset in offsets)


def transaction(kind: int) -> bytes:
    """Return a batch of producer 7 at offset 10, and the marker that ends it (0 aborts)."""
    producer = {"producer_id": 7, "producer_epoch": 0}
    data = batch(base_offset=10, base_sequence=0, transactional=True, **producer).to_bytes()
    key = b"\0\0" + kind.to_bytes(2, "big")
    end = batch([Record(key=key, value=bytes(6), timestamp=NOW_MS)], base_offset=12, **producer)
    return data + edited(end, attributes=MARKER_BITS)


@keeps("X01")
@keeps("X02")
@keeps("X03")
@keeps("X04")
@keeps("X07")
@keeps("X09")
def from_the_middle_of_a_batch() -> Scene:
    return fetched(11, {"records": at(10, 12)})


@keeps("X01")
def above_a_hole() -> Scene:
    return fetched(11, {"records": at(20, 31)})


@keeps("X03")
def an_empty_log() -> Scene:
    return fetched(0, {"high_watermark": 0, "last_stable_offset": 0})


@keeps("X03")
def the_second_response_is_lost() -> Scene:
    scene = Scene()
    connection = scene.connect()
    for number in (1, 2):
        fetch_request(connection, number, {0: 10})
        fetch_response(connection, number, {0: {}})
    scene.lose(-1)
    return scene


@keeps("X07")
@keeps("X09")
def another_request_and_another_response_are_cut() -> Scene:
    scene = Scene()
    for number in (1, 2, 3):
        connection = scene.connect()
        fetch_request(connection, number, {0: 10})
        if number == 2:
            scene.cut(-1, 30)
        fetch_response(connection, number, {0: {}})
    scene.cut(-1, 30)
    return scene


@keeps("X02")
def second_batch_is_cut() -> Scene:
    return fetched(10, {"records": at(10, 12)[:-20]})


@keeps("X04")
def committed_transaction() -> Scene:
    return fetched(10, {"records": transaction(1), "aborted_transactions": []}, isolation_level=1)


@keeps("X04")
def aborted_transaction() -> Scene:
    listed = [{"producer_id": 7, "first_offset": 10}]
    partition = {"records": transaction(0), "aborted_transactions": listed}
    return fetched(10, partition, isolation_level=1)


@keeps("X07")
def topic_by_id() -> Scene:
    scene = Scene()
    connection = scene.connect()
    fetch_request(connection, 1, {0: 10}, version=13)
    unknown = {"error_code": 100, "high_watermark": -1}
    fetch_response(connection, 1, {0: unknown}, version=13)
    return scene


@keeps("X09")
def sent_to_another_replica() -> Scene:
    return fetched(10, {"preferred_read_replica": 2})


@breaks("X01")
def ends_before_the_offset() -> Scene:
    return fetched(12, {"records": at(10)})


@breaks("X01")
def offset_below_the_requested_one() -> Scene:
    return fetched(10, {"records": at(10, 12, 8)})


@breaks("X02")
def partial_batch() -> Scene:
    return fetched(10, {"records": at(10)[:-20]})


@breaks("X03")
def start_above_the_watermark() -> Scene:
    return fetched(120, {"log_start_offset": 110})


@breaks("X03")
def stable_above_the_watermark() -> Scene:
    return fetched(10, {"last_stable_offset": 101})


@breaks("X03")
def below_the_start() -> Scene:
    return fetched(12, {"log_start_offset": 50})


@breaks("X04")
def aborted_transaction_is_not_listed() -> Scene:
    return fetched(10, {"records": transaction(0), "aborted_transactions": []}, isolation_level=1)


@breaks("X04")
def aborted_transaction_is_listed_too_late() -> Scene:
    listed = [{"producer_id": 7, "first_offset": 11}]
    partition = {"records": transaction(0), "aborted_transactions": listed}
    return fetched(10, partition, isolation_level=1)


@breaks("X04")
def aborted_transaction_listed_for_read_uncommitted() -> Scene:
    listed = [{"producer_id": 7, "first_offset": 10}]
    return fetched(10, {"records": transaction(0), "aborted_transactions": listed})


@breaks("X07")
def error_of_later_versions() -> Scene:
    return fetched(10, {"error_code": 100, "high_watermark": -1})


@breaks("X07")
def partition_not_requested() -> Scene:
    scene = Scene()
    connection = scene.connect()
    fetch_request(connection, 1, {0: 10})
    fetch_response(connection, 1, {0: {}, 1: {}})
    return scene


@breaks("X09")
def records_beside_an_error() -> Scene:
    return fetched(10, {"records": at(10), "preferred_read_replica": 2})
