"""F, second part: each rule has bytes that break it and bytes that keep it."""

from __future__ import annotations

from dissector.protocol.records import Record, build_records, new_batch
from tests.conform.scene import Scene, SceneTalk, breaks, broken, keeps

PRODUCE, METADATA = 0, 3


@keeps("F03")
@keeps("F04")
@keeps("F13")
@keeps("F16")
def one_after_the_other() -> Scene:
    talk = Scene().talk().asks(METADATA, 9, 1, topics=None).asks(METADATA, 8, 2, topics=None)
    return talk.tells(METADATA, 9, 1).tells(METADATA, 8, 2).fin().scene


@breaks("F03")
def answers_out_of_order() -> Scene:
    scene = Scene()
    talk = scene.talk()
    talk.asks(METADATA, 9, 1, topics=None).asks(METADATA, 9, 2, topics=None)
    talk.tells(METADATA, 9, 2).tells(METADATA, 9, 1)
    return scene


@breaks("F04")
def nobody_asked() -> Scene:
    scene = Scene()
    talk = scene.talk().asks(METADATA, 9, 1, topics=None).tells(METADATA, 9, 1)
    talk.tells(METADATA, 9, 1)
    return scene


@breaks("F05")
def acks_0_is_answered() -> Scene:
    scene = Scene()
    talk = scene.talk().asks(PRODUCE, 9, 1, acks=0, timeout_ms=10)
    talk.tells(PRODUCE, 9, 1).asks(METADATA, 9, 2, topics=None).tells(METADATA, 9, 2)
    return scene


@keeps("F05")
def acks_0_is_not_answered() -> Scene:
    scene = Scene()
    talk = scene.talk().asks(PRODUCE, 9, 1, acks=0, timeout_ms=10)
    talk.asks(METADATA, 9, 2, topics=None).tells(METADATA, 9, 2)
    return scene


def _sent_without_acks(records: bytes) -> SceneTalk:
    data = [{"name": "orders", "partition_data": [{"index": 0, "records": records}]}]
    return Scene().talk().asks(PRODUCE, 9, 1, acks=0, timeout_ms=10, topic_data=data)


BATCH = build_records([new_batch([Record(value=b"lamp")])])
SPOILT = BATCH[:20] + bytes([BATCH[20] ^ 1]) + BATCH[21:]


@breaks("F06", "B01")
def goes_on_after_a_spoilt_batch() -> Scene:
    talk = _sent_without_acks(SPOILT).asks(METADATA, 9, 2, topics=None)
    return talk.tells(METADATA, 9, 2).scene


@keeps("F06", "B01")
def ends_after_a_spoilt_batch() -> Scene:
    return _sent_without_acks(SPOILT).asks(METADATA, 9, 2, topics=None).fin().scene


@breaks("F16")
def one_is_passed_over() -> Scene:
    scene = Scene()
    talk = scene.talk()
    talk.asks(METADATA, 9, 1, topics=None).asks(METADATA, 9, 2, topics=None)
    talk.tells(METADATA, 9, 2).fin()
    return scene


def test_without_the_end_of_the_connection_nothing_is_passed_over() -> None:
    scene = Scene()
    talk = scene.talk()
    talk.asks(METADATA, 9, 1, topics=None).asks(METADATA, 9, 2, topics=None)
    verdict = talk.tells(METADATA, 9, 2).scene.judge()
    assert broken(verdict) == []
    assert verdict.tallies["F16"].unjudged == {"the capture ends before the connection does": 1}


@breaks("F13")
def highest_id() -> Scene:
    scene = Scene()
    scene.talk().asks(METADATA, 9, 2**31 - 1, topics=None).tells(METADATA, 9, 2**31 - 1)
    return scene
