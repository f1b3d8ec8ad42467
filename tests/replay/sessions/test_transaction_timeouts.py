"""A transaction that the captured broker aborted by its timeout is over at the target as well."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest
from construct import Container

from cluster.client.cluster import Cluster
from cluster.conversion.resource_names import NameMap
from dissector.errors import ReplayError
from dissector.protocol.error_codes import error_code
from replay.compare.step_verdict import compare_outcome
from replay.mapping.id_map import IdMap
from replay.model.outcome import Verdict
from replay.sessions.open_transactions import OpenTransactions
from replay.sessions.transaction_timeouts import until_timed_out
from tests.replay.sessions.test_open_transactions import Coordinator
from tests.replay.support.builders import whole
from tests.replay.support.outcomes import outcome

END = {"transactional_id": "t", "producer_id": 4, "producer_epoch": 0, "committed": True}


class Target(Coordinator):
    """Has a transaction that is over after some descriptions."""

    def __init__(self, *states: str, timeout_s: float = 5) -> None:
        super().__init__(0, state="Ongoing")
        self.timeout_s = timeout_s
        self.states = list(states)

    async def attempts(self, failure: str) -> AsyncIterator[None]:
        for each in self.states:
            self.state = each
            yield
        raise ReplayError("b:1", failure)


def transactions(timeout_ms: int = 1000) -> OpenTransactions:
    found = OpenTransactions()
    fields = {"transactional_id": "p-t", "transaction_timeout_ms": timeout_ms}
    found.record_request("InitProducerId", whole("InitProducerId", 3, fields))
    found.begin("p-t")
    return found


def wait(target: Target, opened: OpenTransactions, error: str = "INVALID_TXN_STATE") -> bool:
    made = outcome("EndTxn", 3, {"error_code": error_code(error)}, {"error_code": 0}, request=END)
    ids = IdMap(names=NameMap(prefix="p-"))
    message = made.step.captured.request_message()
    return asyncio.run(until_timed_out(made.step, message, ids, opened, cast(Cluster, target)))


@pytest.mark.parametrize(
    "error", ["INVALID_TXN_STATE", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"]
)
def test_the_timeout_of_the_target_is_awaited(error: str) -> None:
    target, opened = Target("Ongoing", "PrepareAbort", "CompleteAbort", "no more"), transactions()
    assert wait(target, opened, error)
    assert target.state == "CompleteAbort"
    assert not opened.open
    assert not target.requests, "the target has aborted it"


@pytest.mark.parametrize(
    ("states", "timeout_ms"), [(("Ongoing",), 1000), (("CompleteAbort",), 60_000)]
)
def test_a_transaction_that_lasts_too_long_is_aborted(
    states: tuple[str, ...], timeout_ms: int
) -> None:
    target, opened = Target(*states), transactions(timeout_ms)
    assert not wait(target, opened)
    assert target.requests == ["InitProducerId p-t"]
    assert not opened.open


def test_nothing_is_awaited_without_an_open_transaction_or_an_error() -> None:
    target = Target()
    assert wait(target, OpenTransactions()), "another producer has fenced it"
    assert wait(target, transactions(), "NONE")
    assert not target.requests


def test_a_transaction_may_be_aborted_sooner_once_its_timeout_is_over() -> None:
    given = whole("EndTxn", 3, END | {"transactional_id": "p-t"}), Container(error_code=47)
    assert transactions(timeout_ms=0).record_response("EndTxn", *given)
    assert not transactions().record_response("EndTxn", *given)
    assert not OpenTransactions().record_response("EndTxn", *given), "it has ended"
    assert not transactions(timeout_ms=0).record_response("InitProducerId", *given)


def test_another_answer_than_that_after_a_timeout_is_incomplete() -> None:
    made = outcome("EndTxn", 3, {"error_code": 48}, {"error_code": 47}, request=END)
    assert compare_outcome(made, IdMap())[0] is Verdict.ERROR_CHANGED
    made.is_untimely = True
    assert compare_outcome(made, IdMap())[0] is Verdict.INCOMPLETE


def test_other_differences_than_errors_do_not_depend_on_timeouts() -> None:
    log = {"name": "orders", "partition_responses": [{"index": 0, "base_offset": 3}]}
    lost = {"name": "orders", "partition_responses": [{"index": 0, "base_offset": -1}]}
    made = outcome("Produce", 7, {"responses": [log]}, {"responses": [lost]})
    made.is_untimely = True
    assert compare_outcome(made, IdMap())[0] is Verdict.DIFFERS
