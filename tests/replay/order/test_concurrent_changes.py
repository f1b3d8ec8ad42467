"""Responses overlapping a change of the reported value."""

from __future__ import annotations

import pytest

from replay.order.concurrent_changes import overlaps
from replay.order.read_write_sets import ReadWriteSets, Resource
from tests.replay.order.test_dependencies import Exchanges
from tests.replay.support.builders import uuid

PARTITION: Resource = ("partition", "orders", 0)
GROUP: Resource = ("group", "g")


def found_overlaps(exchanges: Exchanges) -> dict[int, dict[Resource, bool]]:
    return overlaps(exchanges.causes, exchanges, {uuid(1): "orders"}.get)


def queries(thing: Resource = PARTITION) -> ReadWriteSets:
    return ReadWriteSets(reads={thing}, progress_queries={thing})


@pytest.mark.parametrize(
    ("begun", "done", "met"),
    [(0, 9, False), (5, 11, True), (12, 13, True), (18, 30, True), (20, 25, False)],
)
def test_a_query_overlaps_a_concurrent_write(begun: int, done: int, met: bool) -> None:
    exchanges = Exchanges()
    exchanges.add(0, 10, 20, ReadWriteSets(writes={PARTITION}, appended_offsets={("orders", 0): 5}))
    exchanges.add(1, begun, done, queries(("partition", uuid(1), 0)))
    exchanges.add(2, begun, done, queries(("partition", "orders", 1)))
    assert found_overlaps(exchanges) == ({1: {PARTITION: True}} if met else {})


def test_a_transaction_may_end_after_its_response() -> None:
    exchanges = Exchanges()
    producer = {("producer", 7)}
    exchanges.add(
        0,
        0,
        1,
        ReadWriteSets(reads=producer, writes={PARTITION}, appended_offsets={("orders", 0): 5}),
    )
    exchanges.add(1, 2, 3, ReadWriteSets(ended_transaction=7))
    exchanges.add(2, 4, 5, queries())
    exchanges.add(
        0, 6, 7, ReadWriteSets(reads=producer, writes={GROUP}, commits_in_transaction=True)
    )
    exchanges.add(1, 8, 9, ReadWriteSets(ended_transaction=7))
    exchanges.add(2, 10, 11, queries())
    exchanges.add(2, 12, 13, queries(GROUP))
    assert found_overlaps(exchanges) == {2: {PARTITION: False}, 6: {GROUP: False}}
