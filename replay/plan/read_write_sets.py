"""Read and write sets of exchanges, which show whose order must be kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from construct import Container

from dissector.protocol.error_codes import error_code
from dissector.protocol.facts import NO_ID, Facts, collect
from dissector.protocol.messages import Message
from dissector.protocol.records import parse_records
from dissector.protocol.records.layout import CONTROL
from replay.fields.batch_rewriter import batch_headers
from replay.fields.field_layout import Role, Scope
from replay.fields.roles import walk
from replay.model.kafka_enums import GROUP, RESOURCE_TYPES, TOPIC, TRANSACTION
from replay.plan.exclusion_policy import Kind, kind_of
from replay.plan.group_order import Turn, turn_of

Thing = tuple[Any, ...]
"""`("group", name)`, `("topic", name or id)`, `("partition", name or id, number)`, ..."""

Log = tuple[str | UUID, int]
"""A partition of a topic."""

TOPICS: Thing = ("topics",)
"""The set of topics."""

GROUPS: Thing = ("groups",)
"""The set of groups, with their states."""

TRANSACTIONS: Thing = ("transactions",)
"""The set of transactions, with their states."""

COMMUTING = frozenset({GROUPS, TRANSACTIONS})
"""Written with each member of the set, in any order: only listings depend on these writes."""

CLUSTER: Thing = ("cluster",)
"""The configuration of the cluster."""

_DENIALS = frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "INVALID_TOPIC_EXCEPTION"})

_EXISTS = error_code("TOPIC_ALREADY_EXISTS")

_OF_PARTITIONS = (
    "Produce Fetch ListOffsets DeleteRecords OffsetForLeaderEpoch DescribeProducers "
    "ShareFetch ShareAcknowledge"
)
"""APIs whose responses depend on the contents of partitions; for others only the topic counts."""

_WRITES = {
    Role.PARTITION: "Produce DeleteRecords",
    Role.TOPIC: "CreateTopics DeleteTopics CreatePartitions",
    Role.GROUP: (
        "JoinGroup SyncGroup LeaveGroup OffsetCommit TxnOffsetCommit ConsumerGroupHeartbeat "
        "ShareGroupHeartbeat StreamsGroupHeartbeat StreamsGroupTopologyDescriptionUpdate "
        "AddOffsetsToTxn DeleteGroups OffsetDelete "
        "ShareFetch ShareAcknowledge AlterShareGroupOffsets DeleteShareGroupOffsets"
    ),
    Role.TRANSACTIONAL_ID: (
        "InitProducerId AddPartitionsToTxn AddOffsetsToTxn TxnOffsetCommit EndTxn Produce"
    ),
}
"""Role -> APIs that write the thing it names; all others only read."""

_BY_PARTITION = frozenset(_OF_PARTITIONS.split())

_OBSERVERS = {
    "ListOffsets": "partition",
    "OffsetForLeaderEpoch": "partition",
    "OffsetFetch": "group",
}
"""API -> the kind of things whose progress it queries."""

_CHANGES = {role: frozenset(names.split()) for role, names in _WRITES.items()}

_SETTINGS = {
    "acls": "CreateAcls DeleteAcls DescribeAcls",
    "quotas": "AlterClientQuotas DescribeClientQuotas",
    "users": "AlterUserScramCredentials DescribeUserScramCredentials",
    "tokens": (
        "CreateDelegationToken RenewDelegationToken ExpireDelegationToken DescribeDelegationToken"
    ),
    "configs": "AlterConfigs IncrementalAlterConfigs DescribeConfigs ListConfigResources",
    "reassignments": "AlterPartitionReassignments ListPartitionReassignments",
    "directories": "AlterReplicaLogDirs DescribeLogDirs",
    "voters": "AddRaftVoter RemoveRaftVoter DescribeQuorum",
}
"""Kind of setting -> APIs that write or read it."""

_SETTING_OF = {api: kind for kind, names in _SETTINGS.items() for api in names.split()}

_LISTS = {"ListGroups": GROUPS, "ListTransactions": TRANSACTIONS}
"""API -> the set that it lists."""

_CONFIGURED = {TOPIC: Role.TOPIC, GROUP: Role.GROUP, TRANSACTION: Role.TRANSACTIONAL_ID}
"""Resource type -> role; users of such a resource depend on its settings and its ACLs."""

_PART_OF = {Role.GROUP: GROUPS, Role.TRANSACTIONAL_ID: TRANSACTIONS}

_WANTED = frozenset(
    {
        Role.TOPIC,
        Role.TOPIC_ID,
        Role.PARTITION,
        Role.GROUP,
        Role.TRANSACTIONAL_ID,
        Role.PRODUCER_ID,
        Role.RESOURCE,
    }
)


@dataclass(slots=True)
class Footprint:
    """
    The read and write sets of one exchange.

    Attributes:
        reads: Things on which its response depends.
        writes: Things that it changes.
        wrote: Partition -> offset of the first record that it appended.
        saw: Partition -> last offset that must be in the log: fetched, or before a fetch offset.
        producers: Ids of producers whose transaction ends it fetched.
        lacked: Topics that did not exist, and that it may have auto-created.
        found: Requested topics that existed.
        ended: Id of the producer whose transaction it ended.
        turn: Its group event.
        partitions: Topic -> the least number of partitions that it shows.
        observes: Those of `reads` whose progress it queries.
        commits: Whether it commits offsets that take effect when its transaction ends.
    """

    reads: set[Thing] = field(default_factory=set)
    writes: set[Thing] = field(default_factory=set)
    wrote: dict[Log, int] = field(default_factory=dict)
    saw: dict[Log, int] = field(default_factory=dict)
    producers: set[int] = field(default_factory=set)
    lacked: set[str] = field(default_factory=set)
    found: set[str] = field(default_factory=set)
    ended: int | None = None
    turn: Turn | None = None
    partitions: dict[str | UUID, int] = field(default_factory=dict)
    observes: set[Thing] = field(default_factory=set)
    commits: bool = False

    def show(self, topic: str | UUID, partitions: int) -> None:
        """Record the least number of partitions of a topic."""
        self.partitions[topic] = max(self.partitions.get(topic, 0), partitions)


def footprint(asked: Message, answered: Message | None) -> Footprint:
    """Return the read and write sets of an exchange."""
    found = Footprint(turn=turn_of(asked, answered))
    _read_request(asked, found)
    if answered is not None and answered.body is not None:
        if _is_denied(answered):
            found.partitions.clear()
        _read_answer(asked, answered, answered.body, found)
    found.reads -= found.writes
    return found


def _read_request(asked: Message, found: Footprint) -> None:
    api = asked.api or ""
    if kind_of(api) is Kind.CHANGING or api == "CreateTopics":
        found.writes.add(CLUSTER)
    elif api.startswith(("Describe", "List")) and api not in _BY_PARTITION:
        found.reads.add(CLUSTER)
    if api in _SETTING_OF:
        is_set = kind_of(api) is Kind.CHANGING
        (found.writes if is_set else found.reads).add(("settings", _SETTING_OF[api]))
    if api in _LISTS:
        found.reads.add(_LISTS[api])
    if api in _CHANGES[Role.TOPIC]:
        found.writes.add(TOPICS)
    if api == "Metadata" and asked.body is not None and not asked.body.topics:
        found.reads.add(TOPICS)
    if api == "Fetch" and asked.body is not None:
        _read_positions(asked.body, found)
    if api == "EndTxn" and asked.body is not None:
        found.ended = asked.body.producer_id
    if api == "StreamsGroupHeartbeat" and asked.body is not None:
        found.lacked.update(_internal_topics(asked.body))
    found.commits = api == "TxnOffsetCommit"
    for place in _places(asked):
        _touch(api, place.role, place.value, place.scope, found)
    if api in _OBSERVERS:
        found.observes = {thing for thing in found.reads if thing[0] == _OBSERVERS[api]}


def _touch(api: str, role: Role, value: Any, scope: Scope, found: Footprint) -> None:
    changed = api in _CHANGES.get(role, ())
    topic = scope.topic or scope.topic_id
    if role in (Role.TOPIC, Role.TOPIC_ID) and value and value != NO_ID:
        changed = api in _CHANGES[Role.TOPIC]
        (found.writes if changed else found.reads).add(("topic", value))
        found.show(value, 0)
    elif role is Role.PARTITION and topic and topic != NO_ID and value >= 0:
        found.show(topic, value + 1)
        if api in _BY_PARTITION and api != "Fetch":
            (found.writes if changed else found.reads).add(("partition", topic, value))
        if api == "DeleteRecords":
            found.writes.add(("start", topic, value))
    elif role in (Role.GROUP, Role.TRANSACTIONAL_ID) and value:
        (found.writes if changed else found.reads).add((role.value, value))
        if changed:
            found.writes.add(_PART_OF[role])
    elif role is Role.RESOURCE and value:
        thing = _CONFIGURED.get(RESOURCE_TYPES.get(scope.kind or 0, ""))
        if thing is not None:
            is_set = kind_of(api) is Kind.CHANGING
            (found.writes if is_set else found.reads).add((thing.value, value))
    elif role is Role.PRODUCER_ID and value >= 0:
        found.reads.add(("producer", value))


def _is_denied(answered: Message) -> bool:
    """Return whether a response has an error for an unknown or invalid topic or partition."""
    facts = Facts()
    assert answered.schema is not None
    assert answered.body is not None
    collect(answered.schema, answered.api_version or 0, answered.body, facts)
    return not _DENIALS.isdisjoint(facts.errors)


def _read_answer(asked: Message, answered: Message, body: Container, found: Footprint) -> None:
    api = asked.api
    if api == "Metadata":
        _read_metadata(asked.body, body, found)
    elif api == "InitProducerId" and body.producer_id >= 0:
        found.writes.add(("producer", body.producer_id))
    elif api == "Produce":
        for topic, each in _partitions(body.responses, "partition_responses"):
            if not each.error_code and each.base_offset >= 0:
                found.wrote[topic, each.index] = each.base_offset
    elif api == "Fetch":
        for topic, each in _partitions(body.responses, "partitions"):
            found.reads.add(("start", topic, each.partition_index))
            if each.records:
                found.reads.add(("topic", topic))
                _read_records((topic, each.partition_index), each.records, found)
    elif api == "CreateTopics":
        for each in body.topics:
            if not each.error_code:
                found.show(each.name, each.get("num_partitions", 0))
            elif each.error_code != _EXISTS:
                found.partitions.pop(each.name, None)
    if api == "Produce" and asked.body is not None:
        _read_producers(asked.body, found)


def _partitions(topics: list[Container], name: str) -> Iterator[tuple[str | UUID, Container]]:
    for topic in topics:
        title = next((topic[key] for key in ("name", "topic", "topic_id") if topic.get(key)), NO_ID)
        for each in topic[name]:
            yield title, each


def _read_positions(body: Container, found: Footprint) -> None:
    """Record the offsets that must exist for the fetch offsets to be in range."""
    for topic in body.topics:
        title = topic.get("topic") or topic.get("topic_id")
        for each in topic.partitions:
            if title and each.fetch_offset > 0:
                found.saw[title, each.partition] = each.fetch_offset - 1


def _internal_topics(body: Container) -> Iterator[str]:
    """Yield the internal topics that the broker creates for a streams group (KIP-1071)."""
    for each in body.topology.subtopologies if body.topology is not None else ():
        for topic in (*each.state_changelog_topics, *each.repartition_source_topics):
            yield topic.name


def _read_metadata(asked: Container | None, body: Container, found: Footprint) -> None:
    for topic in body.topics:
        if topic.name is None:
            continue
        if topic.error_code:
            found.writes.add(("topic", topic.name))
            if asked is not None and asked.get("allow_auto_topic_creation", True):
                found.lacked.add(topic.name)
        else:
            found.found.update([topic.name] if asked is not None and asked.topics else ())
            found.show(topic.name, len(topic.partitions))


def _read_records(log: Log, records: bytes, found: Footprint) -> None:
    last = -1
    for piece in batch_headers(records):
        if piece.producer is None:
            rest = parse_records(records[piece.start : piece.end])
            last = max([last, *(record.offset for batch in rest for record in batch.records)])
            continue
        last = max(last, piece.base_offset + piece.offset_count - 1)
        if piece.attributes & CONTROL:
            found.producers.add(piece.producer.producer_id)
    found.saw[log] = max(last, found.saw.get(log, last))


def _read_producers(body: Container, found: Footprint) -> None:
    """Add the producers of the batches to the read set: each must have its id before."""
    for topic in body.topic_data:
        for partition in topic.partition_data:
            for piece in batch_headers(partition.records or b""):
                if piece.producer is not None and piece.producer.producer_id >= 0:
                    found.reads.add(("producer", piece.producer.producer_id))


def _places(message: Message) -> Iterator[Any]:
    if message.body is not None and message.schema is not None:
        yield from walk(message.schema, message.api_version or 0, message.body, _WANTED)
