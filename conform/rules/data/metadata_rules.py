"""Rules M01 to M05: metadata of brokers, topics and coordinators."""

from __future__ import annotations

from uuid import UUID

from construct import Container

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter, numbers_text
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
    "Metadata response does not contain exactly the requested topics",
    Severity.ERROR,
    source="MetadataRequest.json (v0: [] is all; v1+: null is all, [] is none); "
    "KafkaApis.handleTopicMetadataRequest",
    asks="The response contains each requested topic once and no other, unless all topics were "
    "requested: with [] in v0, with null from v1 on.",
    example="Metadata v9 with topics [] is answered with every topic",
    apis=("Metadata",),
)
def check_requested_topics(observation: Observation, reporter: Reporter) -> None:
    """Compare the topics in request and response."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    if request.topics is None or (observation.version == 0 and not request.topics):
        return
    if response.get("error_code"):
        return
    by_id = {each.get("topic_id", NO_ID) for each in request.topics} - {NO_ID}
    names = {each.name for each in request.topics if each.get("topic_id", NO_ID) == NO_ID}
    if by_id and names:
        reporter.count_unjudged(
            "topics are requested by name and by id, and Kafka ignores one of them"
        )
        return
    reporter.count_judged()
    seen = set()
    for index, topic in enumerate(response.topics):
        key = topic.name if topic.name in names else topic.get("topic_id", NO_ID)
        if topic.name not in names and key not in by_id:
            found = f"topic '{topic.name or key}' was not requested"
            reporter.report_violation(Side.BROKER, found, path=f"topics[{index}]")
        elif key in seen:
            found = f"topic '{topic.name or key}' is returned twice"
            reporter.report_violation(Side.BROKER, found, path=f"topics[{index}]")
        seen.add(key)
    missing = [each for each in (*names, *by_id) if each not in seen]
    if missing:
        reporter.report_violation(Side.BROKER, f"the requested topic '{missing[0]}' is missing")


@rule(
    "M02",
    "Metadata request identifies a topic in a way that its version does not allow",
    Severity.WARNING,
    source="MetadataRequest.java: versions 10 and 11 must not have topic ids; KIP-516",
    asks="Below v12 each topic has a name and the zero id; from v12 on it has a name or an id. "
    "Brokers reject other requests with INVALID_REQUEST.",
    example="Metadata v10 with a null topic name",
    apis=("Metadata",),
)
def check_names_or_ids(observation: Observation, reporter: Reporter) -> None:
    """Check that a request names each topic by name or by id, as its version allows."""
    request, version = observation.request_body, observation.version or 0
    if request is None:
        reporter.count_unjudged(observation.unreadable_reason(response=False))
        return
    if version < _FIRST_WITH_IDS or not request.topics:
        return
    reporter.count_judged()
    for index, topic in enumerate(request.topics):
        has_id = topic.topic_id != NO_ID
        if version < _FIRST_REQUEST_BY_ID and (has_id or topic.name is None):
            found = f"v{version} requests a topic by its id"
        elif topic.name is None and not has_id:
            found = "a topic has neither a name nor an id"
        else:
            continue
        reporter.report_violation(Side.CLIENT, found, path=f"topics[{index}]")


@rule(
    "M03",
    "Leader or replica is not a listed broker",
    Severity.ERROR,
    source="KRaftMetadataCache.getPartitionMetadata; MetadataResponse.json (offline_replicas v5+)",
    asks="The leader is one of the brokers and one of the replicas, in-sync replicas are "
    "replicas, and replicas that are not listed as brokers are offline replicas.",
    example="leader_id 7, while brokers 1 to 3 are listed",
    apis=("Metadata",),
)
def check_listed_brokers(observation: Observation, reporter: Reporter) -> None:
    """Check leader and replicas of each partition against the brokers."""
    response = observation.response_body
    if response is None:
        reporter.count_unjudged(observation.unreadable_reason(request=False))
        return
    brokers = {each.node_id for each in response.brokers}
    if not response.topics or not brokers:
        return
    reporter.count_judged()
    brokers_text = numbers_text(brokers)
    for topic_index, topic in enumerate(response.topics):
        for partition_index, partition in enumerate(topic.partitions):
            found = _node_fault(partition, brokers, brokers_text, observation.version or 0)
            if found:
                reporter.report_violation(
                    Side.BROKER, found, path=f"topics[{topic_index}].partitions[{partition_index}]"
                )


def _node_fault(partition: Container, brokers: set[int], brokers_text: str, version: int) -> str:
    """Return the first fault in the nodes of a partition; empty: none."""
    replicas, leader = set(partition.replica_nodes), partition.leader_id
    if leader >= 0 and leader not in brokers:
        return f"leader {leader} is not one of the brokers {brokers_text}"
    if partition.error_code:
        return ""
    if leader >= 0 and leader not in replicas:
        return f"leader {leader} is not one of the replicas {numbers_text(replicas)}"
    if not set(partition.isr_nodes) <= replicas:
        return f"some of the in-sync replicas {numbers_text(partition.isr_nodes)} are not replicas"
    unlisted = replicas - brokers
    if version >= _FIRST_WITH_OFFLINE and not unlisted <= set(partition.offline_replicas):
        return f"replicas {numbers_text(unlisted)} are neither brokers nor listed as offline"
    return ""


class _LeaderEpochs(BoundedDict[tuple[UUID, int], int]):
    """Leader epochs in the responses on one connection, by topic id and partition."""

    def __init__(self) -> None:
        super().__init__(_MAX_PARTITIONS)


@rule(
    "M04",
    "Leader epoch of a partition decreases",
    Severity.WARNING,
    source="KIP-320; Metadata.java (updateLatestMetadata ignores older epochs)",
    asks="On one connection, a partition's leader epoch is not below an earlier one.",
    example="leader epoch 3 after 5",
    apis=("Metadata",),
)
def check_epochs(observation: Observation, reporter: Reporter) -> None:
    """Compare leader epochs with earlier responses on the connection."""
    response = observation.response_body
    if response is None:
        reporter.count_unjudged(observation.unreadable_reason(request=False))
        return
    if (observation.version or 0) < max(_FIRST_WITH_EPOCHS, _FIRST_WITH_IDS):
        return
    newest = observation.connection.state(_LeaderEpochs)
    for topic_index, topic in enumerate(response.topics):
        if topic.topic_id == NO_ID:
            continue
        for partition_index, partition in enumerate(topic.partitions):
            key = topic.topic_id, partition.partition_index
            before, epoch = newest.get(key), partition.leader_epoch
            if before is not None:
                reporter.count_judged()
                if 0 <= epoch < before:
                    path = f"topics[{topic_index}].partitions[{partition_index}].leader_epoch"
                    reporter.report_violation(
                        Side.BROKER, f"epoch {epoch}, after {before}", path=path
                    )
            newest[key] = max(epoch, -1 if before is None else before)


@rule(
    "M05",
    "FindCoordinator with an unsupported key type, or a response for other keys",
    Severity.ERROR,
    source="FindCoordinatorRequest.json; KIP-699 (v4: many keys), KIP-932 (v6: share partitions)",
    asks="The version supports the key type; from v4 on the response contains each requested key "
    "once. Brokers reject other key types with INVALID_REQUEST.",
    example="FindCoordinator v4 for two keys is answered with one coordinator",
    apis=("FindCoordinator",),
)
def check_requested_coordinators(observation: Observation, reporter: Reporter) -> None:
    """Check the key type, and compare the keys of request and response."""
    request, response, version = (
        observation.request_body,
        observation.response_body,
        observation.version or 0,
    )
    if request is None:
        reporter.count_unjudged(observation.unreadable_reason(response=False))
        return
    reporter.count_judged()
    key_type = request.get("key_type", 0)
    if version < _KEY_TYPES.get(key_type, version + 1):
        reporter.report_violation(
            Side.CLIENT, f"key type {key_type} in v{version}", path="key_type"
        )
    if version < _FIRST_OF_MANY_KEYS or response is None:
        return
    requested_keys = sorted(set(request.coordinator_keys))
    returned_keys = sorted(each.key for each in response.coordinators)
    if requested_keys != returned_keys:
        found = (
            f"{len(returned_keys)} coordinators are returned, not those of the "
            f"{len(requested_keys)} requested keys"
        )
        reporter.report_violation(Side.BROKER, found, path="coordinators")
