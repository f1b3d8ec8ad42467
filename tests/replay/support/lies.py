"""
Lies of a target about what nothing in the capture reads again: `unread` is such a capture.

A lie is told to every client alike, so to the check at the end of a replay too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from construct import Container

from cluster.client.broker_connection import CLIENT_ID
from cluster.fields.batch_rewriter import batch_headers
from dissector.protocol.messages import Message
from dissector.protocol.records import RecordBatch, build_records, parse_records
from dissector.protocol.records.layout import MAGIC_AT, TRANSACTIONAL
from tests.replay.support.fault_proxy import Fault
from tests.replay.support.unread import LOG

EARLIEST, LATEST = -2, -1
CRC_AT = MAGIC_AT + 1
LEFT, NO_USER_DATA = -1, 4
"""The member epoch of a member that leaves; the size of the null behind a classic assignment."""


@dataclass
class Dropped(Fault):
    """Acknowledges commits of one API, and drops them."""

    api: str

    def copies(self, request: Message) -> int:
        return 0 if request.api == self.api else 1

    def invent_response(self, request: Message) -> dict[str, Any]:
        assert request.body is not None
        topics = [
            {
                "name": topic.name,
                "partitions": [
                    {"partition_index": each.partition_index, "error_code": 0}
                    for each in topic.partitions
                ],
            }
            for topic in request.body.topics
        ]
        return {"throttle_time_ms": 0, "topics": topics}


@dataclass
class ChangedRequest(Fault):
    """Changes requests of one API before the target gets them."""

    api: str
    change: Callable[[Container], None]

    def change_request(self, request: Message) -> bool:
        if request.api == self.api:
            assert request.body is not None
            self.change(request.body)
        return request.api == self.api


@dataclass
class ChangedResponse(Fault):
    """Changes responses of one API."""

    api: str
    change: Callable[[Container], None]

    def change_response(self, request: Message, body: Container) -> None:
        if request.api == self.api:
            self.change(body)


@dataclass
class ToOthers(Fault):
    """Changes responses to others than the replay itself, which would not begin."""

    api: str
    change: Callable[[Container], None]

    def change_response(self, request: Message, body: Container) -> None:
        if request.api == self.api and request.client_id != CLIENT_ID:
            self.change(body)


@dataclass
class ChangedPartitions(Fault):
    """Changes the partitions without an error in responses of one API, if the request fits."""

    api: str
    change: Callable[[Container], None]
    fits: Callable[[Container], bool] = lambda _: True

    def change_response(self, request: Message, body: Container) -> None:
        assert request.body is not None
        if request.api == self.api and self.fits(request.body):
            for each in _partitions(body):
                if not each.error_code:
                    self.change(each)


def _partitions(body: Container) -> Iterator[Container]:
    for topic in body.get("responses") or body.get("topics") or ():
        for name in ("partitions", "partition_responses"):
            yield from topic.get(name) or ()


def _added(name: str, number: int) -> Callable[[Container], None]:
    """Add to a field, but leave -1 for none."""

    def change(each: Container) -> None:
        if each[name] >= 0:
            each[name] = max(each[name] + number, 0)

    return change


def _set(**values: Any) -> Callable[[Container], None]:
    return lambda each: each.update(values)


def _twice_in_sync(each: Container) -> None:
    each.isr_nodes = 2 * list(each.isr_nodes)


def _internal(body: Container) -> None:
    for topic in body.topics:
        topic.is_internal = True


def _to_another_group(body: Container) -> None:
    body.group_id += "-other"


def _asks(timestamp: int) -> Callable[[Container], bool]:
    return lambda body: body.topics[0].partitions[0].timestamp == timestamp


def _batches(change: Callable[[RecordBatch], None]) -> Callable[[Container], None]:
    """Change the batches of a fetched partition."""

    def change_all(each: Container) -> None:
        batches = [b for b in parse_records(each.records or b"") if isinstance(b, RecordBatch)]
        for batch in batches:
            change(batch)
        if batches:
            each.records = build_records(batches, fix_crc=True)

    return change_all


def _commits(change: Callable[[Container], None]) -> Callable[[Container], None]:
    """Change the partitions of a commit."""

    def change_all(body: Container) -> None:
        for each in _partitions(body):
            change(each)

    return change_all


def _other_producer(batch: RecordBatch) -> None:
    batch.producer_id += 1


def _other_epoch(batch: RecordBatch) -> None:
    batch.producer_epoch += 1


def _no_producer(batch: RecordBatch) -> None:
    batch.producer_id, batch.producer_epoch, batch.base_sequence = -1, -1, -1


def _later_leader(batch: RecordBatch) -> None:
    batch.partition_leader_epoch += 3


def _in_transaction(batch: RecordBatch) -> None:
    batch.attributes ^= 16


def _damaged(each: Container) -> None:
    """Change the CRC of the last fetched batch."""
    batches = list(batch_headers(each.records or b""))
    if batches:
        at = batches[-1].start + CRC_AT
        changed = bytes([each.records[at] ^ 1])
        each.records = each.records[:at] + changed + each.records[at + 1 :]


def _fetched(name: str, number: int) -> Callable[[], Fault]:
    return lambda: ChangedPartitions("Fetch", _added(name, number))


def _in_batches(change: Callable[[RecordBatch], None]) -> Callable[[], Fault]:
    return lambda: ChangedPartitions("Fetch", _batches(change))


def _listed(name: str, number: int, when: int) -> Callable[[], Fault]:
    return lambda: ChangedPartitions("ListOffsets", _added(name, number), _asks(when))


def _described(**values: Any) -> Callable[[], Fault]:
    return lambda: ChangedPartitions("Metadata", _set(**values))


def _committed(api: str, name: str, number: int) -> Callable[[], Fault]:
    return lambda: ChangedRequest(api, _commits(_added(name, number)))


def _without_keys(batch: RecordBatch) -> None:
    batch.payload = None
    batch.records = [each._replace(key=None) for each in batch.records]


def _dated(batch: RecordBatch) -> None:
    batch.base_timestamp += 1000
    batch.max_timestamp += 1000


def _cut(each: Container) -> None:
    each.records = (each.records or b"")[:-3]


def _change_places(body: Container) -> None:
    """Give the records of partitions to each other."""
    for topic in body.responses:
        given = [each for each in topic.partitions if each.records]
        for each, records in zip(given, [of.records for of in given[::-1]], strict=True):
            each.records = records


def _written(change: Callable[[RecordBatch], None]) -> Callable[[Container], None]:
    """Change batches before they are written."""

    def change_all(body: Container) -> None:
        for topic in body.topic_data:
            for each in topic.partition_data:
                _batches(change)(each)

    return change_all


def _without_the_last(each: Container) -> None:
    for topic in each.topics:
        topic.partitions = topic.partitions[:-1]


def _elsewhere(each: Container) -> None:
    each.node_id += 76


LIES: dict[str, Callable[[], Fault]] = {
    "a commit is dropped": lambda: Dropped("OffsetCommit"),
    "a commit is one less": _committed("OffsetCommit", "committed_offset", -1),
    "a commit loses its text": lambda: ChangedRequest(
        "OffsetCommit", _commits(_set(committed_metadata=""))
    ),
    "a commit goes to another group": lambda: ChangedRequest("OffsetCommit", _to_another_group),
    "a commit in a transaction is dropped": lambda: Dropped("TxnOffsetCommit"),
    "a commit in a transaction is one less": _committed("TxnOffsetCommit", "committed_offset", -1),
    "the high watermark is beyond the log": _fetched("high_watermark", 5),
    "the high watermark is below what was read": _fetched("high_watermark", -3),
    "the last stable offset is beyond the log": _fetched("last_stable_offset", 7),
    "the log start is later": _fetched("log_start_offset", 1),
    "batches have another producer": _in_batches(_other_producer),
    "batches have another producer epoch": _in_batches(_other_epoch),
    "batches have no producer": _in_batches(_no_producer),
    "batches are in a transaction": _in_batches(_in_transaction),
    "batches have a leader epoch of the future": _in_batches(_later_leader),
    "records have no key": _in_batches(_without_keys),
    "records are written with other times": lambda: ChangedRequest("Produce", _written(_dated)),
    "the last batch is cut off": lambda: ChangedPartitions("Fetch", _cut),
    "partitions have each other's records": lambda: ChangedResponse("Fetch", _change_places),
    "a batch has a wrong CRC": lambda: ChangedPartitions("Fetch", _damaged),
    "the log starts later": _listed("offset", 1, EARLIEST),
    "the log ends later": _listed("offset", 2, LATEST),
    "no replica is in sync": _described(isr_nodes=[]),
    "there are no replicas": _described(replica_nodes=[], isr_nodes=[]),
    "the leader is no replica": _described(replica_nodes=[77], isr_nodes=[77]),
    "a partition is missing": lambda: ToOthers("Metadata", _without_the_last),
    "a coordinator has another node id": lambda: ChangedResponse("FindCoordinator", _elsewhere),
    "a leader epoch ends later": lambda: ChangedPartitions(
        "OffsetForLeaderEpoch", _added("end_offset", 2)
    ),
    "topics are internal": lambda: ChangedResponse("Metadata", _internal),
    "producers begin in another epoch": lambda: ChangedResponse(
        "InitProducerId", _added("producer_epoch", 1)
    ),
    "a replica is in sync twice": lambda: ChangedPartitions("Metadata", _twice_in_sync),
}
"""Lies by description."""


@dataclass
class OtherStates(Fault):
    """Reports transactions in another state."""

    def change_response(self, request: Message, body: Container) -> None:
        for each in body.transaction_states if request.api == "ListTransactions" else ():
            each.transaction_state = "Ongoing"


def _flipped(body: Container) -> None:
    body.committed = not body.committed


def _without_markers(each: Container) -> None:
    batches = [b for b in parse_records(each.records or b"") if isinstance(b, RecordBatch)]
    each.records = build_records([b for b in batches if not b.control])


def _listed_as_aborted(each: Container) -> None:
    batches = [b for b in parse_records(each.records or b"") if isinstance(b, RecordBatch)]
    if batches and each.get("aborted_transactions") is not None:
        first = {"producer_id": batches[0].producer_id, "first_offset": batches[0].base_offset}
        each.aborted_transactions = [Container(first)]


def _producers(**values: int) -> Callable[[], Fault]:
    def change(each: Container) -> None:
        for producer in each.active_producers:
            producer.update(values)

    return lambda: ChangedPartitions("DescribeProducers", change)


OF_KAFKA: dict[str, Callable[[], Fault]] = {
    "a transaction that commits is aborted": lambda: ChangedRequest("EndTxn", _flipped),
    "transactions have no markers": lambda: ChangedPartitions("Fetch", _without_markers),
    "a committed transaction is listed as aborted": lambda: ChangedPartitions(
        "Fetch", _listed_as_aborted
    ),
    "transactions are in another state": OtherStates,
    "producers have another sequence": _producers(last_sequence=77),
    "producers have an open transaction": _producers(current_txn_start_offset=0),
    "offsets have a leader epoch of the future": _listed("leader_epoch", 3, LATEST),
    "leaders have an epoch of the future": lambda: ChangedPartitions(
        "Metadata", _added("leader_epoch", 4)
    ),
}
"""Lies about what the embedded broker lacks."""


@dataclass
class StaysInGroup(Fault):
    """Acknowledges that a member leaves its group, and keeps it."""

    api: str

    def copies(self, request: Message) -> int:
        assert request.body is not None
        is_leaving = request.body.get("member_epoch", LEFT) == LEFT
        return 0 if request.api == self.api and is_leaving else 1

    def invent_response(self, request: Message) -> dict[str, Any]:
        assert request.body is not None
        asked = request.body.get("members") or ()
        members = [{**each, "error_code": 0} for each in asked]
        found = {"member_id": request.body.get("member_id"), "member_epoch": LEFT}
        found |= {"heartbeat_interval_ms": 0, "assignment": None, "error_message": None}
        return {"throttle_time_ms": 0, "error_code": 0, "members": members, **found}


@dataclass
class Unheeded(Fault):
    """Answers requests of one API as if they were carried out."""

    api: str
    answer: Callable[[Container], dict[str, Any]]

    def copies(self, request: Message) -> int:
        return 0 if request.api == self.api else 1

    def invent_response(self, request: Message) -> dict[str, Any]:
        assert request.body is not None
        return {"throttle_time_ms": 0, **self.answer(request.body)}


def _other_partition(body: Container) -> None:
    """Assign another partition to a member of a classic group: before the user data, if any."""
    if body.assignment:
        at = len(body.assignment) - NO_USER_DATA - 1
        number = bytes([body.assignment[at] ^ 1])
        body.assignment = body.assignment[:at] + number + body.assignment[at + 1 :]


def _without_a_partition(body: Container) -> None:
    for topic in body.assignment.topic_partitions if body.assignment else ():
        topic.partitions = topic.partitions[:-1]


def _without_aborted(each: Container) -> None:
    each.aborted_transactions = []


def _with_aborted_records(each: Container) -> None:
    """Give readers of committed records others of a producer, as if they were committed."""
    batches = [b for b in parse_records(each.records or b"") if isinstance(b, RecordBatch)]
    for batch in batches:
        if not batch.control:
            batch.attributes &= ~TRANSACTIONAL
    each.records = build_records(batches, fix_crc=True)
    each.aborted_transactions = []


RECORDED: dict[str, tuple[str, Callable[[], Fault]]] = {
    "a member gets another partition": (
        "kafka4-librdkafka-group",
        lambda: ChangedResponse("SyncGroup", _other_partition),
    ),
    "a member stays in a classic group": (
        "kafka4-librdkafka-group",
        lambda: StaysInGroup("LeaveGroup"),
    ),
    "a member gets a partition less": (
        "kafka4-librdkafka-group-848",
        lambda: ChangedResponse("ConsumerGroupHeartbeat", _without_a_partition),
    ),
    "a member stays in a group": (
        "kafka4-librdkafka-group-848",
        lambda: StaysInGroup("ConsumerGroupHeartbeat"),
    ),
    "aborted records are read": (
        "kafka4-librdkafka-transactions",
        lambda: ChangedRequest("Fetch", _set(isolation_level=0)),
    ),
    "an aborted transaction is not listed": (
        "kafka4-librdkafka-transactions",
        lambda: ChangedPartitions("Fetch", _without_aborted),
    ),
    "aborted records are of no transaction": (
        "kafka4-librdkafka-transactions",
        lambda: ChangedPartitions("Fetch", _with_aborted_records),
    ),
}
"""Lies by description, each with a recorded capture in which they matter."""

REMOVED: dict[str, Callable[[], Fault]] = {
    "a topic is not deleted": lambda: Unheeded(
        "DeleteTopics",
        lambda body: {"responses": [{"name": each, "error_code": 0} for each in body.topic_names]},
    ),
    "a group is not deleted": lambda: Unheeded(
        "DeleteGroups",
        lambda body: {
            "results": [{"group_id": each, "error_code": 0} for each in body.groups_names]
        },
    ),
}
"""Lies about what a capture removes: `removed` is such a capture."""


def _one_more(body: Container) -> None:
    for topic in body.topics:
        topic.num_partitions += 1


REBORN: dict[str, Callable[[], Fault]] = {
    "the high watermark is beyond the log": _fetched("high_watermark", 5),
    "a created topic has a partition more": lambda: ChangedRequest("CreateTopics", _one_more),
}
"""Lies about a topic that is deleted and created again: `reborn` is such a capture."""

__all__ = ["LIES", "LOG", "OF_KAFKA", "REBORN", "RECORDED", "REMOVED"]
