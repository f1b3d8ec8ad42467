"""Rules G07 to G09: scenes that break and keep each rule."""

from __future__ import annotations

from typing import Any

from tests.conform.scene import Scene, SceneConnection, breaks, broken, keeps

OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP = 8, 9, 11
END_TXN, TXN_OFFSET_COMMIT = 26, 28
UNSTABLE, PRODUCER_FENCED = 88, 90


def _joined(number: int = 90, connection: SceneConnection | None = None) -> SceneConnection:
    """Join the group, on this or on a new connection."""
    wish = {"group_id": "g", "member_id": "m", "protocols": [{"name": "range"}]}
    connection = (connection or Scene().connect()).request(
        JOIN_GROUP, 5, number, **wish, protocol_type="made-up"
    )
    response = {"generation_id": 1, "leader": "m", "member_id": "m", "protocol_name": "range"}
    return connection.response(JOIN_GROUP, 5, number, **response, members=[{"member_id": "m"}])


def _commits(
    connection: SceneConnection, number: int, generation: int = 1, error: int = 0
) -> SceneConnection:
    partition = {"partition_index": 0, "committed_offset": 42, "committed_metadata": "here"}
    who = {"group_id": "g", "member_id": "m", "generation_id_or_member_epoch": generation}
    topics = [{"name": "orders", "partitions": [partition]}]
    connection.request(OFFSET_COMMIT, 7, number, **who, topics=topics)
    responses = [{"name": "orders", "partitions": [{"partition_index": 0, "error_code": error}]}]
    return connection.response(OFFSET_COMMIT, 7, number, topics=responses)


def _asks_for(
    connection: SceneConnection, number: int, *partitions: int, **more: Any
) -> SceneConnection:
    topics = [{"name": "orders", "partition_indexes": list(partitions)}]
    return connection.request(
        OFFSET_FETCH, 7, number, **{"group_id": "g", "topics": topics, **more}
    )


def _offset(partition: int = 0, offset: int = 42, **more: Any) -> dict[str, Any]:
    partition_response = {
        "partition_index": partition,
        "committed_offset": offset,
        "metadata": "here",
    }
    return {**partition_response, **more}


def _returns(
    connection: SceneConnection, number: int, *partitions: dict[str, Any]
) -> SceneConnection:
    topics = [{"name": "orders", "partitions": list(partitions)}]
    return connection.response(OFFSET_FETCH, 7, number, topics=topics)


def _fetches(connection: SceneConnection, number: int, **partition: Any) -> SceneConnection:
    return _returns(_asks_for(connection, number, 0), number, _offset(**partition))


@keeps("G07")
@keeps("G08")
def offset_is_returned() -> Scene:
    return _fetches(_commits(_joined(), 1), 2).scene


@breaks("G07")
def offset_is_returned_without_its_metadata() -> Scene:
    return _fetches(_commits(_joined(), 1), 2, metadata="").scene


@breaks("G07")
def another_offset_is_returned() -> Scene:
    return _fetches(_commits(_joined(), 1), 2, offset=41).scene


def test_others_may_have_committed_before_the_member_rejoined() -> None:
    connection = _joined(2, _commits(_joined(), 1))
    assert broken(_fetches(connection, 3, offset=50).scene.judge()) == []


def test_with_broker_assignment_others_may_commit_at_any_time() -> None:
    verdict = _fetches(_commits(Scene().connect(), 1), 2, offset=50).scene.judge()
    assert broken(verdict) == []
    assert not verdict.tallies["G07"].judged


def test_offsets_without_generation_or_with_errors_are_not_judged() -> None:
    for more in ({"generation": -1}, {"error": 25}):
        verdict = _fetches(_commits(_joined(), 1, **more), 2, offset=50).scene.judge()
        assert broken(verdict) == []
        assert not verdict.tallies["G07"].judged


def test_an_offset_committed_meanwhile_may_or_may_not_be_returned() -> None:
    connection = _asks_for(_joined(), 2, 0)
    connection = _returns(_commits(connection, 1), 2, _offset(offset=41))
    assert broken(connection.scene.judge(), "G07") != ["G07"]


@keeps("G08")
def returns_all_partitions() -> Scene:
    connection = Scene().connect().request(OFFSET_FETCH, 7, 1, group_id="g", topics=None)
    return _returns(connection, 1, _offset(0), _offset(1)).scene


def _groups(*returned: str) -> Scene:
    groups = [{"group_id": name, "topics": None} for name in "ab"]
    connection = Scene().connect().request(OFFSET_FETCH, 8, 1, groups=groups)
    return connection.response(
        OFFSET_FETCH, 8, 1, groups=[{"group_id": name} for name in returned]
    ).scene


@keeps("G08")
def returns_both_groups() -> Scene:
    return _groups("b", "a")


@breaks("G08")
def leaves_out_a_group() -> Scene:
    return _groups("a")


@breaks("G08")
def leaves_out_a_partition() -> Scene:
    return _returns(_asks_for(Scene().connect(), 1, 0, 1), 1, _offset(0)).scene


@breaks("G08")
def returns_another_partition() -> Scene:
    return _returns(_asks_for(Scene().connect(), 1, 0), 1, _offset(1)).scene


def _transaction(
    error: int = 0, ended: int = 0, is_open: bool = True, broker: str = "10.0.0.2"
) -> Scene:
    """Offsets are fetched during a transaction with other offsets, or after its end."""
    scene = Scene()
    producer, reader = scene.connect(), scene.connect(broker=broker)
    who = {"transactional_id": "t", "producer_id": 7, "producer_epoch": 0}
    partition = {"partition_index": 0, "committed_offset": 42, "committed_metadata": "here"}
    topics = [{"name": "orders", "partitions": [partition]}]
    producer.request(TXN_OFFSET_COMMIT, 3, 1, **who, group_id="g", topics=topics)
    responses = [{"name": "orders", "partitions": [{"partition_index": 0}]}]
    producer.response(TXN_OFFSET_COMMIT, 3, 1, topics=responses)
    if is_open:
        _asks_for(reader, 1, 0, require_stable=True)
        _returns(reader, 1, _offset(offset=41, error_code=error))
    producer.request(END_TXN, 3, 2, **who, committed=True).response(END_TXN, 3, 2, error_code=ended)
    if not is_open:
        _asks_for(reader, 1, 0, require_stable=True)
        _returns(reader, 1, _offset())
    return scene


@keeps("G09")
def is_refused_as_unstable() -> Scene:
    return _transaction(UNSTABLE)


@breaks("G09")
def gets_an_unstable_offset() -> Scene:
    return _transaction()


def test_only_the_end_proves_that_a_transaction_was_open() -> None:
    for scene in (
        _transaction(ended=PRODUCER_FENCED),
        _transaction(is_open=False),
        _transaction(broker="10.0.0.9"),  # possibly of another cluster
    ):
        verdict = scene.judge()
        assert broken(verdict, "G09").count("G09") == 0
        assert not verdict.tallies["G09"].judged
