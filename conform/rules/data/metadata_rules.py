"""M: metadata of brokers, topics and coordinators."""

from __future__ import annotations

from uuid import UUID

from construct import Container

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule

NO_ID = UUID(int=0)

_FIRST_WITH_IDS, _FIRST_REQUEST_BY_ID = 10, 12
_FIRST_WITH_OFFLINE = 5
_FIRST_WITH_EPOCHS = 7
_FIRST_OF_MANY_KEYS = 4
_KEY_TYPES = {0: 0, 1: 1, 2: 6}
"""FindCoordinator key type (group, transaction, share partition) -> first version with it."""

_MAX_PARTITIONS = 50_000


@rule(
    "M01",
    "Metadata tells of the topics that were asked for",
    Severity.ERROR,
    source="MetadataRequest.json (v0: [] is all; v1+: null is all, [] is none); "
    "KafkaApis.handleTopicMetadataRequest",
    asks="Each topic that was asked for is told of once, and no other, unless all were asked for: "
    "with [] in v0, with null from v1 on.",
    example="Metadata v9 with topics [] is answered with every topic",
    apis=("Metadata",),
)
def requested_topics(turn: Observation, say: Reporter) -> None:
    """Compare the topics in request and response."""
    asked, told = turn.request_body, turn.response_body
    if asked is None or told is None:
        say.count_unjudged(turn.unreadable_reason())
        return
    if asked.topics is None or (turn.version == 0 and not asked.topics):
        return
    if told.get("error_code"):
        return
    by_id = {each.get("topic_id", NO_ID) for each in asked.topics} - {NO_ID}
    names = {each.name for each in asked.topics if each.get("topic_id", NO_ID) == NO_ID}
    if by_id and names:
        say.count_unjudged(
            "topics are asked for by name and by id at once, of which Kafka passes over one"
        )
        return
    say.count_judged()
    seen = set()
    for index, topic in enumerate(told.topics):
        key = topic.name if topic.name in names else topic.get("topic_id", NO_ID)
        if topic.name not in names and key not in by_id:
            found = f"topic '{topic.name or key}' is told of, which was not asked for"
            say.report_violation(Side.BROKER, found, path=f"topics[{index}]")
        elif key in seen:
            found = f"topic '{topic.name or key}' is told of twice"
            say.report_violation(Side.BROKER, found, path=f"topics[{index}]")
        seen.add(key)
    missing = [each for each in (*names, *by_id) if each not in seen]
    if missing:
        say.report_violation(Side.BROKER, f"topic '{missing[0]}' was asked for, and is not told of")


@rule(
    "M02",
    "Topics are asked for by name, from Metadata v12 on also by id",
    Severity.WARNING,
    source="MetadataRequest.java: versions 10 and 11 must not have topic ids; KIP-516",
    asks="Below v12 each topic has a name and the zero id; from then on it has a name or an id. "
    "Brokers refuse the rest with INVALID_REQUEST.",
    example="Metadata v10 asks for a topic with a null name",
    apis=("Metadata",),
)
def names_or_ids(turn: Observation, say: Reporter) -> None:
    """Check that a request names each topic by name or by id, as its version allows."""
    asked, version = turn.request_body, turn.version or 0
    if asked is None:
        say.count_unjudged(turn.unreadable_reason(response=False))
        return
    if version < _FIRST_WITH_IDS or not asked.topics:
        return
    say.count_judged()
    for index, topic in enumerate(asked.topics):
        has_id = topic.topic_id != NO_ID
        if version < _FIRST_REQUEST_BY_ID and (has_id or topic.name is None):
            found = f"v{version} asks for a topic by its id"
        elif topic.name is None and not has_id:
            found = "a topic has neither a name nor an id"
        else:
            continue
        say.report_violation(Side.CLIENT, found, path=f"topics[{index}]")


