"""The balance at the end of a pass, with a scripted log."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from cluster.client.broker_metadata import NO_ID
from cluster.client.cluster import Cluster
from dissector.protocol.messages import Message
from replay.compare.log_balance import Balance, UnbalancedLog, balance, not_balanced
from replay.mapping.id_map import IdMap
from replay.mapping.reader_accounts import ReturnedRecords
from replay.model.offset_ranges import Range, Ranges
from replay.order.topic_lives import deletion_of
from tests.replay.support.produce_messages import batches
from tests.replay.support.scripted_broker import Answer, scripted
from tests.waiting import PATIENCE_S

ORDERS = "orders", 0
READER = 1


@dataclass
class Log:
    """The log of the only partition of the only broker."""

    offsets: range = range(0)
    lost: Collection[int] = ()
    error: int = 0
    end_error: int = 0
    most: int = 1000
    port: int = 0
    fetches: int = 0

    def metadata(self, message: Message) -> Answer:
        partition = {"partition_index": 0, "leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]}
        topic = {"name": "orders", "topic_id": NO_ID, "partitions": [partition]}
        broker = {"node_id": 1, "host": "127.0.0.1", "port": self.port}
        return {"brokers": [broker], "controller_id": 1, "topics": [topic]}

    def list_offsets(self, message: Message) -> Answer:
        found = {"error_code": self.end_error, "timestamp": -1, "offset": self.offsets.stop}
        return {"topics": [{"name": "orders", "partitions": [{"partition_index": 0, **found}]}]}

    def fetch(self, message: Message) -> Answer:
        self.fetches += 1
        assert message.body is not None
        start = message.body.topics[0].partitions[0].fetch_offset
        there = [each for each in self.offsets if each >= start and each not in self.lost]
        given = there[: self.most]
        found: Mapping[str, Any] = {
            "partition_index": 0,
            "error_code": self.error,
            "aborted_transactions": [],
            "records": batches(*given),
        }
        return {"responses": [{"topic": "orders", "partitions": [found]}]}


SHORT_S = 0.5
"""Until a log that ends before the acknowledged records is judged."""


def balanced(ids: IdMap, log: Log, timeout_s: float = PATIENCE_S) -> Balance:
    async def main() -> Balance:
        answers = {"Metadata": log.metadata, "ListOffsets": log.list_offsets, "Fetch": log.fetch}
        async with scripted(answers) as broker:
            log.port = broker.port
            cluster = await Cluster.connect([f"127.0.0.1:{broker.port}"], timeout_s=timeout_s)
            try:
                return await balance(ids, cluster)
            finally:
                cluster.close()

    return asyncio.run(main())


def appended(*rows: tuple[int, int, int]) -> IdMap:
    """Captured offset, live offset and count of each request."""
    ids = IdMap()
    for step, row in enumerate(rows):
        ids.offsets.log(*ORDERS).learn_appended(*row, step)
    return ids


def with_returned(ids: IdMap, step: int, captured: Range, live: Range, bound: int = 0) -> IdMap:
    given = ReturnedRecords(*ORDERS, Ranges([captured]), Ranges([live]), bound)
    ids.readers.record(READER, step, given)
    return ids


def findings_of(found: Balance) -> list[tuple[int, str]]:
    assert not found.unbalanced
    return [(each.step, str(each.difference.replayed)) for each in found.findings]


def test_a_log_with_all_acknowledged_records_is_balanced() -> None:
    log = Log(range(10))
    assert balanced(appended((0, 0, 5), (5, 5, 5)), log) == Balance([], [])
    assert not log.fetches


def test_acknowledged_records_missing_from_the_log_are_findings() -> None:
    found = balanced(appended((0, 0, 5), (5, 5, 5)), Log(range(8)), SHORT_S)
    assert findings_of(found) == [(0, "not in the log, which ends at offset 8 of the target")]


def test_records_without_a_produce_request_are_findings() -> None:
    found = balanced(appended((0, 0, 5)), Log(range(7)))
    more = "2 records more than were written, from offset 5 of the target"
    assert findings_of(found) == [(0, more)]


def test_records_missing_at_a_reader_and_in_the_log_are_findings() -> None:
    ids = with_returned(appended((0, 0, 10)), 7, Range(0, 10), Range(0, 6))
    found = balanced(ids, Log(range(6)), SHORT_S)
    assert (7, "not returned, and not in the target's log") in findings_of(found)


def test_only_records_missing_in_the_middle_of_a_log_are_findings() -> None:
    ids = with_returned(appended((0, 0, 10)), 7, Range(0, 10), Range(0, 6))
    (found,) = balanced(ids, Log(range(10), lost=(6, 7))).findings
    assert found.difference.captured == "2 missing records, the first at offset 6"


def test_records_appended_after_a_poll_are_not_missing() -> None:
    ids = with_returned(appended((0, 0, 10)), 7, Range(0, 10), Range(0, 6), bound=6)
    assert findings_of(balanced(ids, Log(range(10)))) == []


def test_records_returned_only_when_fetched_again_are_withheld() -> None:
    ids = with_returned(appended((0, 0, 10)), 7, Range(0, 10), Range(0, 6), bound=10)
    withheld = "not returned, although the target reported them as readable"
    found = balanced(ids, Log(range(10)))
    assert findings_of(found) == [(7, withheld)]
    assert found.findings[0].difference.captured == "4 missing records, the first at offset 6"


def test_a_poll_may_end_at_the_end_of_a_segment() -> None:
    ids = with_returned(appended((0, 0, 10)), 7, Range(0, 10), Range(0, 6), bound=10)
    assert findings_of(balanced(ids, Log(range(10), most=6))) == []


def test_records_of_another_poll_are_not_missing() -> None:
    ids = with_returned(appended((0, 0, 10)), 7, Range(0, 10), Range(0, 6), bound=10)
    with_returned(ids, 8, Range(0, 0), Range(6, 10))
    log = Log(range(10))
    assert findings_of(balanced(ids, log)) == []
    assert not log.fetches


def test_a_log_without_an_end_offset_is_unbalanced() -> None:
    found = balanced(appended((0, 0, 5)), Log(range(5), end_error=29))
    assert found == Balance([], [UnbalancedLog(*ORDERS, "ListOffsets: TOPIC_AUTHORIZATION_FAILED")])


def test_a_log_without_readable_records_is_unbalanced() -> None:
    ids = with_returned(appended((0, 0, 10)), 7, Range(0, 10), Range(0, 6))
    (left,) = balanced(ids, Log(range(10), error=29)).unbalanced
    assert left[:2] == ORDERS
    assert left.why.endswith("Fetch: TOPIC_AUTHORIZATION_FAILED")


def test_a_deleted_topic_is_unbalanced() -> None:
    ids = IdMap()
    ids.offsets.log("gone", 0).learn_appended(0, 0, 5, 0)
    (left,) = balanced(ids, Log()).unbalanced
    assert left[:2] == ("gone", 0)
    assert left.why.startswith("the target has no such topic")


def test_a_topic_that_another_part_deletes_is_unbalanced() -> None:
    ids = with_returned(appended((0, 0, 5), (0, 0, 5)), 7, Range(0, 10), Range(0, 6))
    assert balanced(ids, Log(range(2)), SHORT_S).findings
    ids.foreign = frozenset({deletion_of("orders")})
    found = balanced(ids, Log(range(2)))
    assert found == Balance([], [UnbalancedLog(*ORDERS, "another part deletes its topic")])


def test_all_logs_are_unbalanced_after_an_early_end() -> None:
    ids = with_returned(appended((0, 0, 10)), 7, Range(0, 10), Range(0, 6))
    ids.readers.record(READER, 8, ReturnedRecords("audit", 1, Ranges([Range(0, 1)]), Ranges()))
    found = not_balanced(ids)
    assert not found.findings
    assert [each[:2] for each in found.unbalanced] == [("audit", 1), ORDERS]
