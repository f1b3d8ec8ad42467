"""Rules T, part 3: scenes that break and keep each rule."""

from __future__ import annotations

from tests.conform.scene import Scene, SceneExchange, breaks, broken, keeps, scene_of

INIT, ADD_OFFSETS, END, COMMIT = 22, 25, 26, 28


def _init(number: int = 7, epoch: int = 0, name: str | None = "t") -> SceneExchange:
    asks = {"transactional_id": name, "transaction_timeout_ms": 9}
    return INIT, 2, asks, {"producer_id": number, "producer_epoch": epoch}


def _who(number: int, epoch: int) -> dict[str, object]:
    return {"transactional_id": "t", "producer_id": number, "producer_epoch": epoch}


def _adds(number: int = 7, epoch: int = 0, error: int = 0, group: str = "g") -> SceneExchange:
    return ADD_OFFSETS, 3, _who(number, epoch) | {"group_id": group}, {"error_code": error}


def _commits(group: str = "g") -> SceneExchange:
    parts = [{"partition_index": 0}]
    topics = [{"name": "orders", "partitions": parts}]
    asks = _who(7, 0) | {"group_id": group, "topics": topics, "generation_id_or_member_epoch": -1}
    return COMMIT, 3, asks, {"topics": topics}


def _ends(epoch: int = 0) -> SceneExchange:
    return END, 3, _who(7, epoch) | {"committed": True}, {}


@keeps("T10")
@keeps("T11")
@keeps("T12")
def usual_producer() -> Scene:
    return scene_of(_init(), _adds(), _commits(), _ends(), _init(epoch=1), _adds(epoch=1), _ends(1))


@breaks("T10")
def a_fenced_producer_is_served() -> Scene:
    return scene_of(_init(), _init(epoch=1), _adds())


@breaks("T10")
def another_producer_is_served() -> Scene:
    return scene_of(_init(), _adds(8))


def test_refusing_a_fenced_producer_is_correct() -> None:
    assert broken(scene_of(_init(), _init(epoch=1), _adds(error=90)).judge()) == []


@breaks("T11")
def an_id_is_given_twice() -> Scene:
    return scene_of(_init(name=None), _init(name=None))


@breaks("T12")
def offsets_of_another_group() -> Scene:
    return scene_of(_init(), _adds(), _commits("h"))


@breaks("T07")
def ends_a_transaction_never_begun() -> Scene:
    return scene_of(_init(), _ends())


@breaks("T07")
def ends_a_refused_transaction() -> Scene:
    end = END, 3, _who(7, 0) | {"committed": True}, {"error_code": 48}
    return scene_of(_init(), _adds(error=51), end)
