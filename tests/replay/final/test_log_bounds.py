from __future__ import annotations

from typing import Any

import pytest
from construct import Container

from cluster.client.broker_metadata import NO_ID, Broker, Leader, Topic, Topology
from replay.final.log_bounds import BoundsOfLogs, Exchange
from tests.replay.support.produce_messages import batches


def _bounds() -> BoundsOfLogs:
    target = Topology()
    target.brokers = {1: Broker(1, "h", 1), 2: Broker(2, "h", 2)}
    target.topics["orders"] = Topic("orders", None, {0: Leader(1, 0)})
    return BoundsOfLogs(target)


def _fetch(
    bounds: BoundsOfLogs,
    sent_ns: int,
    high: int,
    node: int = 1,
    offset: int = 0,
    error: int = 0,
    **more: Any,
) -> None:
    asked = Container(partition=0, fetch_offset=offset)
    found = Container(
        {"partition_index": 0, "error_code": error, "high_watermark": high, "records": b"", **more}
    )
    request = Container(topics=[Container(topic="orders", topic_id=NO_ID, partitions=[asked])])
    response = Container(responses=[Container(topic="orders", topic_id=NO_ID, partitions=[found])])
    bounds.record("Fetch", Exchange(sent_ns, node, sent_ns, sent_ns + 1, request, response))


def _contradiction(bounds: BoundsOfLogs) -> tuple[int, int, str] | None:
    found = bounds.logs["orders", 0].contradiction
    return found and (found.value, found.bound, found.field)


def test_a_high_watermark_below_an_earlier_one_is_a_contradiction() -> None:
    bounds = _bounds()
    _fetch(bounds, 0, 10)
    _fetch(bounds, 10, 9)
    assert _contradiction(bounds) == (9, 10, "high_watermark")


def test_a_high_watermark_below_records_returned_before_is_a_contradiction() -> None:
    bounds = _bounds()
    _fetch(bounds, 0, 5, records=batches(5, 6))
    _fetch(bounds, 10, 6)
    assert _contradiction(bounds) == (6, 7, "high_watermark")


@pytest.mark.parametrize(
    ("sent_ns", "node", "error"),
    [(0, 1, 0), (10, 2, 0), (10, 1, 6)],
    ids=["overlaps", "other", "error"],
)
def test_a_response_that_says_nothing_of_the_order_is_none(
    sent_ns: int, node: int, error: int
) -> None:
    bounds = _bounds()
    _fetch(bounds, 0, 10)
    _fetch(bounds, sent_ns, 9, node, error=error)
    assert _contradiction(bounds) is None


def test_a_log_start_after_the_offset_of_its_own_fetch_is_a_contradiction() -> None:
    bounds = _bounds()
    _fetch(bounds, 0, 10, offset=4, log_start_offset=4)
    assert _contradiction(bounds) is None
    _fetch(bounds, 10, 10, offset=4, log_start_offset=5)
    assert _contradiction(bounds) == (5, 4, "log_start_offset")


def test_the_highest_values_are_kept() -> None:
    bounds = _bounds()
    _fetch(bounds, 0, 10, last_stable_offset=12, log_start_offset=0)
    _fetch(bounds, 10, 11, last_stable_offset=3, log_start_offset=-1)
    log = bounds.logs["orders", 0]
    assert log.end is not None
    assert log.start is not None
    assert (log.end.value, log.end.field, log.start.value) == (12, "last_stable_offset", 0)
    assert log.epoch is None  # no batch yet


def test_a_topic_that_is_created_again_has_other_bounds() -> None:
    bounds = _bounds()
    _fetch(bounds, 0, 10)
    bounds.end_topic("orders")
    assert not bounds.logs
    created = Container(topics=[Container(name="orders", error_code=0)])
    bounds.record("CreateTopics", Exchange(20, 1, 20, 21, Container(), created))
    _fetch(bounds, 19, 10)
    assert not bounds.logs  # a response of the former life
    _fetch(bounds, 30, 2)
    _fetch(bounds, 40, 1)
    assert _contradiction(bounds) == (1, 2, "high_watermark")


def test_cut_or_foreign_records_end_the_reading() -> None:
    bounds = _bounds()
    whole = batches(0, 1)
    _fetch(bounds, 0, 0, records=whole[:-1])
    _fetch(bounds, 10, 0, records=b"\xff" * 40)
    assert _contradiction(bounds) == (0, 1, "high_watermark")
