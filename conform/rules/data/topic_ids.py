"""M, second part: topics, their ids and partitions, and the controller."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from dissector.protocol.facts import NO_ID
from dissector.view.text.escape import quoted

_MAX_TOPICS = 20_000
_TOPIC_LISTS = {"Metadata": "topics", "DescribeTopicPartitions": "topics", "CreateTopics": "topics"}
_TOPIC_CHANGES = ("CreateTopics", "DeleteTopics")


@rule(
    "M06",
    "The controller must be one of the brokers",
    Severity.WARNING,
    source="KafkaApis.scala (handleTopicMetadataRequest, handleDescribeCluster): one of the alive "
    "brokers (KIP-590); before that, the controller may just have gone: a warning",
    asks="controller_id is -1 or a broker that the answer lists, where it lists brokers.",
    example="controller_id 9, where brokers 1 to 3 are listed",
    apis=("Metadata", "DescribeCluster"),
)
def controller_is_listed(turn: Observation, say: Reporter) -> None:
    """Check that the response lists the controller among its brokers."""
    told = turn.response_body
    if told is None:
        say.count_unjudged(turn.unreadable_reason(request=False))
        return
    if told.get("error_code") or told.get("endpoint_type", 1) != 1 or "controller_id" not in told:
        return
    brokers = {each.get("node_id", each.get("broker_id")) for each in told.brokers or ()}
    say.count_judged()
    if brokers and told.controller_id >= 0 and told.controller_id not in brokers:
        found = f"controller {told.controller_id} is none of the brokers {sorted(brokers)}"
        say.report_violation(Side.BROKER, found, path="controller_id")


class _TopicIds(BoundedDict[str, UUID]):
    """
    The newest id of each topic.

    Attributes:
        names: The topic of each id; ids are unique across clusters.
        former: Topics with their former ids; with the zero id, topics created or deleted in the
            capture.
        replaced: By broker and replaced id, the topic and the time of the response.
    """

    def __init__(self) -> None:
        super().__init__(_MAX_TOPICS)
        self.names: BoundedDict[UUID, str] = BoundedDict(_MAX_TOPICS)
        self.former: BoundedDict[tuple[str, UUID], None] = BoundedDict(_MAX_TOPICS)
        self.replaced: BoundedDict[tuple[str, UUID], tuple[str, int]] = BoundedDict(_MAX_TOPICS)


@rule(
    "M07",
    "A topic id must stand for one topic, and stay",
    Severity.ERROR,
    source="KIP-516: ids are random and never given again; a topic that is made anew has another, "
    "which the capture may not show, so a new id alone is a note",
    asks="Two topics do not have the same id. A topic does not get back an id that it had before "
    "another one, and its id changes only where it is deleted.",
    example="topics 'a' and 'b' have one id",
    apis=("Metadata", "DescribeTopicPartitions", "Produce", "Fetch", *_TOPIC_CHANGES),
)
def stable_topic_ids(turn: Observation, say: Reporter) -> None:
    """Compare topic ids with those in earlier responses."""
    told = turn.response_body
    if told is None:
        say.count_unjudged(turn.unreadable_reason(request=False))
        return
    world, here = turn.capture_state.state(_TopicIds), turn.connection.state(_TopicIds)
    if turn.exchange.api in ("Produce", "Fetch"):
        _judge_replaced_ids(turn, say, world, told)
        return
    if turn.exchange.api in _TOPIC_CHANGES:
        for topic in told.get("topics") or told.get("responses") or ():
            world[topic.name or ""] = NO_ID  # from here on the id may change
            world.former[topic.name or "", NO_ID] = None
    for at, (name, topic_id) in _topics_with_ids(turn, told):
        say.count_judged()
        owner = world.names.setdefault(topic_id, name)
        before = here.get(name)
        path = f"topics[{at}].topic_id"
        if owner != name:
            found = f"topics {quoted(owner)} and {quoted(name)} have the id {topic_id}"
            say.report_violation(Side.BROKER, found, path=path)
        elif before is not None and before != topic_id:
            if (name, topic_id) in here.former:
                found = f"topic {quoted(name)} has its id of before again"
                say.report_violation(Side.BROKER, found, path=path)
            elif (name, NO_ID) not in world.former and turn.is_complete:
                found = f"topic {quoted(name)} has another id than before"
                say.report_violation(Side.BROKER, found, path=path, severity=Severity.NOTE)
            here.former[name, before] = None
            told_ns = turn.exchange.response_time_ns or 0
            world.replaced[turn.connection.broker.address, before] = name, told_ns
        here[name] = topic_id


def _judge_replaced_ids(turn: Observation, say: Reporter, world: _TopicIds, told: Any) -> None:
    """Report responses without errors for an id that the same broker has replaced."""
    if not world.replaced:
        return
    sent_ns = turn.exchange.request_time_ns or 0
    for at, topic in enumerate(told.responses or ()):
        parts = topic.get("partitions", topic.get("partition_responses")) or ()
        replaced = world.replaced.get(
            (turn.connection.broker.address, topic.get("topic_id", NO_ID))
        )
        if replaced is None or all(each.error_code for each in parts):
            continue
        say.count_judged()
        if replaced[1] < sent_ns:
            found = f"topic {quoted(replaced[0])} is served by an id that it has no more"
            path = f"responses[{at}].topic_id"
            say.report_violation(Side.BROKER, found, path=path, severity=Severity.WARNING)


def _topics_with_ids(turn: Observation, told: Any) -> Iterator[tuple[int, tuple[str, UUID]]]:
    """Yield index, name and id of topics without errors that have both name and id."""
    for at, topic in enumerate(told.get(_TOPIC_LISTS.get(turn.exchange.api or "", "")) or ()):
        topic_id = topic.get("topic_id", NO_ID)
        if not topic.error_code and topic.name is not None and topic_id != NO_ID:
            yield at, (topic.name, topic_id)


@rule(
    "M08",
    "Partitions of a topic must be numbered without a gap",
    Severity.ERROR,
    source="ReplicationControlManager.java: partitions are numbered from 0 on and never taken "
    "away; KRaftMetadataCache.getPartitionMetadata answers all",
    asks="Metadata without an error of the topic has all its partitions, 0 to n-1, and never fewer "
    "of one topic id than before.",
    example="partitions 0 and 2 of a topic",
    apis=("Metadata",),
)
def contiguous_partitions(turn: Observation, say: Reporter) -> None:
    """Check partition numbers for gaps, and partition counts for decreases."""
    told = turn.response_body
    if told is None:
        say.count_unjudged(turn.unreadable_reason(request=False))
        return
    counts = turn.connection.state(_PartitionCounts)
    for at, topic in enumerate(told.topics or ()):
        if topic.error_code:
            continue
        say.count_judged()
        numbers = {each.partition_index for each in topic.partitions or ()}
        topic_id = topic.get("topic_id", NO_ID)
        before = counts.get(topic_id, 0)
        found = ""
        if not numbers:
            found = f"topic {quoted(topic.name or str(topic_id))} has no partitions"
        elif numbers != set(range(len(numbers))):
            missing = min(set(range(max(numbers) + 1)) - numbers, default=-1)
            found = f"partition {missing} of {max(numbers) + 1} is missing"
        elif len(numbers) < before:
            found = f"{len(numbers)} partitions, after {before}"
        if found:
            say.report_violation(Side.BROKER, found, path=f"topics[{at}].partitions")
        if topic_id != NO_ID:
            counts[topic_id] = max(before, len(numbers))


class _PartitionCounts(BoundedDict[UUID, int]):
    """Partition counts by topic id, from the responses on one connection."""

    def __init__(self) -> None:
        super().__init__(_MAX_TOPICS)
