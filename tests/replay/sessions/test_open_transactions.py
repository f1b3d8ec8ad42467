"""No transaction stays open on the target."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from construct import Container

from cluster.client.cluster import Cluster
from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS
from replay.sessions.open_transactions import OpenTransactions
from tests.replay.support.builders import whole


class Coordinator:
    """Answers InitProducerId as scripted."""

    def __init__(self, *errors: int, state: str = "") -> None:
        self.errors = list(errors)
        self.state = state
        self.versions = {KEYS["DescribeTransactions"]: (0, 0)} if state else {}
        self.requests: list[str] = []

    async def coordinator(self, kind: int, key: str) -> int:
        return 1

    def forget_coordinator(self, kind: int, key: str) -> None:
        pass

    async def request(self, node: int, name: str, body: dict[str, Any]) -> Container:
        if name == "DescribeTransactions":
            described = Container(error_code=0, transaction_state=self.state)
            return Container(transaction_states=[described])
        self.requests.append(f"{name} {body['transactional_id']}")
        if not self.errors:
            raise ReplayError("b:1", "is gone")
        return Container(error_code=self.errors.pop(0))


def begun() -> OpenTransactions:
    found = OpenTransactions()
    found.record_request("AddPartitionsToTxn", whole("AddPartitionsToTxn", 3, NAMED))
    return found


NAMED = {"v3_and_below_transactional_id": "t"}


def abort(found: OpenTransactions, coordinator: Coordinator, timeout_s: float = 5) -> list[str]:
    return asyncio.run(found.abort(cast(Cluster, coordinator), timeout_s))


def test_open_transactions_are_aborted() -> None:
    found, coordinator = begun(), Coordinator(51, 0)
    assert abort(found, coordinator) == []
    assert coordinator.requests == ["InitProducerId t"] * 2
    assert not found.open


def test_ended_transactions_are_not_aborted() -> None:
    found, coordinator = begun(), Coordinator()
    body = whole("EndTxn", 3, {"transactional_id": "t"})
    found.record_response("EndTxn", body, whole("EndTxn", 3, {"error_code": 47}, "response"))
    found.added["t"].add(("orders", 0))
    assert found.open
    found.record_response("EndTxn", body, whole("EndTxn", 3, {}, "response"))
    assert not found.added
    assert abort(found, coordinator) == []
    assert not coordinator.requests


@pytest.mark.parametrize("state", ["Empty", "CompleteCommit", "CompleteAbort", "Ongoing"])
def test_only_transactions_open_on_the_target_are_aborted(state: str) -> None:
    coordinator = Coordinator(0, state=state)
    assert abort(begun(), coordinator) == []
    assert coordinator.requests == ["InitProducerId t"] * (state == "Ongoing")


def test_non_transactional_produce_starts_no_transaction() -> None:
    found = OpenTransactions()
    found.record_request("Produce", whole("Produce", 9, {"transactional_id": None}))
    assert not found.open
    found.record_request("Produce", whole("Produce", 9, {"transactional_id": "t"}))
    assert list(found.open) == ["t"]


def test_a_failed_abort_is_reported() -> None:
    (warning,) = abort(begun(), Coordinator())
    assert "'t'" in warning
    assert "is gone" in warning
    (warning,) = abort(begun(), Coordinator(53))
    assert "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in warning
    (warning,) = abort(begun(), Coordinator(*[51] * 50), timeout_s=0.05)
    assert "0.05 s" in warning
