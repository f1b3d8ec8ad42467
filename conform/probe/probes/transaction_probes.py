"""Probes of transactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from construct import Container

from cluster.client.cluster import CoordinatorType
from conform.probe.probe_fixtures import Topic
from conform.probe.probe_registry import ProbeContext, probe
from conform.probe.probe_reporter import ProbeReporter
from conform.probe.probe_target import NotJudged, require_response
from conform.probe.raw_exchange import RawExchange
from conform.probe.record_fixtures import (
    FETCH_PARTITION,
    PRODUCE_PARTITION,
    encode_batch,
    fetch,
    fetched_values,
    produce_fields,
)
from dissector.protocol.error_codes import error_name

_TOO_LONG_MS = 2**31 - 1
_TIMEOUT_MS = 30_000
_READ_COMMITTED = 1
_LAST_ADDED_BY_CLIENT = 11
"""The newest version of Produce before the broker itself adds partitions (KIP-890)."""

_LAST_KEEPING_EPOCH = 4
"""The newest version of EndTxn that does not return a new epoch (KIP-890)."""


@dataclass(slots=True)
class _Transaction:
    """The transaction of a probe's producer, with its coordinator."""

    context: ProbeContext
    topic: Topic
    name: str
    node: int
    producer: dict[str, Any]

    async def request(self, api: str, version: int | None = None, **fields: Any) -> RawExchange:
        """Send a request of the producer to the coordinator."""
        request_fields = {"transactional_id": self.name, **self.producer, **fields}
        return await self.context.target.request(api, request_fields, version, self.node)

    async def add_partition(self) -> RawExchange:
        """Add the partition."""
        version = self.context.target.newest_version("AddPartitionsToTxn", until=3)
        return await self.request(
            "AddPartitionsToTxn",
            version,
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer["producer_id"],
            v3_and_below_producer_epoch=self.producer["producer_epoch"],
            v3_and_below_topics=[{"name": self.topic.name, "partitions": [0]}],
        )

    async def produce(self, value: bytes) -> RawExchange:
        """Add the partition, and produce a record to it."""
        added = await self.add_partition()
        error = (
            added.field("results_by_topic_v3_and_below[0].results_by_partition[0]") or Container()
        )
        if error.get("partition_error_code", -1) != 0:
            return added
        data = encode_batch(value, base_sequence=0, transactional=True, **self.producer)
        version = self.context.target.newest_version("Produce", 3, _LAST_ADDED_BY_CLIENT)
        fields = produce_fields(self.topic, data, transactional_id=self.name)
        return await self.context.target.request("Produce", fields, version, self.topic.leader_id)

    async def end(self, committed: bool) -> RawExchange:
        """Commit or abort."""
        version = self.context.target.newest_version("EndTxn", until=_LAST_KEEPING_EPOCH)
        return await self.request("EndTxn", version, committed=committed)


async def _begin(context: ProbeContext, suffix: str, topic: Topic) -> _Transaction:
    name = context.fixtures.transactional_id(suffix)
    node = await context.target.coordinator(CoordinatorType.TRANSACTION, name)
    return _Transaction(context, topic, name, node, await _init_producer(context, name, node))


