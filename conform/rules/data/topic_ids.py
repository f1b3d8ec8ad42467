"""Rules M06 to M08: the controller, topic ids and partition numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter, numbers_text
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import Rest, Screen, none_judged
from conform.registry.screened_columns import Bools, ScreenedRows
from dissector.protocol.facts import NO_ID
from dissector.protocol.headers import FETCH, PRODUCE
from dissector.view.text.escape import quoted

_MAX_TOPICS = 20_000
_TOPIC_LISTS = {"Metadata": "topics", "DescribeTopicPartitions": "topics", "CreateTopics": "topics"}
_TOPIC_CHANGES = ("CreateTopics", "DeleteTopics")


@rule(
    "M06",
    "Controller is not a listed broker",
    Severity.WARNING,
    source="KafkaApis.scala (handleTopicMetadataRequest, handleDescribeCluster): one of the alive "
    "brokers (KIP-590); before KIP-590, the controller may just have left: a warning",
    asks="controller_id is -1 or one of the listed brokers, where the response lists brokers.",
    example="controller_id 9, while brokers 1 to 3 are listed",
    apis=("Metadata", "DescribeCluster"),
)
def check_controller_is_listed(observation: Observation, reporter: Reporter) -> None:
    """Check that the response lists the controller among its brokers."""
    response = observation.response_body
    if response is None:
        reporter.count_unjudged(observation.unreadable_reason(request=False))
        return
    if (
        response.get("error_code")
        or response.get("endpoint_type", 1) != 1
        or "controller_id" not in response
    ):
        return
    brokers = {each.get("node_id", each.get("broker_id")) for each in response.brokers or ()}
    reporter.count_judged()
    if brokers and response.controller_id >= 0 and response.controller_id not in brokers:
        listed = numbers_text(brokers)
        found = f"controller {response.controller_id} is not one of the brokers {listed}"
        reporter.report_violation(Side.BROKER, found, path="controller_id")


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


def _is_answered_produce_or_fetch(rows: ScreenedRows) -> Bools:
    return (rows.is_of(PRODUCE) | rows.is_of(FETCH)) & rows.has_response


@rule(
    "M07",
    "Topic id of two topics, or changed topic id",
    Severity.ERROR,
    source="KIP-516: ids are random and never reused; a recreated topic has another id, and the "
    "capture may not contain its recreation, so a new id alone is a note",
    asks="Two topics do not have the same id. A topic does not return to an earlier id, and its "
    "id changes only where the topic is deleted.",
    example="topics 'a' and 'b' have the same id",
    apis=("Metadata", "DescribeTopicPartitions", "Produce", "Fetch", *_TOPIC_CHANGES),
    screen=Screen(none_judged, rows=_is_answered_produce_or_fetch, rest=Rest(_TopicIds)),
)
def check_stable_topic_ids(observation: Observation, reporter: Reporter) -> None:
    """Compare topic ids with earlier responses."""
    response = observation.response_body
    if response is None:
        reporter.count_unjudged(observation.unreadable_reason(request=False))
        return
    all_ids, connection_ids = (
        observation.capture_state.state(_TopicIds),
        observation.connection.state(_TopicIds),
    )
    if observation.exchange.api in ("Produce", "Fetch"):
        _judge_replaced_ids(observation, reporter, all_ids, response)
        return
    if observation.exchange.api in _TOPIC_CHANGES:
        for topic in response.get("topics") or response.get("responses") or ():
            all_ids[topic.name or ""] = NO_ID  # from now on the id may change
            all_ids.former[topic.name or "", NO_ID] = None
    for index, (name, topic_id) in _topics_with_ids(observation, response):
        reporter.count_judged()
        owner = all_ids.names.setdefault(topic_id, name)
        previous_id = connection_ids.get(name)
        path = f"topics[{index}].topic_id"
        if owner != name:
            found = f"topics {quoted(owner)} and {quoted(name)} have the id {topic_id}"
            reporter.report_violation(Side.BROKER, found, path=path)
        elif previous_id is not None and previous_id != topic_id:
            if (name, topic_id) in connection_ids.former:
                found = f"topic {quoted(name)} has an earlier id again"
                reporter.report_violation(Side.BROKER, found, path=path)
            elif (name, NO_ID) not in all_ids.former and observation.is_complete:
                found = f"topic {quoted(name)} has another id than before"
                reporter.report_violation(Side.BROKER, found, path=path, severity=Severity.NOTE)
            connection_ids.former[name, previous_id] = None
            response_ns = observation.exchange.response_time_ns or 0
            all_ids.replaced[observation.connection.broker.address, previous_id] = name, response_ns
            observation.capture_state.set_rest(_TopicIds, False)
        connection_ids[name] = topic_id


def _judge_replaced_ids(
    observation: Observation, reporter: Reporter, all_ids: _TopicIds, response: Any
) -> None:
    """Report responses without errors for an id that the same broker has replaced."""
    if not all_ids.replaced:
        return
    request_ns = observation.exchange.request_time_ns or 0
    for index, topic in enumerate(response.responses or ()):
        partitions = topic.get("partitions", topic.get("partition_responses")) or ()
        replaced = all_ids.replaced.get(
            (observation.connection.broker.address, topic.get("topic_id", NO_ID))
        )
        if replaced is None or all(each.error_code for each in partitions):
            continue
        reporter.count_judged()
        if replaced[1] < request_ns:
            found = f"topic {quoted(replaced[0])} is served under a replaced id"
            path = f"responses[{index}].topic_id"
            reporter.report_violation(Side.BROKER, found, path=path, severity=Severity.WARNING)


def _topics_with_ids(
    observation: Observation, response: Any
) -> Iterator[tuple[int, tuple[str, UUID]]]:
    """Yield index, name and id of topics without errors that have both name and id."""
    for index, topic in enumerate(
        response.get(_TOPIC_LISTS.get(observation.exchange.api or "", "")) or ()
    ):
        topic_id = topic.get("topic_id", NO_ID)
        if not topic.error_code and topic.name is not None and topic_id != NO_ID:
            yield index, (topic.name, topic_id)


@rule(
    "M08",
    "Gap in the partition numbers of a topic",
    Severity.ERROR,
    source="ReplicationControlManager.java: partitions are numbered from 0 and never removed; "
    "KRaftMetadataCache.getPartitionMetadata returns all",
    asks="Metadata of a topic without an error contains all its partitions, 0 to n-1, and never "
    "fewer for one topic id than before.",
    example="partitions 0 and 2 of a topic",
    apis=("Metadata",),
)
def check_contiguous_partitions(observation: Observation, reporter: Reporter) -> None:
    """Check partition numbers for gaps, and partition counts for decreases."""
    response = observation.response_body
    if response is None:
        reporter.count_unjudged(observation.unreadable_reason(request=False))
        return
    counts = observation.connection.state(_PartitionCounts)
    for index, topic in enumerate(response.topics or ()):
        if topic.error_code:
            continue
        reporter.count_judged()
        numbers = {each.partition_index for each in topic.partitions or ()}
        topic_id = topic.get("topic_id", NO_ID)
        previous_count = counts.get(topic_id, 0)
        found = ""
        if not numbers:
            found = f"topic {quoted(topic.name or str(topic_id))} has no partitions"
        elif (missing := _lowest_missing(numbers)) < len(numbers):
            found = f"partition {missing} of {max(numbers) + 1} is missing"
        elif len(numbers) < previous_count:
            found = f"{len(numbers)} partitions, after {previous_count}"
        if found:
            reporter.report_violation(Side.BROKER, found, path=f"topics[{index}].partitions")
        if topic_id != NO_ID:
            counts[topic_id] = max(previous_count, len(numbers))


def _lowest_missing(numbers: set[int]) -> int:
    """Return the lowest number from 0 that is missing; their count if they are contiguous."""
    # Numbers come from the capture: a range up to the highest could take all memory.
    return next(each for each in range(len(numbers) + 1) if each not in numbers)


class _PartitionCounts(BoundedDict[UUID, int]):
    """Partition counts by topic id, from the responses on one connection."""

    def __init__(self) -> None:
        super().__init__(_MAX_TOPICS)