@rule(
    "M03",
    "Leaders and replicas are brokers that are told of",
    Severity.ERROR,
    source="KRaftMetadataCache.getPartitionMetadata; MetadataResponse.json (offline_replicas v5+)",
    asks="A leader is one of the brokers and of the replicas, in-sync replicas are replicas, and "
    "replicas that are no brokers are offline ones.",
    example="leader_id 7, where brokers 1 to 3 are listed",
    apis=("Metadata",),
)
def listed_brokers(turn: Observation, say: Reporter) -> None:
    """Check leader and replicas of each partition against the brokers."""
    told = turn.response_body
    if told is None:
        say.count_unjudged(turn.unreadable_reason(request=False))
        return
    brokers = {each.node_id for each in told.brokers}
    if not told.topics or not brokers:
        return
    say.count_judged()
    for at, topic in enumerate(told.topics):
        for index, partition in enumerate(topic.partitions):
            found = _node_fault(partition, brokers, turn.version or 0)
            if found:
                say.report_violation(Side.BROKER, found, path=f"topics[{at}].partitions[{index}]")


def _node_fault(partition: Container, brokers: set[int], version: int) -> str:
    """Return the first fault in the nodes of a partition; empty: none."""
    replicas, leader = set(partition.replica_nodes), partition.leader_id
    if leader >= 0 and leader not in brokers:
        return f"leader {leader} is none of the brokers {sorted(brokers)}"
    if partition.error_code:
        return ""
    if leader >= 0 and leader not in replicas:
        return f"leader {leader} is none of the replicas {sorted(replicas)}"
    if not set(partition.isr_nodes) <= replicas:
        return f"of the in-sync replicas {partition.isr_nodes} some are no replicas"
    away = replicas - brokers
    if version >= _FIRST_WITH_OFFLINE and not away <= set(partition.offline_replicas):
        return f"replicas {sorted(away)} are no brokers, and not told to be offline"
    return ""


class _LeaderEpochs(BoundedDict[tuple[UUID, int], int]):
    """Leader epochs in the responses on one connection, by topic id and partition."""

    def __init__(self) -> None:
        super().__init__(_MAX_PARTITIONS)


@rule(
    "M04",
    "Leader epochs of a partition never go down",
    Severity.WARNING,
    source="KIP-320; Metadata.java (updateLatestMetadata passes over older epochs)",
    asks="On one connection, a partition's leader epoch is not below one that was told before.",
    example="leader epoch 3 is told, where it was 5",
    apis=("Metadata",),
)
def epochs_go_up(turn: Observation, say: Reporter) -> None:
    """Compare leader epochs with those in earlier responses on the connection."""
    told = turn.response_body
    if told is None:
        say.count_unjudged(turn.unreadable_reason(request=False))
        return
    if (turn.version or 0) < max(_FIRST_WITH_EPOCHS, _FIRST_WITH_IDS):
        return
    known = turn.connection.state(_LeaderEpochs)
    for at, topic in enumerate(told.topics):
        if topic.topic_id == NO_ID:
            continue
        for index, partition in enumerate(topic.partitions):
            key = topic.topic_id, partition.partition_index
            before, epoch = known.get(key), partition.leader_epoch
            if before is not None:
                say.count_judged()
                if 0 <= epoch < before:
                    path = f"topics[{at}].partitions[{index}].leader_epoch"
                    say.report_violation(Side.BROKER, f"epoch {epoch}, after {before}", path=path)
            known[key] = max(epoch, -1 if before is None else before)


@rule(
    "M05",
    "Each coordinator that is asked for is told of",
    Severity.ERROR,
    source="FindCoordinatorRequest.json; KIP-699 (v4: many keys), KIP-932 (v6: share partitions)",
    asks="The key type is one that the version knows; from v4 on there is an answer for each key, "
    "once. Brokers refuse other types with INVALID_REQUEST.",
    example="FindCoordinator v4 for two keys is answered with one coordinator",
    apis=("FindCoordinator",),
)
def requested_coordinators(turn: Observation, say: Reporter) -> None:
    """Check the key type, and compare the keys of request and response."""
    asked, told, version = turn.request_body, turn.response_body, turn.version or 0
    if asked is None:
        say.count_unjudged(turn.unreadable_reason(response=False))
        return
    say.count_judged()
    kind = asked.get("key_type", 0)
    if version < _KEY_TYPES.get(kind, version + 1):
        say.report_violation(Side.CLIENT, f"key type {kind} in v{version}", path="key_type")
    if version < _FIRST_OF_MANY_KEYS or told is None:
        return
    wanted = sorted(set(asked.coordinator_keys))
    given = sorted(each.key for each in told.coordinators)
    if wanted != given:
        found = f"{len(given)} coordinators are told of, of other keys than the {len(wanted)} asked"
        say.report_violation(Side.BROKER, found, path="coordinators")
