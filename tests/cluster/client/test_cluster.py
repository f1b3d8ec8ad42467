from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest

from cluster.client.broker_metadata import NO_ID
from cluster.client.cluster import Cluster, CoordinatorType
from cluster.client.endpoint import parse_address
from cluster.client.topic_admin import create_topics
from dissector.errors import ReplayError, UsageError
from dissector.protocol.apis import KEYS
from dissector.protocol.messages import Message
from tests.replay.support.scripted_broker import (
    HANG_UP,
    Answer,
    Answers,
    Scripted,
    offers,
    scripted,
)


class ScriptedTarget:
    """Answers of the scripted brokers of a test, the same for each broker."""

    def __init__(self) -> None:
        self.brokers: list[Scripted] = []
        self.advertised: list[int] | None = None
        self.leaders: dict[str, list[int]] = {"orders": [1, 2]}
        self.controller = 1
        self.places_itself = False
        self.created: dict[str, int] = {}
        self.coordinators: list[tuple[int, int]] = [(0, 1)]

    @property
    def answers(self) -> Answers:
        return {
            "Metadata": self.metadata,
            "FindCoordinator": self.find_coordinator,
            "CreateTopics": self.create_topics,
            "ListOffsets": self.list_offsets,
        }

    def metadata(self, message: Message) -> Answer:
        assert message.body is not None
        assert not message.body.allow_auto_topic_creation
        ports = self.advertised or [broker.port for broker in self.brokers]
        topics = message.body.topics
        names = self.leaders if topics is None else [topic.name for topic in topics]
        return {
            "throttle_time_ms": 0,
            "brokers": [
                {"node_id": node, "host": "127.0.0.1", "port": port, "rack": None}
                for node, port in enumerate(ports, 1)
            ],
            "controller_id": self.controller,
            "topics": [self.topic(name) for name in names],
        }

    def topic(self, name: str) -> Mapping[str, Any]:
        return {
            "error_code": 0 if name in self.leaders else 3,
            "name": name,
            "topic_id": NO_ID,
            "partitions": [
                {
                    "error_code": 0,
                    "partition_index": index,
                    "leader_id": leader,
                    "replica_nodes": [],
                    "isr_nodes": [],
                }
                for index, leader in enumerate(self.leaders.get(name, []))
            ],
        }

    def find_coordinator(self, message: Message) -> Answer:
        assert message.body is not None
        if not self.coordinators:
            return {"coordinators": []}
        error, node = self.coordinators.pop(0) if self.coordinators[1:] else self.coordinators[0]
        found = {"node_id": node, "host": "evil.example", "port": 1, "error_code": error}
        if message.api_version is None or message.api_version < 4:
            return {**found, "error_message": None}
        keys = message.body.coordinator_keys
        return {"coordinators": [{**found, "key": key, "error_message": None} for key in keys]}

    def create_topics(self, message: Message) -> Answer:
        assert message.body is not None
        answers = []
        for topic in message.body.topics:
            error = 41 if self.controller == 2 else 17 if topic.name == "bad" else 0
            if topic.assignments and self.places_itself:
                error = 39
            answers.append({"name": topic.name, "error_code": error, "error_message": "said why"})
            if not error:
                self.created[topic.name] = topic.replication_factor
                placed = [each.broker_ids[0] for each in topic.assignments]
                self.leaders[topic.name] = placed or [1] * topic.num_partitions
        self.controller = 1
        return {"topics": [{"topic_id": NO_ID, "configs": None, **each} for each in answers]}

    def list_offsets(self, message: Message) -> Answer:
        assert message.body is not None
        answers = []
        for topic in message.body.topics:
            partitions = [
                {
                    "partition_index": each.partition_index,
                    "error_code": 6 if each.partition_index == 2 else 0,
                    "timestamp": -1,
                    "offset": 10 * each.partition_index + each.timestamp,
                }
                for each in topic.partitions
            ]
            answers.append({"name": topic.name, "partitions": partitions})
        return {"topics": answers}


def with_cluster(
    target: ScriptedTarget,
    do: Callable[[Cluster], Awaitable[None]],
    brokers: int = 2,
    answers: Answers | None = None,
) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            for _ in range(brokers):
                script = {**target.answers, **(answers or {})}
                target.brokers.append(await stack.enter_async_context(scripted(script)))
            cluster = await Cluster.connect([f"127.0.0.1:{target.brokers[0].port}"])
            try:
                await do(cluster)
            finally:
                cluster.close()

    asyncio.run(main())


