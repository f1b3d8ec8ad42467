"""Effects of requests are awaited before dependent steps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import Any, cast

import pytest
from construct import Container

from cluster.client.broker_metadata import Leader, Topic, Topology
from cluster.client.cluster import Cluster
from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS
from replay.sessions.visibility import wait_until_visible


class SlowTarget(Topology):
    """Shows one more state with each request, and fails after the last."""

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


def play(
    api: str, request: dict[str, Any], answer: dict[str, Any], target: SlowTarget
) -> list[Any]:
    bodies = Container(request), Container(answer)
    asyncio.run(wait_until_visible(api, *bodies, cast(Cluster, target)))
    return target.requests


def results(**errors: int) -> list[Container]:
    return [Container(name=name, error_code=error) for name, error in errors.items()]


def test_created_topics_are_awaited() -> None:
    answer = {"topics": results(a=0, b=36)}
    assert play("CreateTopics", {}, answer, SlowTarget({}, {"a": 1}, {})) == [["a"], ["a"]]


def test_deletion_of_topics_is_awaited() -> None:
    answer = {"responses": results(a=0)}
    assert play("DeleteTopics", {}, answer, SlowTarget({"a": 1}, {}, {})) == [["a"], ["a"]]


def test_added_partitions_are_awaited() -> None:
    request = {"topics": [Container(name="a", count=3)], "validate_only": False}
    answer = {"results": results(a=0)}
    assert (
        play("CreatePartitions", request, answer, SlowTarget({"a": 2}, {"a": 3}, {})) == [["a"]] * 2
    )


def test_transaction_markers_are_awaited() -> None:
    target = SlowTarget(states=("PrepareCommit", "CompleteCommit", "Ongoing"))
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
def test_failed_requests_are_not_awaited(
    api: str, request_: dict[str, Any], answer: dict[str, Any]
) -> None:
    assert play(api, request_, answer, SlowTarget({}, states=("Ongoing",))) == []


def test_a_target_without_describe_transactions_is_not_polled() -> None:
    assert play("EndTxn", {"transactional_id": "t"}, {"error_code": 0}, SlowTarget()) == []


def test_waiting_for_an_effect_ends_with_a_timeout() -> None:
    assert len(play("CreateTopics", {}, {"topics": results(a=0)}, SlowTarget({}, {}, {}, {}))) == 4


class ConfiguredTarget(SlowTarget):
    """Shows a changed setting after some requests."""

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


def test_changed_settings_are_awaited() -> None:
    def resource(name: str, operation: int = 0) -> Container:
        config = Container(name="retention.ms", config_operation=operation, value="5")
        return Container(resource_type=2, resource_name=name, configs=[config])

    request = {"resources": [resource("orders"), resource("lost"), resource("gone", 1)]}
    answers = [
        Container(resource_type=2, resource_name=name, error_code=code)
        for name, code in [("orders", 0), ("lost", 3), ("gone", 0)]
    ]
    target = ConfiguredTarget("4", "5", "5")
    altered = {"responses": answers}
    assert play("IncrementalAlterConfigs", request, altered, target) == [[(2, "orders")]] * 2
    assert (
        play("AlterConfigs", {"resources": [resource("lost")]}, altered, ConfiguredTarget()) == []
    )


def test_a_differently_formatted_value_is_not_awaited_for_long() -> None:
    target = ConfiguredTarget(*["5.0"] * 20)
    target.patience = 20
    config = Container(name="retention.ms", value="5")
    request = {"resources": [Container(resource_type=2, resource_name="orders", configs=[config])]}
    altered = {"responses": [Container(resource_type=2, resource_name="orders", error_code=0)]}
    assert len(play("AlterConfigs", request, altered, target)) < 20
