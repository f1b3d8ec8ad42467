"""Rules T, part 1: scenes that break and keep each rule."""

from __future__ import annotations

from dissector.protocol.records import Record
from tests.conform.produce_scenes import NOW_MS, batch, produce, produced
from tests.conform.scene import Scene, breaks, broken, keeps
from tests.dissector.cli.cli_traffic import request_frame, response_frame

PRODUCE = 0


def numbered(sequence: int, count: int = 2, *, epoch: int = 0, producer: int = 7) -> bytes:
    """Return a batch of an idempotent producer."""
    records = [Record(value=b"v", timestamp=NOW_MS)] * count
    fields = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": sequence}
    return batch(records, **fields).to_bytes()


def appended(*batches: tuple[bytes, int], errors: tuple[int, ...] = ()) -> Scene:
    """Return a scene with batches produced one by one, appended at these offsets."""
    scene = Scene()
    connection = scene.connect()
    for at, (data, offset) in enumerate(batches):
        error = errors[at] if errors else 0
        produce(connection, at, data, base_offset=offset, error_code=error)
    return scene


@keeps("T01")
@keeps("T02")
@keeps("T03")
@keeps("T06")
def consecutive_batches() -> Scene:
    return appended((numbered(0), 10), (numbered(2), 12), (numbered(4, 5), 14), (numbered(9), 19))


@keeps("T01")
def sequences_wrap() -> Scene:
    return appended((numbered(2**31 - 2), 10), (numbered(0), 12))


@keeps("T01")
def sequences_wrap_within_a_batch() -> Scene:
    return appended((numbered(2**31 - 1), 10), (numbered(1), 12))


@keeps("T01")
def epoch_begins_anew() -> Scene:
    return appended((numbered(4), 10), (numbered(0, epoch=1), 12))


@keeps("T01")
def interleaved_producers() -> Scene:
    other = numbered(70, producer=8)
    return appended((numbered(0), 10), (other, 12), (numbered(2), 14), (numbered(90), 20))


@keeps("T02")
def retried_batch() -> Scene:
    return appended((numbered(0), 10), (numbered(0), 10), (numbered(2), 12))


@keeps("T01")
def pipelined_behind_a_failure() -> Scene:
    batches = [(numbered(0), 10), (numbered(2), -1), (numbered(4), -1), (numbered(2), 12)]
    return appended(*batches, errors=(0, 19, 45, 0))


@breaks("T01")
def gap_is_accepted() -> Scene:
    return appended((numbered(0), 10), (numbered(5), 12))


@breaks("T01")
def gap_is_refused() -> Scene:
    return appended((numbered(0), 10), (numbered(5), -1), errors=(0, 45))


@breaks("T01")
def epoch_begins_in_the_middle() -> Scene:
    return appended((numbered(0), 10), (numbered(2, epoch=1), 12))


@breaks("T02")
def appended_twice() -> Scene:
    return appended((numbered(0), 10), (numbered(0), 12))


@breaks("T02", "L02")
def appended_again_at_the_beginning() -> Scene:
    return appended((numbered(0), 10), (numbered(0), 0))


def in_flight(count: int) -> Scene:
    """Return a scene with this number of batches in flight."""
    scene = Scene()
    connection = scene.connect()
    for at in range(count):
        parts = [{"index": 0, "records": numbered(2 * at)}]
        topic = {"name": "orders", "partition_data": parts}
        connection.client(request_frame(PRODUCE, 9, at, acks=-1, topic_data=[topic]))
    for at in range(count):
        answer = {"name": "orders", "partition_responses": [{"base_offset": 10 + 2 * at}]}
        connection.broker(response_frame(PRODUCE, 9, at, responses=[answer]))
    return scene


@keeps("T03")
def five_in_flight() -> Scene:
    return in_flight(5)


@breaks("T03")
def six_in_flight() -> Scene:
    return in_flight(6)


@keeps("T03")
def later_packets_are_lost() -> Scene:
    scene = appended((numbered(0), 10), (numbered(2), 12), (numbered(4), 14))
    scene.lose(2)
    return scene


@keeps("T06")
def no_acks() -> Scene:
    return produced(batch().to_bytes(), acks=1)


@breaks("T06")
def acks_of_two() -> Scene:
    return produced(batch().to_bytes(), acks=2, error_code=21, base_offset=-1)


@breaks("T06")
def acks_of_the_leader_alone() -> Scene:
    return produced(numbered(0), acks=1)


def test_a_gap_in_the_log_has_no_findings() -> None:
    verdict = appended((numbered(0), 10), (numbered(5), 13)).judge()
    assert broken(verdict) == []
    assert not verdict.tallies["T01"].judged
    assert verdict.tallies["T01"].unjudged


def test_refusals_after_lost_packets_are_not_judged() -> None:
    scene = appended((numbered(0), 10), (numbered(2), 12), (numbered(4), -1), errors=(0, 0, 45))
    scene.lose(3)
    assert broken(scene.judge()) == []