def test_connect_learns_all_brokers_from_one() -> None:
    async def do(cluster: Cluster) -> None:
        assert [broker.port for broker in cluster.brokers.values()] == [
            broker.port for broker in target.brokers
        ]
        leader = cluster.leader("orders", 1)
        assert leader is not None
        link = await cluster.open(leader.node, "me")
        assert link.address == f"127.0.0.1:{target.brokers[1].port}"
        assert target.brokers[1].requests[-1].client_id == "me"
        link.close()
        with pytest.raises(ReplayError, match="there is no broker 9"):
            await cluster.open(9)

    target = ScriptedTarget()
    with_cluster(target, do)


def test_the_end_closes_what_its_users_left_open() -> None:
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def offer_late(message: Message) -> Answer:
        if message in target.brokers[1].requests:
            asked.set()
            await may_answer.wait()
        return offers()(message)  # type: ignore[return-value]

    async def do(cluster: Cluster) -> None:
        left_open = await cluster.open(1)
        being_opened = asyncio.create_task(cluster.open(2))
        await asked.wait()
        cluster.close()
        may_answer.set()
        assert left_open.failure
        assert (await being_opened).failure

    target = ScriptedTarget()
    with_cluster(target, do, answers={"ApiVersions": offer_late})


def test_connect_uses_the_first_responsive_address() -> None:
    async def main() -> None:
        target = ScriptedTarget()
        with socket.create_server(("127.0.0.1", 0)) as closed:
            nobody = f"127.0.0.1:{closed.getsockname()[1]}"
        async with scripted(target.answers) as broker:
            target.brokers.append(broker)
            cluster = await Cluster.connect([nobody, f"127.0.0.1:{broker.port}"])
            cluster.close()
        with pytest.raises(ReplayError, match=f"^{nobody}: refused"):
            await Cluster.connect([nobody])
        with pytest.raises(ReplayError, match=r"no broker can be used \(.*refused"):
            await Cluster.connect([nobody, f"127.0.0.1:{broker.port}"])

    asyncio.run(main())


def test_connect_skips_a_silent_first_address() -> None:
    async def main() -> None:
        target = ScriptedTarget()
        silent: Answers = {"ApiVersions": lambda _: None}
        async with scripted(silent) as first, scripted(target.answers) as broker:
            target.brokers.append(broker)
            targets = [f"127.0.0.1:{each.port}" for each in (first, broker)]
            cluster = await Cluster.connect(targets, timeout_s=1)
            cluster.close()
            assert cluster.silence is None
            assert first.requests

    asyncio.run(main())


def test_a_target_without_brokers_is_an_error() -> None:
    with pytest.raises(ReplayError, match="reported no brokers"):
        with_cluster(
            ScriptedTarget(), lambda _: asyncio.sleep(0), answers={"Metadata": lambda _: {}}
        )


def test_a_connection_closed_on_the_first_request_hints_at_sasl() -> None:
    with pytest.raises(ReplayError, match=r"closed the connection .*; perhaps it requires SASL"):
        with_cluster(
            ScriptedTarget(), lambda _: asyncio.sleep(0), answers={"Metadata": lambda _: HANG_UP}
        )


def test_a_target_is_silent_when_new_connections_get_no_response() -> None:
    offer, errors = offers(), list[str]()
    says_nothing = [False, False]

    async def do(cluster: Cluster) -> None:
        cluster.on_silent = lambda error: errors.append(str(error))
        cluster.timeout_s = 1
        says_nothing[0] = True
        answering = await cluster.open(2)

        async def request_forever() -> None:
            while True:
                await answering.request(KEYS["ApiVersions"], 0, {})

        asking = asyncio.create_task(request_forever())
        with pytest.raises(ReplayError, match="did not respond"):
            await cluster.open(1)
        assert cluster.silence is None, "the other broker answers"
        asking.cancel()
        for _ in range(2):
            with pytest.raises(ReplayError, match="did not respond to ApiVersions"):
                await cluster.open(1)
        assert len(errors) == 1
        with pytest.raises(ReplayError, match="did not respond to ApiVersions"):
            await cluster.open(2)

    async def main() -> None:
        target = ScriptedTarget()

        def script(at: int) -> Answers:
            said: Answers = {"ApiVersions": lambda _: None if says_nothing[at] else offer(_)}
            return {**target.answers, **said}

        async with scripted(script(0)) as one, scripted(script(1)) as other:
            target.brokers += [one, other]
            cluster = await Cluster.connect([f"127.0.0.1:{one.port}"])
            try:
                await do(cluster)
            finally:
                cluster.close()

    asyncio.run(main())


