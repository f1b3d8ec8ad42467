"""Rules L: scenes that break and keep each rule."""

from __future__ import annotations

from typing import Any

from dissector.protocol.records import build_records, new_batch
from tests.conform.fetch_scenes import fetch_request, fetch_response
from tests.conform.produce_scenes import RECORDS, batch, edited, produce
from tests.conform.scene import Scene, breaks, broken, keeps, scene_of

LIST_OFFSETS, DELETE_TOPICS = 2, 20
DATA = batch().to_bytes()


def _appended(*offsets: int) -> Scene:
    connection = Scene().connect()
    for number, offset in enumerate(offsets):
        produce(connection, number, DATA, base_offset=offset)
    return connection.scene


@keeps("L01")
def consecutive_offsets() -> Scene:
    return _appended(0, 2, 4)


@breaks("L01")
def same_offset_twice() -> Scene:
    return _appended(10, 10)


@breaks("L01")
def overlapping_offsets() -> Scene:
    return _appended(10, 11)


def test_a_recreated_topic_begins_at_0() -> None:
    connection = Scene().connect()
    produce(connection, 1, DATA, base_offset=10)
    connection.request(DELETE_TOPICS, 5, 2, topic_names=["orders"], timeout_ms=9)
    connection.response(DELETE_TOPICS, 5, 2, responses=[{"name": "orders"}])
    produce(connection, 3, DATA, base_offset=0)
    assert broken(connection.scene.judge()) == []


def _fetched(*responses: dict[str, Any], offset: int = 0) -> Scene:
    connection = Scene().connect()
    for number, each in enumerate(responses):
        fetch_request(connection, number, {0: offset})
        fetch_response(connection, number, {0: {"records": None, **each}})
    return connection.scene


@keeps("L02")
def offsets_increase() -> Scene:
    return _fetched({"high_watermark": 100}, {"high_watermark": 120, "log_start_offset": 0})


@breaks("L02")
def high_watermark_goes_back() -> Scene:
    return _fetched({}, {"high_watermark": 60, "last_stable_offset": 60})


@breaks("L02")
def log_start_goes_back() -> Scene:
    return _fetched({"log_start_offset": 40}, {"log_start_offset": 7}, offset=50)


@breaks("L02")
def appended_records_are_missing() -> Scene:
    connection = _appended(200).connect()
    fetch_request(connection, 9, {0: 0})
    fetch_response(connection, 9, {0: {"records": None}})
    return connection.scene


def _given(offset: int = 0, **partition: Any) -> Scene:
    records = build_records([new_batch(RECORDS, base_offset=offset)])
    return _fetched({"records": records, **partition})


@keeps("L03")
@keeps("L04")
def below_the_high_watermark() -> Scene:
    return _given(98)


@breaks("L03")
def above_the_high_watermark() -> Scene:
    return _given(100)


@breaks("L03")
def above_the_last_stable_offset() -> Scene:
    connection = Scene().connect()
    fetch_request(connection, 1, {0: 0}, isolation_level=1)
    records = build_records([new_batch(RECORDS, base_offset=50)])
    fetch_response(connection, 1, {0: {"records": records, "last_stable_offset": 40}})
    return connection.scene


@breaks("L04")
def other_batches_than_appended() -> Scene:
    connection = _appended(10).connect()
    fetch_request(connection, 9, {0: 0})
    records = build_records([new_batch(RECORDS, base_offset=11)])
    fetch_response(connection, 9, {0: {"records": records}})
    return connection.scene


@breaks("L04")
def leader_epoch_falls() -> Scene:
    first = edited(batch(base_offset=0), partition_leader_epoch=5)
    records = first + edited(batch(base_offset=2), partition_leader_epoch=4)
    return _fetched({"records": records})


def _listed(time: int, **partition: int) -> Scene:
    part = {"partition_index": 0, "timestamp": time}
    asks = {"replica_id": -1, "topics": [{"name": "orders", "partitions": [part]}]}
    parts = [{"partition_index": 0, "leader_epoch": -1, **partition}]
    return scene_of((LIST_OFFSETS, 4, asks, {"topics": [{"name": "orders", "partitions": parts}]}))


@keeps("L05")
def a_newer_record() -> Scene:
    return _listed(1000, timestamp=1001, offset=7)


@breaks("L05")
def an_older_record() -> Scene:
    return _listed(1000, timestamp=900, offset=7)


@breaks("L05")
def an_older_record_at_the_beginning() -> Scene:
    return _listed(1000, timestamp=900, offset=0)


@breaks("L05")
def no_end_offset() -> Scene:
    return _listed(-1, timestamp=-1, offset=-1)


@breaks("L05")
def an_end_with_a_time() -> Scene:
    return _listed(-2, timestamp=5, offset=0)
