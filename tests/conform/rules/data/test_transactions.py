"""Rules T, part 2: scenes that break and keep each rule."""

from __future__ import annotations

from typing import Any

from dissector.protocol.records import Record
from tests.conform.produce_scenes import NOW_MS, batch, edited, fetched, produce
from tests.conform.scene import Scene, SceneConnection, breaks, broken, keeps

INIT, ADD_PARTITIONS, ADD_OFFSETS, END = 22, 24, 25, 26
NAME = "till"
PRODUCER = {"producer_id": 7, "producer_epoch": 0}


class TransactionScene:
    """A transactional producer with its own connections to its coordinator and a leader."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.coordinator = self.scene.connect()
        self.leader = self.scene.connect(broker="10.0.0.3")
        self._number = 0
        self._sequence = 0

    def _exchange(
        self, key: int, version: int, request: dict[str, Any], response: dict[str, Any]
    ) -> TransactionScene:
        self._number += 1
        connection: SceneConnection = self.coordinator
        connection.request(key, version, self._number, **request)
        connection.response(key, version, self._number, **response)
        return self

    def init(self, epoch: int = 0, **request: Any) -> TransactionScene:
        request = {"transactional_id": NAME, "transaction_timeout_ms": 60000} | request
        request = {"producer_id": -1, "producer_epoch": -1} | request
        return self._exchange(INIT, 4, request, PRODUCER | {"producer_epoch": epoch})

    def adds(self, *partitions: int) -> TransactionScene:
        topics = [{"name": "orders", "partitions": list(partitions)}]
        head = {f"v3_and_below_{name}": value for name, value in PRODUCER.items()}
        request = head | {"v3_and_below_transactional_id": NAME, "v3_and_below_topics": topics}
        results = [{"partition_index": partition} for partition in partitions]
        results_by_topic = [{"name": "orders", "results_by_partition": results}]
        return self._exchange(
            ADD_PARTITIONS, 3, request, {"results_by_topic_v3_and_below": results_by_topic}
        )

    def adds_offsets(self) -> TransactionScene:
        request = PRODUCER | {"transactional_id": NAME, "group_id": "g"}
        return self._exchange(ADD_OFFSETS, 3, request, {})

    def writes(self, partitions: int = 1, version: int = 9) -> TransactionScene:
        """Write to partitions 0, 1, and so on."""
        self._number += 1
        data = batch(**PRODUCER, base_sequence=self._sequence, transactional=True).to_bytes()
        fields = [data] * partitions
        options = {"version": version, "base_offset": self._sequence, "transactional_id": NAME}
        produce(self.leader, self._number, *fields, **options)
        self._sequence += 2
        return self

    def ends(self, *, committed: bool = True, error: int = 0, **response: Any) -> TransactionScene:
        request = PRODUCER | {"transactional_id": NAME, "committed": committed}
        version = 5 if response else 3
        return self._exchange(END, version, request, {"error_code": error} | response)


@keeps("T04")
@keeps("T05")
@keeps("T07")
def usual_transactions() -> Scene:
    till = TransactionScene().init().adds(0).writes().ends().adds_offsets().ends(committed=False)
    return till.adds(0).adds(1).writes(2).ends().scene


@keeps("T07")
def same_end_twice() -> Scene:
    return TransactionScene().init().adds(0).ends().ends().scene


@keeps("T04")
def ends_with_the_next_epoch() -> Scene:
    return TransactionScene().init().ends(producer_id=7, producer_epoch=1).scene


@keeps("T04")
def initialised_twice() -> Scene:
    return TransactionScene().init().init(1).init(3, producer_id=7, producer_epoch=2).scene


@breaks("T04")
def epoch_goes_down() -> Scene:
    return TransactionScene().init(3).init(2).scene


@breaks("T04", "T11")
def epoch_is_assigned_twice() -> Scene:
    return TransactionScene().init(3).init(3).scene


@breaks("T04")
def epoch_of_the_request_stays() -> Scene:
    return TransactionScene().init(3, producer_id=7, producer_epoch=3).scene


@breaks("T04")
def ends_with_the_same_epoch() -> Scene:
    return TransactionScene().init().ends(producer_id=7, producer_epoch=0).scene


@breaks("T05")
def second_partition_was_not_added() -> Scene:
    return TransactionScene().init().adds(0).writes(2).ends().scene


@breaks("T07")
def nothing_to_end() -> Scene:
    return TransactionScene().init().ends(error=48).scene


@breaks("T07")
def same_end_is_refused() -> Scene:
    return TransactionScene().init().adds(0).ends().ends(error=48).scene


def log(*parts: tuple[int, int, bool]) -> Scene:
    """Return a scene with fetched batches of producer 7: offset, epoch, whether a marker."""
    data = b""
    for offset, epoch, is_marker in parts:
        records = [Record(key=bytes(4), value=bytes(6), timestamp=NOW_MS)]
        producer = {"producer_id": 7, "producer_epoch": epoch, "base_sequence": 0}
        whole = batch(records, base_offset=offset, transactional=True, **producer)
        data += edited(whole, attributes=0x30 if is_marker else 0x10)
    return fetched(data)


@keeps("T08")
def marker_between() -> Scene:
    return log((0, 0, False), (1, 0, False), (2, 0, True), (3, 1, False))


@breaks("T08")
def no_marker_between() -> Scene:
    return log((0, 0, False), (1, 0, False), (2, 1, False))


def test_a_hole_in_the_log_has_no_findings() -> None:
    verdict = log((0, 0, False), (3, 1, False)).judge()
    assert broken(verdict) == []
    assert not verdict.tallies["T08"].judged


def test_a_transaction_without_its_beginning_has_no_findings() -> None:
    scene = TransactionScene().init().adds(0).writes(2).ends().scene
    scene.lose(0, 1)
    verdict = scene.judge()
    assert broken(verdict) == []
    assert verdict.tallies["T05"].unjudged


def test_partitions_added_on_another_connection_count() -> None:
    till = TransactionScene().init()
    till.coordinator, first = till.scene.connect(), till.coordinator
    till.adds(0)
    till.coordinator = first
    verdict = till.writes().ends().scene.judge()
    assert broken(verdict) == []
    assert verdict.tallies["T05"].judged


def test_produce_v12_adds_partitions_implicitly() -> None:
    verdict = TransactionScene().init().adds_offsets().writes(version=12).ends().scene.judge()
    assert broken(verdict) == []