def test_metadata_comes_from_another_broker_after_one_fails() -> None:
    async def do(cluster: Cluster) -> None:
        target.leaders["late"] = [1]
        for link in cluster.connections.values():
            link.close()
        await cluster.refresh()
        assert cluster.topics.keys() == {"orders", "late"}
        del target.leaders["late"]
        await cluster.refresh(["late"])
        assert cluster.topics.keys() == {"orders"}

    target = ScriptedTarget()
    with_cluster(target, do)


def test_concurrent_refreshes_share_one_request() -> None:
    async def do(cluster: Cluster) -> None:
        before = len(target.brokers[0].requests)
        await asyncio.gather(*(cluster.refresh() for _ in range(10)))
        assert len(target.brokers[0].requests) == before + 1

    target = ScriptedTarget()
    with_cluster(target, do)


def test_coordinators_are_cached() -> None:
    async def do(cluster: Cluster) -> None:
        find = [cluster.coordinator(CoordinatorType.GROUP, "readers") for _ in range(5)]
        assert await asyncio.gather(*find) == [2] * 5
        assert await cluster.coordinator(CoordinatorType.GROUP, "readers") == 2
        assert len(requests_of(target, "FindCoordinator")) == 3
        cluster.forget_coordinator(CoordinatorType.GROUP, "readers")
        await cluster.coordinator(CoordinatorType.GROUP, "readers")
        await cluster.coordinator(CoordinatorType.TRANSACTION, "readers")
        found = requests_of(target, "FindCoordinator")
        assert [message.body.key_type for message in found if message.body] == [0, 0, 0, 0, 1]

    target = ScriptedTarget()
    target.coordinators = [(15, -1), (14, -1), (0, 2)]
    with_cluster(
        target, do, answers={"ApiVersions": offers(Metadata=(0, 9), FindCoordinator=(0, 3))}
    )


def requests_of(target: ScriptedTarget, api: str) -> list[Message]:
    return [each for broker in target.brokers for each in broker.requests if each.api == api]


@pytest.mark.parametrize("code", [24, 30, 42])
def test_a_refused_lookup_gives_no_coordinator(code: int) -> None:
    async def do(cluster: Cluster) -> None:
        assert await cluster.coordinator(CoordinatorType.GROUP, "") is None

    target = ScriptedTarget()
    target.coordinators = [(code, -1)]
    with_cluster(target, do)


def test_an_empty_list_of_coordinators_gives_no_coordinator() -> None:
    async def do(cluster: Cluster) -> None:
        assert await cluster.coordinator(CoordinatorType.GROUP, "g") is None

    target = ScriptedTarget()
    target.coordinators = []
    with_cluster(target, do)


def test_a_coordinator_still_loading_at_the_timeout_is_an_error() -> None:
    async def do(cluster: Cluster) -> None:
        cluster.timeout_s = 0.5
        with pytest.raises(ReplayError, match=r"found no coordinator of group 'g' in 0\.5 s"):
            await cluster.coordinator(CoordinatorType.GROUP, "g")

    target = ScriptedTarget()
    target.coordinators = [(15, -1)]
    with_cluster(target, do)


def test_coordinators_outside_the_cluster_are_rejected() -> None:
    """FindCoordinator returns a host too, but only brokers of Metadata are trusted."""

    async def do(cluster: Cluster) -> None:
        cluster.timeout_s = 0.5
        with pytest.raises(ReplayError, match="found no coordinator"):
            await cluster.coordinator(CoordinatorType.GROUP, "g")

    target = ScriptedTarget()
    target.coordinators = [(0, 77)]
    with_cluster(target, do)


def test_an_api_missing_at_the_broker_is_an_error() -> None:
    async def do(cluster: Cluster) -> None:
        with pytest.raises(ReplayError, match="offers no version of CreateTopics that we know"):
            await create_topics(cluster, {"new": 1})

    with_cluster(ScriptedTarget(), do, answers={"ApiVersions": offers(Metadata=(0, 9))})


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("localhost:9093", ("localhost", 9093)),
        ("broker", ("broker", 9092)),
        ("[fd00::1]:9094", ("fd00::1", 9094)),
        ("[fd00::1]", ("fd00::1", 9092)),
    ],
)
def test_addresses(text: str, read: tuple[str, int]) -> None:
    assert parse_address(text) == read


@pytest.mark.parametrize("text", ["", ":9092", "host:", "host:0", "host:65536", "host:http"])
def test_invalid_addresses_are_errors(text: str) -> None:
    with pytest.raises(UsageError, match="is not an address: expected host:port"):
        parse_address(text)
