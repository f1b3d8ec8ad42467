"""Probes of transactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from construct import Container

from conform.probe.probe_fixtures import Topic
from conform.probe.probe_registry import Probed, probe
from conform.probe.probe_reporter import LiveSay
from conform.probe.probe_target import NotJudged, answered
from conform.probe.raw_exchange import Said
from conform.probe.record_fixtures import FETCHED, PRODUCED, batch, fetch, to_produce, values
from dissector.protocol.error_codes import error_name
from replay.client.cluster import Coordinated

_TOO_LONG_MS = 2**31 - 1
_TIMEOUT_MS = 30_000
_READ_COMMITTED = 1
_ADDED_BY_CLIENTS = 11
"""The newest version of Produce before the broker itself adds partitions (KIP-890)."""

_EPOCH_KEPT = 4
"""The newest version of EndTxn that does not return a new epoch (KIP-890)."""


@dataclass(slots=True)
class _Transaction:
    """The transaction of a producer of ours, with its coordinator."""

    probed: Probed
    topic: Topic
    name: str
    node: int
    who: dict[str, Any]

    async def ask(self, api: str, version: int | None = None, **fields: Any) -> Said:
        """Send a request of the producer to the coordinator."""
        mine = {"transactional_id": self.name, **self.who, **fields}
        return await self.probed.target.ask(api, mine, version, self.node)

    async def add(self) -> Said:
        """Add the partition."""
        version = self.probed.target.newest("AddPartitionsToTxn", until=3)
        return await self.ask(
            "AddPartitionsToTxn",
            version,
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.who["producer_id"],
            v3_and_below_producer_epoch=self.who["producer_epoch"],
            v3_and_below_topics=[{"name": self.topic.name, "partitions": [0]}],
        )

    async def produce(self, value: bytes) -> Said:
        """Add the partition, and produce a record to it."""
        added = await self.add()
        error = added.at("results_by_topic_v3_and_below[0].results_by_partition[0]") or Container()
        if error.get("partition_error_code", -1) != 0:
            return added
        data = batch(value, base_sequence=0, transactional=True, **self.who)
        version = self.probed.target.newest("Produce", 3, _ADDED_BY_CLIENTS)
        fields = to_produce(self.topic, data, transactional_id=self.name)
        return await self.probed.target.ask("Produce", fields, version, self.topic.node)

    async def end(self, committed: bool) -> Said:
        """Commit or abort."""
        version = self.probed.target.newest("EndTxn", until=_EPOCH_KEPT)
        return await self.ask("EndTxn", version, committed=committed)


async def _begin(probed: Probed, what: str, topic: Topic) -> _Transaction:
    name = probed.own.transactional_id(what)
    node = await probed.target.coordinator(Coordinated.TRANSACTION, name)
    return _Transaction(probed, topic, name, node, await _initialised(probed, name, node))


async def _initialised(probed: Probed, name: str, node: int) -> dict[str, Any]:
    fields = {
        "transactional_id": name,
        "transaction_timeout_ms": _TIMEOUT_MS,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    said = await probed.target.ask("InitProducerId", fields, node=node)
    code = answered(said).at("error_code", -1)
    if code:
        raise NotJudged(f"no transaction can be begun: {error_name(code)}")
    return {"producer_id": said.at("producer_id"), "producer_epoch": said.at("producer_epoch")}


@probe(
    "T09",
    "A transaction timeout above the broker's limit is refused",
    source="TransactionCoordinator.handleInitProducerId; transaction.max.timeout.ms",
    asks="INVALID_TRANSACTION_TIMEOUT (50).",
    example="InitProducerId with a timeout of 24 days is answered with a producer id",
    writes=True,
)
async def too_long(probed: Probed, say: LiveSay) -> None:
    """Request the greatest possible timeout, and one of zero."""
    name = probed.own.transactional_id("too-long")
    node = await probed.target.coordinator(Coordinated.TRANSACTION, name)
    for version in probed.target.versions("InitProducerId"):
        for timeout_ms in (_TOO_LONG_MS, 0):
            fields = {
                "transactional_id": name,
                "transaction_timeout_ms": timeout_ms,
                "producer_id": -1,
                "producer_epoch": -1,
            }
            said = await probed.target.ask("InitProducerId", fields, version, node)
            say.error(said, "error_code", "INVALID_TRANSACTION_TIMEOUT")


@probe(
    "P35",
    "What is not committed is not read by those who ask for what is",
    source="KIP-98; UnifiedLog.read, FetchResponse.json (last_stable_offset, aborted_transactions)",
    asks="With isolation_level 1 nothing of an open transaction, what is committed, and of what is "
    "aborted its producer among the aborted transactions.",
    example="a record of an open transaction is read with isolation_level 1",
    writes=True,
)
async def isolation(probed: Probed, say: LiveSay) -> None:
    """Read beside an open, a committed and an aborted transaction."""
    topic = await probed.own.topic("transactions")
    for what, committed in (("kept", True), ("dropped", False)):
        transaction = await _begin(probed, what, topic)
        produced = await transaction.produce(what.encode())
        if not say.error(produced, f"{PRODUCED}.error_code", "NONE"):
            return
        offset = produced.at(f"{PRODUCED}.base_offset")
        await _reads(probed, say, topic, offset, _READ_COMMITTED, [])
        await _reads(probed, say, topic, offset, 0, [(offset, what.encode())])
        if not say.error(await transaction.end(committed), "error_code", "NONE"):
            return
        await _ended(probed, say, transaction, offset, [(offset, what.encode())])


async def _reads(
    probed: Probed,
    say: LiveSay,
    topic: Topic,
    offset: int,
    level: int,
    expected: list[tuple[int, bytes | None]],
) -> Said:
    fetched = await fetch(probed.target, topic, offset, isolation_level=level, max_wait_ms=0)
    if say.error(fetched, f"{FETCHED}.error_code", "NONE"):
        got = values(fetched)
        what = f"{fetched} with isolation_level {level}: brings {got}, not {expected}"
        say.holds(got == expected, what, fetched)
    return fetched


async def _ended(
    probed: Probed,
    say: LiveSay,
    transaction: _Transaction,
    offset: int,
    expected: list[tuple[int, bytes | None]],
) -> None:
    """Wait for the marker, and check the records and the aborted transactions."""
    target, topic = probed.target, transaction.topic
    fetched = await fetch(
        target, topic, offset, isolation_level=_READ_COMMITTED, min_bytes=1, max_wait_ms=5000
    )
    got = values(fetched)
    say.holds(got == expected, f"{fetched} after the end: brings {got}", fetched)
    path = f"{FETCHED}.aborted_transactions"
    told = [(each.producer_id, each.first_offset) for each in fetched.at(path) or ()]
    mine = (transaction.who["producer_id"], offset)
    is_aborted = transaction.name.endswith("dropped")
    what = f"{fetched}: aborted are {told}, where {'ours is ' if is_aborted else 'none is, not '}"
    say.holds((mine in told) == is_aborted, f"{what}{mine}", fetched, path)


@probe(
    "P36",
    "A transaction that has not begun can't be ended",
    source="TransactionCoordinator.endTransaction",
    asks="INVALID_TXN_STATE (48) where nothing was added; ending the same twice is no error.",
    example="EndTxn right after InitProducerId is answered with error 0",
    writes=True,
)
async def end_of_nothing(probed: Probed, say: LiveSay) -> None:
    """End an empty transaction; end the same one twice."""
    topic = await probed.own.topic("transactions")
    transaction = await _begin(probed, "empty", topic)
    say.error(await transaction.end(committed=True), "error_code", "INVALID_TXN_STATE")
    added = await transaction.add()
    path = "results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code"
    if say.error(added, path, "NONE"):
        say.error(await transaction.end(committed=False), "error_code", "NONE")
        say.error(await transaction.end(committed=False), "error_code", "NONE")
        say.error(await transaction.end(committed=True), "error_code", "INVALID_TXN_STATE")


@probe(
    "P37",
    "A producer that begins anew fences the one before",
    source="KIP-98, KIP-360; TransactionCoordinator",
    asks="A larger epoch for the same producer id; INVALID_PRODUCER_EPOCH (47) or PRODUCER_FENCED "
    "(90) for the old one, and its open transaction is aborted.",
    example="EndTxn of the old epoch is answered with error 0",
    writes=True,
)
async def fences(probed: Probed, say: LiveSay) -> None:
    """Initialise twice with one transactional id."""
    topic = await probed.own.topic("transactions")
    old = await _begin(probed, "fenced", topic)
    produced = await old.produce(b"fenced")
    if not say.error(produced, f"{PRODUCED}.error_code", "NONE"):
        return
    who = await _initialised(probed, old.name, old.node)
    before, after = old.who["producer_epoch"], who["producer_epoch"]
    is_newer = who["producer_id"] != old.who["producer_id"] or after > before
    say.holds(is_newer, f"InitProducerId again: epoch {after} after {before}")
    ended = await old.end(committed=True)
    say.error(ended, "error_code", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
    offset = produced.at(f"{PRODUCED}.base_offset")
    renewed = _Transaction(probed, topic, f"{old.name}-dropped", old.node, old.who)
    await _ended(probed, say, renewed, offset, [(offset, b"fenced")])


@probe(
    "P47",
    "An offset that a transaction may still change is told so to who asks for stable ones",
    source="KIP-447; OffsetFetchRequest.json (require_stable)",
    asks="UNSTABLE_OFFSET_COMMIT (88) while the transaction is open, then the offset.",
    example="OffsetFetch v7 with require_stable is answered with the offset before",
    writes=True,
)
async def unstable(probed: Probed, say: LiveSay) -> None:
    """Commit an offset in a transaction, and fetch it."""
    topic = await probed.own.topic("transactions")
    group = probed.own.group("unstable")
    transaction = await _begin(probed, "offsets", topic)
    node = await probed.target.coordinator(Coordinated.GROUP, group)
    version = probed.target.newest("OffsetFetch", since=7, until=9)
    added = await transaction.ask(
        "AddOffsetsToTxn", probed.target.newest("AddOffsetsToTxn", until=3), group_id=group
    )
    if not say.error(added, "error_code", "NONE"):
        return
    partition = {"partition_index": 0, "committed_offset": 7, "committed_leader_epoch": -1}
    commit = {
        "transactional_id": transaction.name,
        "group_id": group,
        **transaction.who,
        "generation_id_or_member_epoch": -1,
        "topics": [{"name": topic.name, "partitions": [partition]}],
    }
    oldest = probed.target.newest("TxnOffsetCommit", until=4)
    committed = await probed.target.ask("TxnOffsetCommit", commit, oldest, node)
    if not say.error(committed, "topics[0].partitions[0].error_code", "NONE"):
        return
    wanted = [{"name": topic.name, "partition_indexes": [0]}]
    fields = {"group_id": group, "topics": wanted, "require_stable": True}
    fields["groups"] = [{"group_id": group, "topics": wanted}]
    path = ("groups[0]." if version >= 8 else "") + "topics[0].partitions[0]"
    said = await probed.target.ask("OffsetFetch", fields, version, node)
    say.error(said, f"{path}.error_code", "UNSTABLE_OFFSET_COMMIT")
    if not say.error(await transaction.end(committed=True), "error_code", "NONE"):
        return
    said = await _once_stable(probed, fields, version, node, path)
    if say.error(said, f"{path}.error_code", "NONE"):
        offset = said.at(f"{path}.committed_offset")
        say.holds(offset == 7, f"{said}: offset {offset}, not 7", said, path)


async def _once_stable(
    probed: Probed, fields: dict[str, Any], version: int, node: int, path: str
) -> Said:
    """Retry while the markers are being written."""
    said = await probed.target.ask("OffsetFetch", fields, version, node)
    for _ in range(100):
        if error_name(said.at(f"{path}.error_code", 0)) != "UNSTABLE_OFFSET_COMMIT":
            break
        said = await probed.target.ask("OffsetFetch", fields, version, node)
    return said
