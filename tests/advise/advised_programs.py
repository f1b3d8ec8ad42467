"""Traffic of programs that do one thing badly, and of the same programs, mended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from dissector.protocol.records import Record, new_batch
from tests.conform.scene import Scene, SceneConnection

Program = Callable[[], Scene]

PRODUCE, FETCH, METADATA, COMMIT, JOIN, LEAVE = 0, 1, 3, 8, 11, 13
DESCRIBE_PARTITIONS, EPOCH_HEARTBEAT = 75, 68
INIT_PRODUCER_ID, END_TXN, SASL_AUTHENTICATE, API_VERSIONS = 22, 26, 36, 18

BAD: dict[str, Program] = {}
MENDED: dict[str, Program] = {}
BY_TOPIC_ID: dict[str, Program] = {}
BAD_TOO: dict[str, Program] = {}
"""By the id of an advice, the scene that it is found in, and the one that it is not;
bad ones whose requests name topics by id alone; others with another form of the mistake."""


def bad(advice: str) -> Callable[[Program], Program]:
    return lambda program: BAD.setdefault(advice, program)


def mended(advice: str) -> Callable[[Program], Program]:
    return lambda program: MENDED.setdefault(advice, program)


def records(count: int, *, value: bytes = b"x" * 40, keys: int = 0) -> list[Record]:
    now_ms = 1_700_000_000_000
    return [
        Record(key=b"k%d" % (at % keys) if keys else None, value=value, timestamp=now_ms)
        for at in range(count)
    ]


def produce(
    connection: SceneConnection, number: int, batch: bytes, *, partition: int = 0, **more: Any
) -> None:
    error, acks = more.get("error", 0), more.get("acks", -1)
    name = {"transactional_id": more.get("transaction")}
    version = more.get("version", 9)
    known: dict[str, Any] = {"name": more.get("topic", "orders")}
    known = known if version < 13 else {"topic_id": UUID(int=7)}
    part = {"index": partition, "records": batch}
    asked: dict[str, Any] = {
        "acks": acks,
        "timeout_ms": 1000,
        "topic_data": [known | {"partition_data": [part]}],
    }
    connection.request(PRODUCE, version, number, **asked, **name)
    if acks:
        answer = {"index": partition, "error_code": error, "base_offset": number}
        topics = [known | {"partition_responses": [answer]}]
        throttle = {"throttle_time_ms": more.get("throttle", 0)}
        connection.response(PRODUCE, version, number, responses=topics, **throttle)


def producer(
    requests: int, each: int, pause_ms: int, *, is_idempotent: bool = True, **more: Any
) -> Scene:
    """Return a producer on one connection, with Produce requests of some records."""
    scene = Scene()
    connection = scene.connect()
    for number in range(requests):
        ids = {"producer_id": 7, "producer_epoch": 0, "base_sequence": number * each}
        values = {"value": more["value"]} if "value" in more else {}
        content = records(each, keys=more.get("keys", 0), **values)
        batch = new_batch(
            content, **(ids if is_idempotent else {}), codec=more.get("codec", "none")
        )
        kept = {name: more[name] for name in ("acks", "error", "throttle") if name in more}
        partition = number % more.get("partitions", 1)
        produce(connection, number, batch.to_bytes(), partition=partition, **kept)
        scene.wait_ms(pause_ms)
    return scene


def producers(count: int, pause_ms: int) -> Scene:
    """Return a program that opens a producer for each record."""
    scene = Scene()
    for _ in range(count):
        connection = scene.connect()
        connection.request(INIT_PRODUCER_ID, 1, 1).response(INIT_PRODUCER_ID, 1, 1, producer_id=9)
        produce(connection, 2, new_batch(records(1), producer_id=9).to_bytes())
        connection.fin()
        scene.wait_ms(pause_ms)
    return scene


def asked(key: int, version: int, times: int, pause_ms: int, /, **more: Any) -> Scene:
    """Return equal exchanges on one connection, or on one for each (`apart`)."""
    scene = Scene()
    connection = scene.connect()
    for number in range(times):
        connection = scene.connect() if more.get("apart") else connection
        connection.request(key, version, number, **more.get("request", {}))
        connection.response(key, version, number, **more.get("response", {}))
        scene.wait_ms(pause_ms)
    return scene


def committer(times: int, advance: int, pause_ms: int, error: int = 0) -> Scene:
    """Return a consumer that commits."""
    scene = Scene()
    connection = scene.connect()
    for number in range(times):
        part = {"partition_index": 0, "committed_offset": 100 + number * advance}
        topics = [{"name": "orders", "partitions": [part]}]
        connection.request(COMMIT, 7, number, group_id="billing", topics=topics)
        answer = [{"name": "orders", "partitions": [{"error_code": error}]}]
        connection.response(COMMIT, 7, number, topics=answer)
        scene.wait_ms(pause_ms)
    return scene


def group(generations: int, pause_ms: int, *, leaves: bool = False) -> Scene:
    """Return a member of a group that joins again and again."""
    scene = Scene()
    connection = scene.connect()
    offers = [{"api_key": key, "max_version": 5} for key in (JOIN, 68)]
    connection.request(API_VERSIONS, 2, 0).response(API_VERSIONS, 2, 0, api_keys=offers)
    for number in range(1, generations + 1):
        asking = {"group_id": "billing", "member_id": "m", "protocol_type": "consumer"}
        asking |= {"rebalance_timeout_ms": 3000, "session_timeout_ms": 3000}
        connection.request(JOIN, 5, number * 2, **asking)
        answer = {"generation_id": number, "protocol_name": "range", "leader": "m"}
        connection.response(JOIN, 5, number * 2, member_id="m", **answer)
        scene.wait_ms(pause_ms)
        if leaves:
            asking = {"group_id": "billing", "members": [{"member_id": "m"}]}
            connection.request(LEAVE, 3, number * 2 + 1, **asking)
            connection.response(LEAVE, 3, number * 2 + 1)
    return scene


def fetcher(times: int, pause_ms: int, error: int = 0) -> Scene:
    """Return a consumer whose Fetch requests find nothing."""
    part = {"partition_index": 0, "error_code": error, "records": None}
    topics = [{"topic": "orders", "partitions": [part]}]
    wanted = [{"topic": "orders", "partitions": [{"partition": 0}]}]
    request = {"replica_id": -1, "max_wait_ms": 10, "topics": wanted}
    return asked(FETCH, 6, times, pause_ms, request=request, response={"responses": topics})


def metadata(times: int, pause_ms: int, topics: int = 1, error: int = 0) -> Scene:
    parts = [{"error_code": error, "name": f"t{at}", "partitions": [{}]} for at in range(topics)]
    return asked(METADATA, 5, times, pause_ms, response={"topics": parts})


def transaction(*, is_ended: bool) -> Scene:
    scene = Scene()
    connection = scene.connect()
    ids = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    produce(connection, 1, new_batch(records(1), **ids).to_bytes(), transaction="tx")
    if is_ended:
        connection.request(END_TXN, 1, 2, transactional_id="tx").response(END_TXN, 1, 2)
    scene.wait_ms(60_000)
    connection.request(METADATA, 5, 3).response(METADATA, 5, 3)
    return scene


bad("producer-per-record")(lambda: producers(20, 500))
mended("producer-per-record")(lambda: producer(20, 1, 500))
bad("tiny-batches")(lambda: producer(600, 1, 6))
mended("tiny-batches")(lambda: producer(60, 20, 200))
bad("no-compression")(lambda: producer(100, 50, 100, value=b"the same again " * 20))
mended("no-compression")(
    lambda: producer(100, 50, 100, value=b"the same again " * 20, codec="zstd")
)
bad("not-idempotent")(lambda: producer(20, 20, 100, is_idempotent=False))
mended("not-idempotent")(lambda: producer(20, 20, 100))
bad("acks-0")(lambda: producer(30, 1, 100, acks=0))
mended("acks-0")(lambda: producer(30, 1, 100))
bad("too-large")(lambda: producer(2, 1, 100, error=10))
mended("too-large")(lambda: producer(2, 1, 100))
bad("hot-key")(lambda: _keyed(1))
BY_TOPIC_ID["hot-key"] = lambda: _keyed(1, version=13)
BAD_TOO["hot-key"] = lambda: _beside_a_busy_topic()
mended("hot-key")(lambda: producer(20, 50, 200, keys=50))
bad("partition-skew")(lambda: _skewed(9))
mended("partition-skew")(lambda: _skewed(1))
bad("throttling")(lambda: producer(3, 1, 100, throttle=900))
mended("throttling")(lambda: producer(3, 1, 100))
bad("open-transaction")(lambda: transaction(is_ended=False))
mended("open-transaction")(lambda: transaction(is_ended=True))
bad("commit-per-record")(lambda: committer(60, 1, 50))
mended("commit-per-record")(lambda: committer(60, 100, 50))
bad("commits-in-rebalances")(lambda: committer(4, 1, 50, error=27))
mended("commits-in-rebalances")(lambda: committer(4, 1, 50))
bad("zombie-members")(lambda: committer(4, 1, 50, error=82))
mended("zombie-members")(lambda: committer(4, 1, 50))
bad("rebalance-loop")(lambda: group(12, 2000))
mended("rebalance-loop")(lambda: group(2, 20_000))
bad("stops-polling")(lambda: group(3, 4000, leaves=True))
BAD_TOO["stops-polling"] = lambda: _too_late_to_leave()
mended("stops-polling")(lambda: group(3, 400, leaves=True))
bad("classic-group")(lambda: group(2, 100))
mended("classic-group")(lambda: producer(2, 1, 100))
bad("empty-fetches")(lambda: fetcher(600, 10))
mended("empty-fetches")(lambda: fetcher(20, 500))
bad("offsets-out-of-range")(lambda: fetcher(2, 500, error=1))
mended("offsets-out-of-range")(lambda: fetcher(2, 500))
bad("stale-leader")(lambda: fetcher(12, 600, error=6))
mended("stale-leader")(lambda: fetcher(1, 600, error=6))
bad("connection-per-request")(lambda: asked(METADATA, 5, 30, 300, apart=True))
mended("connection-per-request")(lambda: asked(METADATA, 5, 30, 300))
bad("metadata-storm")(lambda: metadata(60, 200))
BAD_TOO["metadata-storm"] = lambda: asked(DESCRIBE_PARTITIONS, 0, 60, 200)
mended("metadata-storm")(lambda: metadata(3, 5000))
bad("many-topics")(lambda: metadata(3, 100, topics=300))
mended("many-topics")(lambda: metadata(3, 100, topics=3))
bad("unknown-topic-loop")(lambda: metadata(12, 500, error=3))
mended("unknown-topic-loop")(lambda: metadata(2, 500, error=3))
bad("denied-loop")(lambda: metadata(12, 500, error=29))
mended("denied-loop")(lambda: metadata(2, 500, error=29))
bad("reauthentication")(lambda: _login(5000))
mended("reauthentication")(lambda: _login(3_600_000))
bad("old-client")(lambda: _versions("1.9.2"))
mended("old-client")(lambda: _versions("2.16.0"))
bad("mixed-versions")(lambda: _versions("2.10.0", "2.16.0"))
mended("mixed-versions")(lambda: _versions("2.16.0", "2.16.0"))
bad("removed-versions")(lambda: asked(PRODUCE, 2, 3, 100))
mended("removed-versions")(lambda: producer(3, 1, 100))
bad("hung-requests")(lambda: _hung(45_000))
BAD_TOO["hung-requests"] = lambda: _late(45_000)
mended("hung-requests")(lambda: _hung(5))


def _keyed(hot: int, version: int = 9) -> Scene:
    """Return a producer most of whose records have one key."""
    scene = Scene()
    connection = scene.connect()
    for number in range(20):
        content = records(30, keys=hot) + records(20, keys=20)
        batch = new_batch(content, producer_id=7)
        produce(connection, number, batch.to_bytes(), version=version)
        scene.wait_ms(200)
    return scene


def _skewed(times: int) -> Scene:
    """Return a producer that sends so many records to partition 0 for each to the others."""
    scene = Scene()
    connection = scene.connect()
    for number in range(40):
        part = number % 4
        batch = new_batch(records(40 if part else 40 * times), producer_id=7)
        produce(connection, number, batch.to_bytes(), partition=part)
        scene.wait_ms(100)
    return scene


def _login(lifetime_ms: int) -> Scene:
    scene = Scene()
    connection = scene.connect()
    connection.request(17, 1, 1, mechanism="PLAIN").response(17, 1, 1, mechanisms=["PLAIN"])
    connection.request(SASL_AUTHENTICATE, 1, 2, auth_bytes=b"\0a\0b")
    connection.response(SASL_AUTHENTICATE, 1, 2, session_lifetime_ms=lifetime_ms)
    connection.request(METADATA, 5, 3).response(METADATA, 5, 3)
    return scene


def _versions(*releases: str) -> Scene:
    scene = Scene()
    for release in releases:
        software = {"client_software_name": "librdkafka", "client_software_version": release}
        connection = scene.connect()
        connection.request(API_VERSIONS, 3, 1, **software).response(API_VERSIONS, 3, 1)
    return scene


def _hung(wait_ms: int) -> Scene:
    """Return a Metadata request without an answer, while another connection goes on."""
    scene = Scene()
    hanging, other = scene.connect(), scene.connect()
    hanging.request(METADATA, 5, 1).response(METADATA, 5, 1)
    hanging.request(METADATA, 5, 2).broker(b"")
    scene.wait_ms(wait_ms)
    other.request(METADATA, 5, 1).response(METADATA, 5, 1)
    return scene


def _late(wait_ms: int) -> Scene:
    """Return a Metadata request with an answer that comes late."""
    scene = Scene()
    connection = scene.connect()
    connection.request(METADATA, 5, 1).response(METADATA, 5, 1).request(METADATA, 5, 2)
    scene.wait_ms(wait_ms)
    connection.response(METADATA, 5, 2)
    return scene


def _beside_a_busy_topic() -> Scene:
    """Return a producer with a hot key, of one request among a hundred to another topic."""
    scene = Scene()
    connection = scene.connect()
    for number in range(2000):
        is_hot = number % 100 == 0
        content = records(30, keys=1) + records(20, keys=20) if is_hot else records(1)
        batch = new_batch(content, producer_id=7).to_bytes()
        produce(connection, number, batch, topic="orders" if is_hot else "busy")
        scene.wait_ms(20)
    return scene


def _too_late_to_leave() -> Scene:
    """Return a member by epoch that leaves after its session has expired, and joins again."""
    scene = Scene()
    connection = scene.connect()
    for number, (epoch, error) in enumerate(((0, 0), (-1, 25), (0, 0))):
        timeout = {"rebalance_timeout_ms": 3000 if epoch == 0 else -1}
        asking = {"group_id": "billing", "member_id": "m", "member_epoch": epoch, **timeout}
        connection.request(EPOCH_HEARTBEAT, 0, number, **asking)
        answer = {"error_code": error, "member_epoch": number + 1}
        connection.response(EPOCH_HEARTBEAT, 0, number, **answer)
        scene.wait_ms(4000)
    return scene
