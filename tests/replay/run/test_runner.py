"""Plans replayed at librdkafka's mock cluster and at scripted brokers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from construct import Container

from cluster.client import broker_connection
from cluster.client.cluster import Cluster
from cluster.client.endpoint import Endpoint
from cluster.conversion.resource_names import NameMap
from cluster.mock.librdkafka_mock import MockCluster
from dissector.protocol.apis import KEYS
from dissector.protocol.error_codes import error_code
from dissector.protocol.messages import Message
from replay.compare.step_verdict import compare_outcome
from replay.mapping.id_map import IdMap
from replay.model.outcome import Outcome, Verdict
from replay.options.pacing import SECOND_NS, Pace
from replay.options.play_options import PlayOptions
from replay.plan.plan import Plan
from replay.run.pass_context import CONNECT_AHEAD_NS
from replay.run.player import STOPPED
from replay.run.runner import ReplayRun
from tests.default_frames import request, response
from tests.replay.support.replay_captures import (
    SHIPPED,
    added_partition,
    exchange,
    left_open,
    saved,
)
from tests.replay.support.scripted_broker import (
    HANG_UP,
    Answer,
    Answers,
    offers,
    scripted,
    single_broker,
)
from tests.replay.support.step_observer import StepObserver
from tests.replay.support.timers import Timers
from tests.tcp_captures import Wire
from tests.waiting import PATIENCE_S

Watch = Callable[[ReplayRun, Outcome], None]

FAST = PlayOptions(Pace(0), timeout_s=60)
HEARTBEAT = KEYS["Heartbeat"]


@dataclass
class Played:
    outcomes: list[Outcome] = field(default_factory=list)
    run: ReplayRun | None = None
    requests: list[Message] = field(default_factory=list)

    @property
    def failures(self) -> dict[int, str]:
        return {each.step.number: each.failure for each in self.outcomes if each.failure}


async def play(
    plan: Plan,
    addresses: list[str],
    play_options: PlayOptions = FAST,
    each: Watch = lambda run, outcome: None,
) -> Played:
    cluster = await Cluster.connect(addresses, timeout_s=play_options.timeout_s)
    try:

        def take(outcome: Outcome) -> None:
            played.outcomes.append(outcome)
            each(run, outcome)

        run = ReplayRun(
            plan,
            cluster,
            lambda copy: IdMap(cluster, NameMap(copy=copy)),
            StepObserver(take),
            play_options,
        )
        played = Played(run=run)
        async with asyncio.timeout(60):
            await run.play()
        return played
    finally:
        cluster.close()


def answer(outcome: Outcome) -> Container:
    assert outcome.response is not None
    return outcome.response


def at_mock(
    name: str, play_options: PlayOptions = FAST, brokers: int = 1, **options: Any
) -> Played:
    with Plan.of(SHIPPED / name, **options) as plan:
        names = [NameMap(copy=copy) for copy in range(play_options.passes)]
        topics = {each.topic(name): count for each in names for name, count in plan.topics.items()}
        with MockCluster(brokers, topics) as mock:
            return asyncio.run(play(plan, mock.addresses, play_options))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("brokers", [1, 3])
def test_produced_records_are_fetched(brokers: int) -> None:
    played = at_mock("librdkafka-consume-assigned.pcap", brokers=brokers)
    assert not played.failures
    assert len(played.outcomes) == 27
    fetched = [each for each in played.outcomes if each.step.captured.api == "Fetch"]
    records = [
        partition.records
        for outcome in fetched
        for topic in answer(outcome).responses
        for partition in topic.partitions
        if partition.records
    ]
    assert records
    assert all(each.latency_ns for each in fetched)


def test_producers_use_ids_of_the_target() -> None:
    played = at_mock("librdkafka-idempotent.pcap")
    assert not played.failures
    produced = [each for each in played.outcomes if each.step.captured.api == "Produce"]
    errors = [
        partition.error_code
        for outcome in produced
        for topic in answer(outcome).responses
        for partition in topic.partition_responses
    ]
    assert errors
    assert set(errors) == {0}


@pytest.mark.long
def test_groups_with_assignments_by_the_broker() -> None:
    played = at_mock("librdkafka-group-848.pcap", PlayOptions(Pace(0), timeout_s=PATIENCE_S))
    assert not played.failures
    beats = [each for each in played.outcomes if each.step.captured.api == "ConsumerGroupHeartbeat"]
    assert {each.response.error_code for each in beats if each.response} == {0}


def test_each_pass_has_its_own_names() -> None:
    chosen = "api == Produce or api == ApiVersions or api == Metadata"
    played = at_mock("librdkafka-acks.pcap", PlayOptions(Pace(0), loop=3), filter=chosen)
    assert {each.pass_number for each in played.outcomes} == {0, 1, 2}
    named = {
        (each.pass_number, topic.name)
        for each in played.outcomes
        if each.step.captured.api == "Produce"
        for topic in each.parts[0].request.topic_data
    }
    assert len(named) == 3
    assert played.run is not None
    progress = played.run.progress
    assert progress.done == progress.sent == progress.total == len(played.outcomes)


def test_copies_run_concurrently_with_staggered_starts() -> None:
    """The first copy waits in the middle until the others have begun."""
    options = PlayOptions(Pace(0), loop=2, scale=3, stagger_s=3600, timeout_s=60)
    capture = "librdkafka-acks.pcap"
    begun: list[int] = []

    async def main(plan: Plan, addresses: list[str]) -> Played:
        timers = Timers()

        def each(run: ReplayRun, outcome: Outcome) -> None:
            if not begun:
                assert [due_s for due_s in timers.due_s() if due_s > 1000] == pytest.approx(
                    [3600, 7200], abs=60
                )
                timers.run_after(1000)
            begun.append(outcome.pass_number)

        return await play(plan, addresses, options, each)

    with Plan.of(SHIPPED / capture, filter="api == Produce and request.acks != 0") as plan:
        names = [NameMap(copy=number).topic(topic) for topic in plan.topics for number in range(6)]
        with MockCluster(1, dict.fromkeys(names, 4)) as mock:
            played = asyncio.run(main(plan, mock.addresses))
        steps = len(plan)
    assert Counter(begun) == dict.fromkeys(range(6), steps)
    assert [each for each in begun if each % 3 == 1] == [1] * steps + [4] * steps
    topics = {
        (each.pass_number, topic.name)
        for each in played.outcomes
        for topic in each.parts[0].request.topic_data
    }
    assert len({name for _, name in topics}) == len(topics) == 6
    assert not played.failures


def test_copies_not_yet_started_end_with_the_run() -> None:
    options = PlayOptions(Pace(0), scale=2, stagger_s=3600, timeout_s=60)

    async def main(plan: Plan, addresses: list[str]) -> Played:
        return await play(plan, addresses, options, lambda run, _: run.stop())

    with Plan.of(SHIPPED / "librdkafka-acks.pcap") as plan, MockCluster(1, plan.topics) as mock:
        played = asyncio.run(main(plan, mock.addresses))
    assert {each.pass_number for each in played.outcomes} == {0}


def test_the_limit_counts_sent_requests() -> None:
    played = at_mock("librdkafka-consume-assigned.pcap", PlayOptions(Pace(0), limit=7))
    assert [each.step.number for each in sorted(played.outcomes, key=lambda o: o.step.number)] == [
        0,
        1,
        2,
        3,
        4,
        5,
        6,
    ]


def test_a_replay_can_be_stopped() -> None:
    async def main() -> Played:
        slowly = PlayOptions(Pace(0.001))
        with (
            Plan.of(SHIPPED / "librdkafka-consume-assigned.pcap") as plan,
            MockCluster(1, plan.topics) as mock,
        ):
            return await play(plan, mock.addresses, slowly, lambda run, _: run.stop())

    played = asyncio.run(main())
    assert 0 < len(played.outcomes) < 27


def test_a_replay_ends_after_its_duration() -> None:
    play_options = PlayOptions(Pace(0.001), duration_s=0.2)
    assert len(at_mock("librdkafka-consume-assigned.pcap", play_options).outcomes) < 27


def test_the_duration_starts_when_the_first_request_is_due() -> None:
    play_options = PlayOptions(Pace(0.001), duration_s=CONNECT_AHEAD_NS / SECOND_NS / 2)
    assert at_mock("librdkafka-consume-assigned.pcap", play_options).outcomes


def test_requests_in_flight_at_the_end_have_outcomes(tmp_path: Path) -> None:
    def stops_at_first(run: ReplayRun, outcome: Outcome) -> None:
        run.stop()

    wire = Wire()
    connection = wire.connect().syn()
    heartbeats = [request(HEARTBEAT, 3, number, group_id="g", member_id="m") for number in range(3)]
    for each in heartbeats:
        connection.client(each)
    for number in range(3):
        connection.broker(response(HEARTBEAT, 3, number))
    answers = one_after_another(beat(0), None, None)
    path = saved(tmp_path, wire)
    played = at_script(path, {"Heartbeat": answers}, each=stops_at_first)
    assert len(played.outcomes) == 3
    first, *others = played.outcomes
    assert not first.failure
    assert {(each.failure, each.is_refused, len(each.parts)) for each in others} == {
        (STOPPED, True, 1)
    }
    assert played.run is not None
    assert played.run.progress.done == played.run.progress.sent == 3


def at_script(
    path: str,
    answers: Answers,
    play_options: PlayOptions = FAST,
    each: Watch = lambda run, outcome: None,
) -> Played:
    """Replay at one broker, leader and coordinator of everything."""

    async def main() -> Played:
        ports: list[int] = []
        async with scripted({**single_broker(ports), **answers}) as broker:
            ports.append(broker.port)
            with Plan.of(path) as plan:
                played = await play(plan, [f"127.0.0.1:{broker.port}"], play_options, each)
            played.requests = [message for message in broker.requests if message.api in answers]
            return played

    return asyncio.run(main())


def one_after_another(*answers: Answer) -> Callable[[Message], Answer]:
    left = list(answers)
    return lambda _: left.pop(0)


def beats(folder: Path, *errors: int) -> str:
    wire = Wire()
    connection = wire.connect().syn()
    for number, error in enumerate(errors):
        heartbeat = request(HEARTBEAT, 3, number, group_id="g", member_id="m")
        exchange(connection, heartbeat, response(HEARTBEAT, 3, number, error_code=error))
    return saved(folder, wire)


def beat(error: int) -> Answer:
    return {"throttle_time_ms": 0, "error_code": error}


def test_a_captured_rebalance_is_awaited(tmp_path: Path) -> None:
    answers = one_after_another(beat(0), beat(0), beat(27))
    played = at_script(beats(tmp_path, 27), {"Heartbeat": answers})
    (outcome,) = played.outcomes
    assert outcome.response is not None
    assert outcome.response.error_code == 27
    assert len(played.requests) == 3


def test_a_new_member_uses_the_assigned_id(tmp_path: Path) -> None:
    wire = Wire()
    key = KEYS["JoinGroup"]
    join = request(key, 3, 1, group_id="g", protocol_type="consumer")
    exchange(wire.connect().syn(), join, response(key, 3, 1, member_id="captured"))
    joined = {"throttle_time_ms": 0, "generation_id": 1, "protocol_name": "", "leader": "live"}
    joined |= {"member_id": "live", "members": [], "error_code": 0}
    answers = one_after_another(joined | {"error_code": 79}, joined)
    played = at_script(saved(tmp_path, wire), {"JoinGroup": answers})
    assert not played.failures
    assert [each.body.member_id for each in played.requests if each.body] == ["", "live"]
    assert played.run is not None
    assert played.run.ids is not None
    assert played.run.ids.members.live("g", "captured") == "live"


def test_a_retried_heartbeat_uses_the_assigned_member_id(tmp_path: Path) -> None:
    wire = Wire()
    key = KEYS["ConsumerGroupHeartbeat"]
    joins: dict[str, Any] = {"group_id": "g", "member_id": "", "member_epoch": 0}
    fields: dict[str, Any] = {"member_epoch": 1, "heartbeat_interval_ms": 60_000}
    some = {"topic_partitions": [{"topic_id": UUID(int=1), "partitions": [0]}]}
    captured = response(key, 0, 1, member_id="captured", assignment=some, **fields)
    exchange(wire.connect().syn(), request(key, 0, 1, **joins), captured)
    live = fields | {"member_id": "live", "error_code": 0}
    none: dict[str, Any] = {"topic_partitions": []}
    answers = one_after_another(live | {"assignment": none}, live | {"assignment": some})
    played = at_script(saved(tmp_path, wire), {"ConsumerGroupHeartbeat": answers})
    assert not played.failures
    assert [each.body.member_id for each in played.requests if each.body] == ["", "live"]


def test_a_connection_stays_open_as_long_as_the_captured_one(tmp_path: Path) -> None:
    wire = Wire()
    first, second = wire.connect(50000).syn(), wire.connect(50001).syn()
    for number, connection in enumerate([first, *[second] * 5]):
        heartbeat = request(HEARTBEAT, 3, number, group_id="g", member_id="m")
        exchange(connection, heartbeat, response(HEARTBEAT, 3, number))
    first.fin()
    open_then: list[int] = []

    async def main() -> None:
        ports: list[int] = []

        def answer(_: Message) -> Answer:
            open_then.append(broker.open)
            return beat(0)

        async with scripted({**single_broker(ports), "Heartbeat": answer}) as broker:
            ports.append(broker.port)
            with Plan.of(saved(tmp_path, wire)) as plan:
                await play(plan, [f"127.0.0.1:{broker.port}"])

    asyncio.run(main())
    ours = open_then[-1]
    assert open_then[1:] == [ours] * 5
    assert ours > 2


def test_sessions_stay_alive_at_reduced_speed(tmp_path: Path) -> None:
    wire = Wire()
    join = KEYS["JoinGroup"]
    frame = request(join, 3, 1, group_id="g", protocol_type="consumer", session_timeout_ms=60)
    connection = exchange(
        wire.connect().syn(), frame, response(join, 3, 1, member_id="m", generation_id=1)
    )
    frame = request(HEARTBEAT, 3, 2, group_id="g", member_id="m", generation_id=1)
    exchange(connection, frame, response(HEARTBEAT, 3, 2))
    joined = {"generation_id": 5, "protocol_name": "", "leader": "live", "member_id": "live"}
    answers: Answers = {"JoinGroup": lambda _: joined, "Heartbeat": lambda _: beat(0)}
    played = at_script(saved(tmp_path, wire), answers, PlayOptions(Pace(0.01), timeout_s=60))
    assert not played.failures
    _, *beats, last = played.requests
    assert beats
    bodies = [each.body for each in (*beats, last) if each.body]
    assert {(each.member_id, each.generation_id) for each in bodies} == {("live", 5)}
    assert len(played.outcomes) == 2


def test_a_closed_connection_is_reported_and_the_replay_continues(tmp_path: Path) -> None:
    answers = one_after_another(HANG_UP, beat(0))
    played = at_script(beats(tmp_path, 0, 0), {"Heartbeat": answers})
    assert "closed the connection" in played.failures[0]
    assert "Heartbeat" in played.failures[0]
    assert list(played.failures) == [0]


def test_missing_responses_do_not_end_the_run(tmp_path: Path) -> None:
    play_options = PlayOptions(Pace(0), timeout_s=0.1)
    played = at_script(beats(tmp_path, 0), {"Heartbeat": lambda _: None}, play_options)
    assert "did not respond to Heartbeat" in played.failures[0]


def test_garbage_is_an_error(tmp_path: Path) -> None:
    played = at_script(beats(tmp_path, 0), {"Heartbeat": lambda _: b"GET / HTTP/1.1\r\n\r\n"})
    assert list(played.failures) == [0]


def test_a_version_missing_at_the_target_is_converted_or_omitted(tmp_path: Path) -> None:
    path = beats(tmp_path, 0)
    usual = {
        "Metadata": (0, 8),
        "FindCoordinator": (0, 4),
        "ApiVersions": (0, 3),
    }
    answers = {"Heartbeat": lambda _: beat(0)}
    played = at_script(path, {"ApiVersions": offers(**usual, Heartbeat=(0, 2)), **answers})
    assert [each.version for each in played.outcomes] == [2]
    played = at_script(path, {"ApiVersions": offers(**usual), **answers})
    assert played.failures == {0: "the target offers no version of Heartbeat that we know"}


@pytest.mark.parametrize(("refused", "sent"), [(False, 3), (True, 4)])
def test_clients_fall_back_to_an_older_api_versions(
    tmp_path: Path, refused: bool, sent: int
) -> None:
    """Where the capture has the refusal, its next request is the fallback."""
    wire, key = Wire(), KEYS["ApiVersions"]
    captured = response(key, 0 if refused else 4, 1, error_code=35 if refused else 0, api_keys=[])
    asked = request(key, 4, 1, client_software_name="c", client_software_version="1")
    exchange(wire.connect().syn(), asked, captured)
    usual = {"Metadata": (0, 8), "FindCoordinator": (0, 4), "ApiVersions": (0, 3)}
    seen: list[int] = []

    def answer(message: Message) -> Answer:
        seen.append(message.api_version or 0)
        return offers(**usual)(message)

    played = at_script(saved(tmp_path, wire), {"ApiVersions": answer})
    assert played.run is not None
    assert seen[-1] == sent
    said = "clients ask for ApiVersions v4, which the target lacks: they fall back to v3 (KIP-511)"
    assert played.run.progress.notices == ([] if refused else [said])


def test_nothing_is_sent_to_a_captured_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: list[str] = []

    async def connect(its: Any, endpoint: Endpoint, *further: Any) -> None:
        connected.append(str(endpoint))
        await really(its, endpoint, *further)

    really = broker_connection.connect
    monkeypatch.setattr(broker_connection, "connect", connect)
    played = at_script(beats(tmp_path, 0), {"Heartbeat": lambda _: beat(0)})
    assert not played.failures
    assert played.outcomes[0].step.captured.broker == "10.0.0.2:9092"
    assert len(set(connected)) == 1
    assert connected[0].startswith("127.0.0.1:")


def test_an_open_transaction_is_aborted_at_the_end(tmp_path: Path) -> None:
    given = {"throttle_time_ms": 0, "error_code": 0, "producer_id": 9, "producer_epoch": 0}
    added = {"throttle_time_ms": 0, "error_code": 0, "results_by_topic_v3_and_below": []}
    state = {"error_code": 0, "transactional_id": "t", "transaction_state": "Ongoing"}
    since = {"transaction_timeout_ms": 1, "transaction_start_time_ms": 1}
    state |= since | {"producer_id": 9, "producer_epoch": 0, "topics": []}
    answers: Answers = {
        "InitProducerId": lambda _: given,
        "AddPartitionsToTxn": lambda _: added,
        "DescribeTransactions": lambda _: {"throttle_time_ms": 0, "transaction_states": [state]},
    }
    played = at_script(left_open(tmp_path), answers)
    assert not played.failures
    assert [each.api for each in played.requests] == [
        "InitProducerId",
        "AddPartitionsToTxn",
        "DescribeTransactions",
        "InitProducerId",
    ]
    body = played.requests[1].body
    assert body is not None
    assert body.v3_and_below_producer_id == 9


@pytest.mark.parametrize(
    ("timeout_ms", "verdict"), [(0, Verdict.INCOMPLETE), (60_000, Verdict.ERROR_CHANGED)]
)
def test_a_target_may_end_a_transaction_that_is_beyond_its_timeout(
    timeout_ms: int, verdict: Verdict, tmp_path: Path
) -> None:
    answers: Answers = {
        "InitProducerId": lambda _: {"producer_id": 9, "producer_epoch": 0},
        "AddPartitionsToTxn": lambda _: added_partition(error_code("INVALID_PRODUCER_EPOCH")),
    }
    played = at_script(left_open(tmp_path, timeout_ms), answers)
    assert played.run is not None
    assert compare_outcome(played.outcomes[1], played.run.ids)[0] is verdict


def test_records_keep_their_order_after_a_write_with_acks_0(tmp_path: Path) -> None:
    wire, key = Wire(), KEYS["Produce"]
    unanswered, answered = wire.connect(50000).syn(), wire.connect(50001).syn()
    asks = [{"name": "orders", "partition_data": [{"index": 0, "records": b""}]}]
    gives = {"index": 0, "error_code": 0, "base_offset": 1, "log_append_time_ms": -1}
    topics = [{"name": "orders", "partition_responses": [gives]}]
    exchange(unanswered, request(key, 3, 1, acks=0, topic_data=asks))
    produced = response(key, 3, 1, responses=topics)
    exchange(answered, request(key, 3, 1, acks=1, topic_data=asks), produced)
    appended: list[int] = []

    async def append(message: Message) -> Answer:
        assert message.body is not None
        if message.body.acks == 0:
            for _ in range(100):  # meanwhile, requests on other connections arrive
                await asyncio.sleep(0)
        appended.append(message.body.acks)
        return {"responses": topics} if message.body.acks else None

    played = at_script(saved(tmp_path, wire), {"Produce": append})
    assert appended == [0, 1]
    assert not played.failures