async def _init_producer(context: ProbeContext, name: str, node: int) -> dict[str, Any]:
    fields = {
        "transactional_id": name,
        "transaction_timeout_ms": _TIMEOUT_MS,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    exchange = await context.target.request("InitProducerId", fields, node=node)
    code = require_response(exchange).field("error_code", -1)
    if code:
        raise NotJudged(f"no transaction can be started: {error_name(code)}")
    return {
        "producer_id": exchange.field("producer_id"),
        "producer_epoch": exchange.field("producer_epoch"),
    }


@probe(
    "T09",
    "Transaction timeout above the broker's limit accepted",
    source="TransactionCoordinator.handleInitProducerId; transaction.max.timeout.ms",
    asks="INVALID_TRANSACTION_TIMEOUT (50).",
    example="InitProducerId with a timeout of 24 days is answered with a producer id",
    writes=True,
)
async def probe_timeout_too_long(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Request the greatest possible timeout, and one of zero."""
    name = context.fixtures.transactional_id("too-long")
    node = await context.target.coordinator(CoordinatorType.TRANSACTION, name)
    for version in context.target.versions("InitProducerId"):
        for timeout_ms in (_TOO_LONG_MS, 0):
            fields = {
                "transactional_id": name,
                "transaction_timeout_ms": timeout_ms,
                "producer_id": -1,
                "producer_epoch": -1,
            }
            exchange = await context.target.request("InitProducerId", fields, version, node)
            reporter.check_error(exchange, "error_code", "INVALID_TRANSACTION_TIMEOUT")


@probe(
    "P35",
    "Uncommitted records returned with isolation_level 1",
    source="KIP-98; UnifiedLog.read, FetchResponse.json (last_stable_offset, aborted_transactions)",
    asks="With isolation_level 1, no records of an open transaction, all committed records, and "
    "for aborted records their producer among the aborted transactions.",
    example="a record of an open transaction is returned with isolation_level 1",
    writes=True,
)
async def probe_isolation(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Fetch the records of an open, a committed and an aborted transaction."""
    topic = await context.fixtures.topic("transactions")
    for suffix, committed in (("kept", True), ("dropped", False)):
        transaction = await _begin(context, suffix, topic)
        produced = await transaction.produce(suffix.encode())
        if not reporter.check_error(produced, f"{PRODUCE_PARTITION}.error_code", "NONE"):
            return
        offset = produced.field(f"{PRODUCE_PARTITION}.base_offset")
        await _check_records(context, reporter, topic, offset, _READ_COMMITTED, [])
        await _check_records(context, reporter, topic, offset, 0, [(offset, suffix.encode())])
        if not reporter.check_error(await transaction.end(committed), "error_code", "NONE"):
            return
        await _check_ended(context, reporter, transaction, offset, [(offset, suffix.encode())])


async def _check_records(
    context: ProbeContext,
    reporter: ProbeReporter,
    topic: Topic,
    offset: int,
    level: int,
    expected: list[tuple[int, bytes | None]],
) -> RawExchange:
    fetched = await fetch(context.target, topic, offset, isolation_level=level, max_wait_ms=0)
    if reporter.check_error(fetched, f"{FETCH_PARTITION}.error_code", "NONE"):
        records = fetched_values(fetched)
        found = f"{fetched} with isolation_level {level}: returns {records}, not {expected}"
        reporter.check(records == expected, found, fetched)
    return fetched


async def _check_ended(
    context: ProbeContext,
    reporter: ProbeReporter,
    transaction: _Transaction,
    offset: int,
    expected: list[tuple[int, bytes | None]],
) -> None:
    """Wait for the marker, and check the records and the aborted transactions."""
    target, topic = context.target, transaction.topic
    fetched = await fetch(
        target, topic, offset, isolation_level=_READ_COMMITTED, min_bytes=1, max_wait_ms=5000
    )
    records = fetched_values(fetched)
    reporter.check(records == expected, f"{fetched} after the end: returns {records}", fetched)
    path = f"{FETCH_PARTITION}.aborted_transactions"
    aborted = [(each.producer_id, each.first_offset) for each in fetched.field(path) or ()]
    own = (transaction.producer["producer_id"], offset)
    is_aborted = transaction.name.endswith("dropped")
    text = f"{fetched}: aborted transactions {aborted}, {'without ' if is_aborted else 'with '}"
    reporter.check((own in aborted) == is_aborted, f"{text}{own}", fetched, path)


@probe(
    "P36",
    "End of a transaction that has not begun accepted",
    source="TransactionCoordinator.endTransaction",
    asks="INVALID_TXN_STATE (48) where nothing was added; a repetition of the same EndTxn is no "
    "error.",
    example="EndTxn right after InitProducerId is answered with error 0",
    writes=True,
)
async def probe_end_without_begin(context: ProbeContext, reporter: ProbeReporter) -> None:
    """End an empty transaction; end the same one twice."""
    topic = await context.fixtures.topic("transactions")
    transaction = await _begin(context, "empty", topic)
    reporter.check_error(await transaction.end(committed=True), "error_code", "INVALID_TXN_STATE")
    added = await transaction.add_partition()
    path = "results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code"
    if reporter.check_error(added, path, "NONE"):
        reporter.check_error(await transaction.end(committed=False), "error_code", "NONE")
        reporter.check_error(await transaction.end(committed=False), "error_code", "NONE")
        reporter.check_error(
            await transaction.end(committed=True), "error_code", "INVALID_TXN_STATE"
        )


@probe(
    "P37",
    "Reinitialised producer does not fence the previous one",
    source="KIP-98, KIP-360; TransactionCoordinator",
    asks="A greater epoch for the same producer id; INVALID_PRODUCER_EPOCH (47) or "
    "PRODUCER_FENCED (90) for the previous one, and its open transaction is aborted.",
    example="EndTxn with the previous epoch is answered with error 0",
    writes=True,
)
async def probe_fencing(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Initialise twice with one transactional id."""
    topic = await context.fixtures.topic("transactions")
    old = await _begin(context, "fenced", topic)
    produced = await old.produce(b"fenced")
    if not reporter.check_error(produced, f"{PRODUCE_PARTITION}.error_code", "NONE"):
        return
    producer = await _init_producer(context, old.name, old.node)
    old_epoch, new_epoch = old.producer["producer_epoch"], producer["producer_epoch"]
    is_newer = producer["producer_id"] != old.producer["producer_id"] or new_epoch > old_epoch
    reporter.check(is_newer, f"InitProducerId again: epoch {new_epoch} after {old_epoch}")
    ended = await old.end(committed=True)
    reporter.check_error(ended, "error_code", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
    offset = produced.field(f"{PRODUCE_PARTITION}.base_offset")
    renewed = _Transaction(context, topic, f"{old.name}-dropped", old.node, old.producer)
    await _check_ended(context, reporter, renewed, offset, [(offset, b"fenced")])


@probe(
    "P47",
    "Unstable offset returned to a request for stable offsets",
    source="KIP-447; OffsetFetchRequest.json (require_stable)",
    asks="UNSTABLE_OFFSET_COMMIT (88) while the transaction is open, then the offset.",
    example="OffsetFetch v7 with require_stable returns the previous offset",
    writes=True,
)
async def probe_unstable_offset(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Commit an offset in a transaction, and fetch it."""
    topic = await context.fixtures.topic("transactions")
    group = context.fixtures.group_id("unstable")
    transaction = await _begin(context, "offsets", topic)
    node = await context.target.coordinator(CoordinatorType.GROUP, group)
    version = context.target.newest_version("OffsetFetch", since=7, until=9)
    added = await transaction.request(
        "AddOffsetsToTxn", context.target.newest_version("AddOffsetsToTxn", until=3), group_id=group
    )
    if not reporter.check_error(added, "error_code", "NONE"):
        return
    partition = {"partition_index": 0, "committed_offset": 7, "committed_leader_epoch": -1}
    commit = {
        "transactional_id": transaction.name,
        "group_id": group,
        **transaction.producer,
        "generation_id_or_member_epoch": -1,
        "topics": [{"name": topic.name, "partitions": [partition]}],
    }
    oldest = context.target.newest_version("TxnOffsetCommit", until=4)
    committed = await context.target.request("TxnOffsetCommit", commit, oldest, node)
    if not reporter.check_error(committed, "topics[0].partitions[0].error_code", "NONE"):
        return
    topics = [{"name": topic.name, "partition_indexes": [0]}]
    fields = {"group_id": group, "topics": topics, "require_stable": True}
    fields["groups"] = [{"group_id": group, "topics": topics}]
    path = ("groups[0]." if version >= 8 else "") + "topics[0].partitions[0]"
    exchange = await context.target.request("OffsetFetch", fields, version, node)
    reporter.check_error(exchange, f"{path}.error_code", "UNSTABLE_OFFSET_COMMIT")
    if not reporter.check_error(await transaction.end(committed=True), "error_code", "NONE"):
        return
    exchange = await _fetch_once_stable(context, fields, version, node, path)
    if reporter.check_error(exchange, f"{path}.error_code", "NONE"):
        offset = exchange.field(f"{path}.committed_offset")
        reporter.check(offset == 7, f"{exchange}: offset {offset}, not 7", exchange, path)


async def _fetch_once_stable(
    context: ProbeContext, fields: dict[str, Any], version: int, node: int, path: str
) -> RawExchange:
    """Retry while the markers are being written."""
    exchange = await context.target.request("OffsetFetch", fields, version, node)
    for _ in range(100):
        if error_name(exchange.field(f"{path}.error_code", 0)) != "UNSTABLE_OFFSET_COMMIT":
            break
        exchange = await context.target.request("OffsetFetch", fields, version, node)
    return exchange
