"""Probes of transactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from construct import Container

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
from replay.client.cluster import CoordinatorType

_TOO_LONG_MS = 2**31 - 1
_TIMEOUT_MS = 30_000
_READ_COMMITTED = 1
_LAST_ADDED_BY_CLIENT = 11
"""The newest version of Produce before the broker itself adds partitions (KIP-890)."""

_LAST_KEEPING_EPOCH = 4
"""The newest version of EndTxn that does not return a new epoch (KIP-890)."""


@dataclass(slots=True)
class _Transaction:
    """The transaction of a producer of ours, with its coordinator."""

    context: ProbeContext
    topic: Topic
    name: str
    node: int
    producer: dict[str, Any]

    async def request(self, api: str, version: int | None = None, **fields: Any) -> RawExchange:
        """Send a request of the producer to the coordinator."""
        mine = {"transactional_id": self.name, **self.producer, **fields}
        return await self.context.target.request(api, mine, version, self.node)

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


async def _begin(probed: ProbeContext, what: str, topic: Topic) -> _Transaction:
    name = probed.fixtures.transactional_id(what)
    node = await probed.target.coordinator(CoordinatorType.TRANSACTION, name)
    return _Transaction(probed, topic, name, node, await _init_producer(probed, name, node))


async def _init_producer(probed: ProbeContext, name: str, node: int) -> dict[str, Any]:
    fields = {
        "transactional_id": name,
        "transaction_timeout_ms": _TIMEOUT_MS,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    said = await probed.target.request("InitProducerId", fields, node=node)
    code = require_response(said).field("error_code", -1)
    if code:
        raise NotJudged(f"no transaction can be begun: {error_name(code)}")
    return {
        "producer_id": said.field("producer_id"),
        "producer_epoch": said.field("producer_epoch"),
    }


@probe(
    "T09",
    "A transaction timeout above the broker's limit is refused",
    source="TransactionCoordinator.handleInitProducerId; transaction.max.timeout.ms",
    asks="INVALID_TRANSACTION_TIMEOUT (50).",
    example="InitProducerId with a timeout of 24 days is answered with a producer id",
    writes=True,
)
async def timeout_too_long(probed: ProbeContext, say: ProbeReporter) -> None:
    """Request the greatest possible timeout, and one of zero."""
    name = probed.fixtures.transactional_id("too-long")
    node = await probed.target.coordinator(CoordinatorType.TRANSACTION, name)
    for version in probed.target.versions("InitProducerId"):
        for timeout_ms in (_TOO_LONG_MS, 0):
            fields = {
                "transactional_id": name,
                "transaction_timeout_ms": timeout_ms,
                "producer_id": -1,
                "producer_epoch": -1,
            }
            said = await probed.target.request("InitProducerId", fields, version, node)
            say.check_error(said, "error_code", "INVALID_TRANSACTION_TIMEOUT")


@probe(
    "P35",
    "What is not committed is not read by those who ask for what is",
    source="KIP-98; UnifiedLog.read, FetchResponse.json (last_stable_offset, aborted_transactions)",
    asks="With isolation_level 1 nothing of an open transaction, what is committed, and of what is "
    "aborted its producer among the aborted transactions.",
    example="a record of an open transaction is read with isolation_level 1",
    writes=True,
)
async def isolation(probed: ProbeContext, say: ProbeReporter) -> None:
    """Read beside an open, a committed and an aborted transaction."""
    topic = await probed.fixtures.topic("transactions")
    for what, committed in (("kept", True), ("dropped", False)):
        transaction = await _begin(probed, what, topic)
        produced = await transaction.produce(what.encode())
        if not say.check_error(produced, f"{PRODUCE_PARTITION}.error_code", "NONE"):
            return
        offset = produced.field(f"{PRODUCE_PARTITION}.base_offset")
        await _check_records(probed, say, topic, offset, _READ_COMMITTED, [])
        await _check_records(probed, say, topic, offset, 0, [(offset, what.encode())])
        if not say.check_error(await transaction.end(committed), "error_code", "NONE"):
            return
        await _check_ended(probed, say, transaction, offset, [(offset, what.encode())])


async def _check_records(
    probed: ProbeContext,
    say: ProbeReporter,
    topic: Topic,
    offset: int,
    level: int,
    expected: list[tuple[int, bytes | None]],
) -> RawExchange:
    fetched = await fetch(probed.target, topic, offset, isolation_level=level, max_wait_ms=0)
    if say.check_error(fetched, f"{FETCH_PARTITION}.error_code", "NONE"):
        got = fetched_values(fetched)
        what = f"{fetched} with isolation_level {level}: brings {got}, not {expected}"
        say.check(got == expected, what, fetched)
    return fetched


async def _check_ended(
    probed: ProbeContext,
    say: ProbeReporter,
    transaction: _Transaction,
    offset: int,
    expected: list[tuple[int, bytes | None]],
) -> None:
    """Wait for the marker, and check the records and the aborted transactions."""
    target, topic = probed.target, transaction.topic
    fetched = await fetch(
        target, topic, offset, isolation_level=_READ_COMMITTED, min_bytes=1, max_wait_ms=5000
    )
    got = fetched_values(fetched)
    say.check(got == expected, f"{fetched} after the end: brings {got}", fetched)
    path = f"{FETCH_PARTITION}.aborted_transactions"
    told = [(each.producer_id, each.first_offset) for each in fetched.field(path) or ()]
    mine = (transaction.producer["producer_id"], offset)
    is_aborted = transaction.name.endswith("dropped")
    what = f"{fetched}: aborted are {told}, where {'ours is ' if is_aborted else 'none is, not '}"
    say.check((mine in told) == is_aborted, f"{what}{mine}", fetched, path)


@probe(
    "P36",
    "A transaction that has not begun can't be ended",
    source="TransactionCoordinator.endTransaction",
    asks="INVALID_TXN_STATE (48) where nothing was added; ending the same twice is no error.",
    example="EndTxn right after InitProducerId is answered with error 0",
    writes=True,
)
async def end_without_begin(probed: ProbeContext, say: ProbeReporter) -> None:
    """End an empty transaction; end the same one twice."""
    topic = await probed.fixtures.topic("transactions")
    transaction = await _begin(probed, "empty", topic)
    say.check_error(await transaction.end(committed=True), "error_code", "INVALID_TXN_STATE")
    added = await transaction.add_partition()
    path = "results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code"
    if say.check_error(added, path, "NONE"):
        say.check_error(await transaction.end(committed=False), "error_code", "NONE")
        say.check_error(await transaction.end(committed=False), "error_code", "NONE")
        say.check_error(await transaction.end(committed=True), "error_code", "INVALID_TXN_STATE")


@probe(
    "P37",
    "A producer that begins anew fences the one before",
    source="KIP-98, KIP-360; TransactionCoordinator",
    asks="A larger epoch for the same producer id; INVALID_PRODUCER_EPOCH (47) or PRODUCER_FENCED "
    "(90) for the old one, and its open transaction is aborted.",
    example="EndTxn of the old epoch is answered with error 0",
    writes=True,
)
async def fencing(probed: ProbeContext, say: ProbeReporter) -> None:
    """Initialise twice with one transactional id."""
    topic = await probed.fixtures.topic("transactions")
    old = await _begin(probed, "fenced", topic)
    produced = await old.produce(b"fenced")
    if not say.check_error(produced, f"{PRODUCE_PARTITION}.error_code", "NONE"):
        return
    who = await _init_producer(probed, old.name, old.node)
    before, after = old.producer["producer_epoch"], who["producer_epoch"]
    is_newer = who["producer_id"] != old.producer["producer_id"] or after > before
    say.check(is_newer, f"InitProducerId again: epoch {after} after {before}")
    ended = await old.end(committed=True)
    say.check_error(ended, "error_code", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
    offset = produced.field(f"{PRODUCE_PARTITION}.base_offset")
    renewed = _Transaction(probed, topic, f"{old.name}-dropped", old.node, old.producer)
    await _check_ended(probed, say, renewed, offset, [(offset, b"fenced")])


@probe(
    "P47",
    "An offset that a transaction may still change is told so to who asks for stable ones",
    source="KIP-447; OffsetFetchRequest.json (require_stable)",
    asks="UNSTABLE_OFFSET_COMMIT (88) while the transaction is open, then the offset.",
    example="OffsetFetch v7 with require_stable is answered with the offset before",
    writes=True,
)
async def unstable_offset(probed: ProbeContext, say: ProbeReporter) -> None:
    """Commit an offset in a transaction, and fetch it."""
    topic = await probed.fixtures.topic("transactions")
    group = probed.fixtures.group_id("unstable")
    transaction = await _begin(probed, "offsets", topic)
    node = await probed.target.coordinator(CoordinatorType.GROUP, group)
    version = probed.target.newest_version("OffsetFetch", since=7, until=9)
    added = await transaction.request(
        "AddOffsetsToTxn", probed.target.newest_version("AddOffsetsToTxn", until=3), group_id=group
    )
    if not say.check_error(added, "error_code", "NONE"):
        return
    partition = {"partition_index": 0, "committed_offset": 7, "committed_leader_epoch": -1}
    commit = {
        "transactional_id": transaction.name,
        "group_id": group,
        **transaction.producer,
        "generation_id_or_member_epoch": -1,
        "topics": [{"name": topic.name, "partitions": [partition]}],
    }
    oldest = probed.target.newest_version("TxnOffsetCommit", until=4)
    committed = await probed.target.request("TxnOffsetCommit", commit, oldest, node)
    if not say.check_error(committed, "topics[0].partitions[0].error_code", "NONE"):
        return
    wanted = [{"name": topic.name, "partition_indexes": [0]}]
    fields = {"group_id": group, "topics": wanted, "require_stable": True}
    fields["groups"] = [{"group_id": group, "topics": wanted}]
    path = ("groups[0]." if version >= 8 else "") + "topics[0].partitions[0]"
    said = await probed.target.request("OffsetFetch", fields, version, node)
    say.check_error(said, f"{path}.error_code", "UNSTABLE_OFFSET_COMMIT")
    if not say.check_error(await transaction.end(committed=True), "error_code", "NONE"):
        return
    said = await _fetch_once_stable(probed, fields, version, node, path)
    if say.check_error(said, f"{path}.error_code", "NONE"):
        offset = said.field(f"{path}.committed_offset")
        say.check(offset == 7, f"{said}: offset {offset}, not 7", said, path)


async def _fetch_once_stable(
    probed: ProbeContext, fields: dict[str, Any], version: int, node: int, path: str
) -> RawExchange:
    """Retry while the markers are being written."""
    said = await probed.target.request("OffsetFetch", fields, version, node)
    for _ in range(100):
        if error_name(said.field(f"{path}.error_code", 0)) != "UNSTABLE_OFFSET_COMMIT":
            break
        said = await probed.target.request("OffsetFetch", fields, version, node)
    return said
