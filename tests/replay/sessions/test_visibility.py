"""What was answered is relied on only when it is in effect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import Any, cast

import pytest
from construct import Container

from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS
from replay.client.broker_metadata import Leader, Topic, Topology
from replay.client.cluster import Cluster
from replay.sessions.visibility import wait_until_visible


class Slow(Topology):
    """Comes to know topics one question after the other, and gives up in the end."""

    patience = 4

    def __init__(self, *topics: dict[str, int], states: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.brokers = {1: cast(Any, None)}
        self.versions = {KEYS["DescribeTransactions"]: (0, 0)} if states else {}
        self.requests: list[Any] = []
        self._topics = list(topics)
        self._states = list(states)

    async def refresh(self, names: Collection[str] | None = None) -> None:
        self.requests.append(sorted(names or ()))
        self.topics = {
            name: Topic(name, None, {each: Leader(1, 0) for each in range(count)})
            for name, count in self._topics.pop(0).items()
        }

    async def coordinator(self, kind: int, key: str) -> int:
        return 1

    async def request(self, node: int, name: str, body: dict[str, Any]) -> Container:
        self.requests.append(name)
        description = Container(error_code=0, transaction_state=self._states.pop(0))
        return Container(transaction_states=[description])

    async def attempts(self, failure: str) -> AsyncIterator[None]:
        for _ in range(self.patience):
            yield
        raise ReplayError("b:1", failure)


def play(api: str, request: dict[str, Any], answer: dict[str, Any], target: Slow) -> list[Any]:
    bodies = Container(request), Container(answer)
    asyncio.run(wait_until_visible(api, *bodies, cast(Cluster, target)))
    return target.requests


def results(**errors: int) -> list[Container]:
    return [Container(name=name, error_code=error) for name, error in errors.items()]


def test_topics_are_waited_for_that_were_created() -> None:
    answer = {"topics": results(a=0, b=36)}
    assert play("CreateTopics", {}, answer, Slow({}, {"a": 1}, {})) == [["a"], ["a"]]


def test_topics_are_gone_that_were_deleted() -> None:
    answer = {"responses": results(a=0)}
    assert play("DeleteTopics", {}, answer, Slow({"a": 1}, {}, {})) == [["a"], ["a"]]


def test_partitions_are_waited_for_that_were_added() -> None:
    request = {"topics": [Container(name="a", count=3)], "validate_only": False}
    answer = {"results": results(a=0)}
    assert play("CreatePartitions", request, answer, Slow({"a": 2}, {"a": 3}, {})) == [["a"]] * 2


def test_transactions_are_waited_for_until_their_markers_are_written() -> None:
    target = Slow(states=("PrepareCommit", "CompleteCommit", "Ongoing"))
    requests = play("EndTxn", {"transactional_id": "t"}, {"error_code": 0}, target)
    assert requests == ["DescribeTransactions"] * 2


@pytest.mark.parametrize(
    ("api", "request_", "answer"),
    [
        ("EndTxn", {"transactional_id": "t"}, {"error_code": 47}),
        ("CreateTopics", {"validate_only": True}, {"topics": results(a=0)}),
        ("Metadata", {}, {"topics": results(a=0)}),
    ],
)
def test_nothing_is_asked_where_nothing_was_done(
    api: str, request_: dict[str, Any], answer: dict[str, Any]
) -> None:
    assert play(api, request_, answer, Slow({}, states=("Ongoing",))) == []


def test_a_target_without_describe_transactions_is_not_waited_for() -> None:
    assert play("EndTxn", {"transactional_id": "t"}, {"error_code": 0}, Slow()) == []


def test_an_effect_that_never_shows_is_given_up() -> None:
    assert len(play("CreateTopics", {}, {"topics": results(a=0)}, Slow({}, {}, {}, {}))) == 4


class Configured(Slow):
    """Comes to know a value."""

    def __init__(self, *values: str) -> None:
        super().__init__()
        self._values = list(values)

    async def request(self, node: int | None, name: str, body: dict[str, Any]) -> Container:
        self.requests.append(
            [(each["resource_type"], each["resource_name"]) for each in body["resources"]]
        )
        config = Container(name="retention.ms", value=self._values.pop(0), is_sensitive=False)
        described = Container(resource_type=2, resource_name="orders", configs=[config])
        return Container(results=[described])


def test_settings_are_waited_for_that_were_made() -> None:
    def resource(name: str, operation: int = 0) -> Container:
        config = Container(name="retention.ms", config_operation=operation, value="5")
        return Container(resource_type=2, resource_name=name, configs=[config])

    request = {"resources": [resource("orders"), resource("lost"), resource("gone", 1)]}
    answers = [
        Container(resource_type=2, resource_name=name, error_code=code)
        for name, code in [("orders", 0), ("lost", 3), ("gone", 0)]
    ]
    target = Configured("4", "5", "5")
    altered = {"responses": answers}
    assert play("IncrementalAlterConfigs", request, altered, target) == [[(2, "orders")]] * 2
    assert play("AlterConfigs", {"resources": [resource("lost")]}, altered, Configured()) == []


def test_a_value_that_is_written_otherwise_is_not_waited_for_long() -> None:
    target = Configured(*["5.0"] * 20)
    target.patience = 20
    config = Container(name="retention.ms", value="5")
    request = {"resources": [Container(resource_type=2, resource_name="orders", configs=[config])]}
    altered = {"responses": [Container(resource_type=2, resource_name="orders", error_code=0)]}
    assert len(play("AlterConfigs", request, altered, target)) < 20
