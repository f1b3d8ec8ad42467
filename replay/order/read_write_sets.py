"""Read and write sets of exchanges; they determine the order to keep."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from construct import Container

from cluster.fields.batch_rewriter import batch_headers
from cluster.fields.field_layout import Scope
from cluster.fields.kafka_enums import GROUP, RESOURCE_TYPES, TOPIC, TRANSACTION
from cluster.fields.roles import walk
from dissector.protocol.error_codes import error_code
from dissector.protocol.facts import NO_ID, Facts, collect
from dissector.protocol.field_roles import Role
from dissector.protocol.headers import PRODUCE
from dissector.protocol.messages import Message
from dissector.protocol.records import parse_records
from dissector.protocol.records.layout import CONTROL
from replay.order.exclusion_policy import Exclusion, exclusion_of
from replay.order.group_order import GroupEvent, group_event_of

Resource = tuple[Any, ...]
"""`("group", name)`, `("topic", name or id)`, `("partition", name or id, number)`, ..."""

Log = tuple[Any, int]
"""A partition of a topic: its name, its id, or a later life of it (`TopicLives`)."""

UNKNOWN_OFFSET = -1
"""The offset of an append without a captured response, or without any (acks = 0)."""

TOPICS: Resource = ("topics",)
"""The set of topics."""

GROUPS: Resource = ("groups",)
"""The set of groups, with their states."""

TRANSACTIONS: Resource = ("transactions",)
"""The set of transactions, with their states."""

COMMUTING = frozenset({GROUPS, TRANSACTIONS})
"""Written with each member of the set, in any order: only listings depend on these writes."""

CLUSTER: Resource = ("cluster",)
"""The configuration of the cluster."""

_UNKNOWN_TOPIC_ERRORS = frozenset(
    {"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "INVALID_TOPIC_EXCEPTION"}
)

_EXISTS = error_code("TOPIC_ALREADY_EXISTS")

_PARTITION_API_NAMES = (
    "Produce Fetch ListOffsets DeleteRecords OffsetForLeaderEpoch DescribeProducers "
    "ShareFetch ShareAcknowledge"
)
"""
APIs with responses that depend on the contents of partitions; for others only the topic counts.
"""

_WRITES = {
    Role.PARTITION: "Produce DeleteRecords",
    Role.TOPIC: (
        "CreateTopics DeleteTopics CreatePartitions AlterPartitionReassignments ElectLeaders"
    ),
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
"""Role -> APIs that write the resource it names; all others only read."""

PARTITION_APIS = frozenset(_PARTITION_API_NAMES.split())
"""The same as a set."""

_OBSERVERS = {
    "ListOffsets": "partition",
    "OffsetForLeaderEpoch": "partition",
    "OffsetFetch": "group",
}
"""API -> the kind of resources with the queried progress."""

_WRITING_APIS = {role: frozenset(names.split()) for role, names in _WRITES.items()}

_POSITIONS = {
    "Fetch": ("fetch_offset", "partition"),
    "OffsetCommit": ("committed_offset", "partition_index"),
    "TxnOffsetCommit": ("committed_offset", "partition_index"),
}
"""API -> the fields of its request with the position of a reader, and its partition."""

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

_RESOURCE_ROLES = {TOPIC: Role.TOPIC, GROUP: Role.GROUP, TRANSACTION: Role.TRANSACTIONAL_ID}
"""Resource type -> role; users of such a resource depend on its settings and its ACLs."""

_SET_OF = {Role.GROUP: GROUPS, Role.TRANSACTIONAL_ID: TRANSACTIONS}

_ROLES = frozenset(
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
class ReadWriteSets:
    """
    The read and write sets of one exchange.

    Attributes:
        reads: Resources that its response depends on.
        writes: Resources that it changes.
        appended_offsets: Partition -> offset of the first record that it appended;
            `UNKNOWN_OFFSET` if no response shows it.
        read_offsets: Partition -> last offset that must be in the log: fetched, or before the
            position of a reader.
        ended_producers: Ids of producers with transaction ends among its fetched records.
        auto_created: Topics that did not exist, and that it may have auto-created.
        existing_topics: Requested topics that existed.
        created_topics: Topics that it created.
        already_created_topics: Topics that it should create, but that existed.
        ended_transaction: Id of the producer of the ended transaction.
        group_event: Its group event.
        partitions: Topic -> the least number of partitions that it shows.
        progress_queries: The part of `reads` with queried progress.
        commits_in_transaction: Whether it commits offsets that take effect at the end of its
            transaction.
    """

    reads: set[Resource] = field(default_factory=set)
    writes: set[Resource] = field(default_factory=set)
    appended_offsets: dict[Log, int] = field(default_factory=dict)
    read_offsets: dict[Log, int] = field(default_factory=dict)
    ended_producers: set[int] = field(default_factory=set)
    auto_created: set[str] = field(default_factory=set)
    existing_topics: set[str] = field(default_factory=set)
    created_topics: set[str] = field(default_factory=set)
    already_created_topics: set[str] = field(default_factory=set)
    ended_transaction: int | None = None
    group_event: GroupEvent | None = None
    partitions: dict[str | UUID, int] = field(default_factory=dict)
    progress_queries: set[Resource] = field(default_factory=set)
    commits_in_transaction: bool = False

    def record_partitions(self, topic: str | UUID, partitions: int) -> None:
        """Record the least number of partitions of a topic."""
        self.partitions[topic] = max(self.partitions.get(topic, 0), partitions)


class ShapeReadWriteSets(NamedTuple):
    """
    The common read and write sets of exchanges of one shape.

    Attributes:
        accesses: Numbers of resources, doubled, plus one for a write.
        logs: Numbers of the logs that they append to.
        partitions: The part of `accesses` that takes effect at the end of a transaction.
    """

    accesses: array[int]
    logs: list[int]
    partitions: frozenset[int]


def read_write_sets_of(request: Message, response: Message | None) -> ReadWriteSets:
    """Return the read and write sets of an exchange."""
    sets = ReadWriteSets(group_event=group_event_of(request, response))
    _read_request(request, sets)
    if response is not None and response.body is not None:
        if _has_unknown_topic(response):
            sets.partitions.clear()
        _read_response(request, response, response.body, sets)
    elif request.api_key == PRODUCE and request.body is not None:
        for topic, each in _partitions(request.body.topic_data, "partition_data"):
            sets.appended_offsets[topic, each.index] = UNKNOWN_OFFSET
    sets.reads -= sets.writes
    return sets


def _read_request(request: Message, sets: ReadWriteSets) -> None:
    api = request.api or ""
    if exclusion_of(api) is Exclusion.CHANGING or api == "CreateTopics":
        sets.writes.add(CLUSTER)
    elif api.startswith(("Describe", "List")) and api not in PARTITION_APIS:
        sets.reads.add(CLUSTER)
    if api in _SETTING_OF:
        is_set = exclusion_of(api) is Exclusion.CHANGING
        (sets.writes if is_set else sets.reads).add(("settings", _SETTING_OF[api]))
    if api in _LISTS:
        sets.reads.add(_LISTS[api])
    if api in _WRITING_APIS[Role.TOPIC]:
        sets.writes.add(TOPICS)
    if api == "Metadata" and request.body is not None and not request.body.topics:
        sets.reads.add(TOPICS)
    if api in _POSITIONS and request.body is not None:
        sets.read_offsets.update(_positions(api, request.body))
    if api == "EndTxn" and request.body is not None:
        sets.ended_transaction = request.body.producer_id
    if api == "StreamsGroupHeartbeat" and request.body is not None:
        sets.auto_created.update(_internal_topics(request.body))
    sets.commits_in_transaction = api == "TxnOffsetCommit"
    for place in _field_values(request):
        _record_access(api, place.role, place.value, place.scope, sets)
    if api in _OBSERVERS:
        kind = _OBSERVERS[api]
        sets.progress_queries = {resource for resource in sets.reads if resource[0] == kind}


def _record_access(api: str, role: Role, value: Any, scope: Scope, sets: ReadWriteSets) -> None:
    changed = api in _WRITING_APIS.get(role, ())
    topic = scope.topic or scope.topic_id
    if role in (Role.TOPIC, Role.TOPIC_ID) and value and value != NO_ID:
        changed = api in _WRITING_APIS[Role.TOPIC]
        (sets.writes if changed else sets.reads).add(("topic", value))
        sets.record_partitions(value, 0)
    elif role is Role.PARTITION and topic and topic != NO_ID and value >= 0:
        sets.record_partitions(topic, value + 1)
        if api in PARTITION_APIS and api != "Fetch":
            (sets.writes if changed else sets.reads).add(("partition", topic, value))
        if api == "DeleteRecords":
            sets.writes.add(("start", topic, value))
    elif role in (Role.GROUP, Role.TRANSACTIONAL_ID) and value:
        (sets.writes if changed else sets.reads).add((role.value, value))
        if changed:
            sets.writes.add(_SET_OF[role])
    elif role is Role.RESOURCE and value:
        resource = _RESOURCE_ROLES.get(RESOURCE_TYPES.get(scope.kind or 0, ""))
        if resource is not None:
            is_set = exclusion_of(api) is Exclusion.CHANGING
            (sets.writes if is_set else sets.reads).add((resource.value, value))
    elif role is Role.PRODUCER_ID and value >= 0:
        sets.reads.add(("producer", value))


def _has_unknown_topic(response: Message) -> bool:
    """Return whether a response has an error for an unknown or invalid topic or partition."""
    facts = Facts()
    assert response.schema is not None
    assert response.body is not None
    collect(response.schema, response.api_version or 0, response.body, facts)
    return not _UNKNOWN_TOPIC_ERRORS.isdisjoint(facts.errors)


def _read_response(
    request: Message, response: Message, body: Container, sets: ReadWriteSets
) -> None:
    api = request.api
    if api == "Metadata":
        _read_metadata(request.body, body, sets)
    elif api == "InitProducerId" and body.producer_id >= 0:
        sets.writes.add(("producer", body.producer_id))
    elif api == "Produce":
        for topic, each in _partitions(body.responses, "partition_responses"):
            if not each.error_code and each.base_offset >= 0:
                sets.appended_offsets[topic, each.index] = each.base_offset
    elif api == "Fetch":
        for topic, each in _partitions(body.responses, "partitions"):
            sets.reads.add(("start", topic, each.partition_index))
            if each.records:
                sets.reads.add(("topic", topic))
                _read_records((topic, each.partition_index), each.records, sets)
    elif api == "CreateTopics":
        is_trial = request.body is not None and request.body.get("validate_only")
        for each in body.topics:
            if not each.error_code:
                sets.created_topics.update(() if is_trial else (each.name,))
                sets.record_partitions(each.name, each.get("num_partitions", 0))
            elif each.error_code == _EXISTS:
                sets.already_created_topics.add(each.name)
            else:
                sets.partitions.pop(each.name, None)
    if api == "Produce" and request.body is not None:
        _read_producers(request.body, sets)


def _partitions(topics: list[Container], name: str) -> Iterator[tuple[str | UUID, Container]]:
    for topic in topics:
        title = next((topic[key] for key in ("name", "topic", "topic_id") if topic.get(key)), NO_ID)
        for each in topic[name]:
            yield title, each


def _positions(api: str, body: Container) -> Iterator[tuple[Log, int]]:
    """
    Yield the last offset before each position of a reader: the last record that it has read.

    If that is in the log, a fetch offset is in range, and the offset to commit is known.
    """
    offset, partition = _POSITIONS[api]
    for title, each in _partitions(body.topics, "partitions"):
        if title != NO_ID and each[offset] > 0:
            yield (title, each[partition]), each[offset] - 1


def _internal_topics(body: Container) -> Iterator[str]:
    """Yield the internal topics that the broker creates for a streams group (KIP-1071)."""
    for each in body.topology.subtopologies if body.topology is not None else ():
        for topic in (*each.state_changelog_topics, *each.repartition_source_topics):
            yield topic.name


def _read_metadata(request: Container | None, body: Container, sets: ReadWriteSets) -> None:
    for topic in body.topics:
        if topic.name is None:
            continue
        if topic.error_code:
            sets.writes.add(("topic", topic.name))
            if request is not None and request.get("allow_auto_topic_creation", True):
                sets.auto_created.add(topic.name)
        else:
            sets.existing_topics.update(
                [topic.name] if request is not None and request.topics else ()
            )
            sets.record_partitions(topic.name, len(topic.partitions))


def _read_records(log: Log, records: bytes, sets: ReadWriteSets) -> None:
    last = -1
    for piece in batch_headers(records):
        if piece.producer is None:
            rest = parse_records(records[piece.start : piece.end])
            last = max([last, *(record.offset for batch in rest for record in batch.records)])
            continue
        last = max(last, piece.base_offset + piece.offset_count - 1)
        if piece.attributes & CONTROL:
            sets.ended_producers.add(piece.producer.producer_id)
    sets.read_offsets[log] = max(last, sets.read_offsets.get(log, last))


def _read_producers(body: Container, sets: ReadWriteSets) -> None:
    """Add the producers of the batches to the read set: each must have its id before."""
    for topic in body.topic_data:
        for partition in topic.partition_data:
            for batch in batch_headers(partition.records or b""):
                if batch.producer is not None and batch.producer.producer_id >= 0:
                    sets.reads.add(("producer", batch.producer.producer_id))


def _field_values(message: Message) -> Iterator[Any]:
    if message.body is not None and message.schema is not None:
        yield from walk(message.schema, message.api_version or 0, message.body, _ROLES)
