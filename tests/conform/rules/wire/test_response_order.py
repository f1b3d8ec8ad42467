"""Rules F, part 2: scenes that break and keep each rule."""

from __future__ import annotations

import pytest

from conform.judge import Judge
from dissector import open_capture
from dissector.protocol.records import Record, build_records, new_batch
from tests.conform.scene import Scene, SceneConnection, breaks, broken, capture_rules, keeps
from tests.corpus import MADE

PRODUCE, METADATA, FIND_COORDINATOR = 0, 3, 10


@keeps("F03")
@keeps("F04")
@keeps("F13")
@keeps("F16")
def one_after_the_other() -> Scene:
    connection = (
        Scene().connect().request(METADATA, 9, 1, topics=None).request(METADATA, 8, 2, topics=None)
    )
    return connection.response(METADATA, 9, 1).response(METADATA, 8, 2).fin().scene


@keeps("F04")
@keeps("F16")
def coordinator_of_kafka_0_8_2() -> Scene:
    connection = Scene().connect().request(FIND_COORDINATOR, 0, 7, key="g")
    connection.response(FIND_COORDINATOR, 0, 0, node_id=1, host="h", port=9092)
    connection.request(METADATA, 0, 8, topics=[]).response(METADATA, 0, 8)
    return connection.fin().scene


@breaks("F16")
def answers_a_request_after_an_unanswered_one() -> Scene:
    connection = Scene().connect().request(FIND_COORDINATOR, 0, 7, key="g")
    connection.request(METADATA, 0, 8, topics=[]).response(METADATA, 0, 8)
    return connection.fin().scene


@pytest.mark.parametrize("name", ["gssapi_v0.pcap", "gssapi_09_nohandshake.pcap"])
def test_kerberos_logins_are_no_violation(name: str) -> None:
    verdict = Judge(capture_rules()).judge_capture(open_capture(MADE / name))
    assert not {"F01", "F04", "F16"} & set(broken(verdict))


@breaks("F03")
def answers_out_of_order() -> Scene:
    scene = Scene()
    connection = scene.connect()
    connection.request(METADATA, 9, 1, topics=None).request(METADATA, 9, 2, topics=None)
    connection.response(METADATA, 9, 2).response(METADATA, 9, 1)
    return scene


@breaks("F04")
def response_without_a_request() -> Scene:
    scene = Scene()
    connection = scene.connect().request(METADATA, 9, 1, topics=None).response(METADATA, 9, 1)
    connection.response(METADATA, 9, 1)
    return scene


@breaks("F05")
def acks_0_is_answered() -> Scene:
    scene = Scene()
    connection = scene.connect().request(PRODUCE, 9, 1, acks=0, timeout_ms=10)
    connection.response(PRODUCE, 9, 1).request(METADATA, 9, 2, topics=None).response(METADATA, 9, 2)
    return scene


@keeps("F05")
def acks_0_is_not_answered() -> Scene:
    scene = Scene()
    connection = scene.connect().request(PRODUCE, 9, 1, acks=0, timeout_ms=10)
    connection.request(METADATA, 9, 2, topics=None).response(METADATA, 9, 2)
    return scene


def _sent_without_acks(records: bytes) -> SceneConnection:
    data = [{"name": "orders", "partition_data": [{"index": 0, "records": records}]}]
    return Scene().connect().request(PRODUCE, 9, 1, acks=0, timeout_ms=10, topic_data=data)


BATCH = build_records([new_batch([Record(value=b"lamp")])])
INVALID_BATCH = BATCH[:20] + bytes([BATCH[20] ^ 1]) + BATCH[21:]


@breaks("F06", "B01")
def continues_after_an_invalid_batch() -> Scene:
    connection = _sent_without_acks(INVALID_BATCH).request(METADATA, 9, 2, topics=None)
    return connection.response(METADATA, 9, 2).scene


@keeps("F06", "B01")
def closes_after_an_invalid_batch() -> Scene:
    return _sent_without_acks(INVALID_BATCH).request(METADATA, 9, 2, topics=None).fin().scene


@breaks("F16")
def one_request_is_skipped() -> Scene:
    scene = Scene()
    connection = scene.connect()
    connection.request(METADATA, 9, 1, topics=None).request(METADATA, 9, 2, topics=None)
    connection.response(METADATA, 9, 2).fin()
    return scene


def test_skipped_requests_need_the_end_of_the_connection() -> None:
    scene = Scene()
    connection = scene.connect()
    connection.request(METADATA, 9, 1, topics=None).request(METADATA, 9, 2, topics=None)
    verdict = connection.response(METADATA, 9, 2).scene.judge()
    assert broken(verdict) == []
    assert verdict.tallies["F16"].unjudged == {"the capture ends before the connection does": 1}


@breaks("F13")
def highest_id() -> Scene:
    scene = Scene()
    scene.connect().request(METADATA, 9, 2**31 - 1, topics=None).response(METADATA, 9, 2**31 - 1)
    return scene
