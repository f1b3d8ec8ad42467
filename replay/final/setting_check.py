"""
Replicas and settings of the topics that a pass created, against those of the target.

The response to CreateTopics may have them too, from v5 on, but is not what the target does later.
They are expected as long as no other request of the pass may have changed them. Source:
CreateTopicsRequest and DescribeConfigsResponse of Kafka 4.0; KIP-525 (settings in the response).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from construct import Container

from cluster.client.broker_metadata import metadata_request
from cluster.client.cluster import Cluster
from cluster.fields.kafka_enums import RESOURCE_TYPES, TOPIC
from dissector.protocol.apis import KEYS
from replay.final.asking import ask_until
from replay.final.findings import Findings
from replay.mapping.id_map import IdMap

_CONFIG_APIS = frozenset({"AlterConfigs", "IncrementalAlterConfigs"})
_REPLICA_APIS = frozenset({"CreatePartitions", "AlterPartitionReassignments"})
(_TOPIC_TYPE,) = (number for number, name in RESOURCE_TYPES.items() if name == TOPIC)

_Other = tuple[str, str, str, str]
"""Topic, path of a field below it, wanted value, value of the target."""


class Created(NamedTuple):
    """
    What a step asked of a topic.

    Attributes:
        replicas: Replicas of each partition; -1 if the target chooses, or they may have changed.
        settings: Settings and their values.
        step: The step.
    """

    replicas: int
    settings: Mapping[str, str]
    step: int


class CreatedTopics:
    """
    The topics of the target that a pass created, by name.

    Attributes:
        topics: Topic -> what was asked of it.
    """

    def __init__(self) -> None:
        self.topics: dict[str, Created] = {}

    def record_request(self, api: str, body: Container) -> None:
        """Record a request that is about to be sent, and may change what was asked before."""
        if api in _CONFIG_APIS:
            for resource in body.resources:
                known = self.topics.get(resource.resource_name)
                if known is not None and resource.resource_type == _TOPIC_TYPE:
                    self.topics[resource.resource_name] = known._replace(settings={})
        elif api in _REPLICA_APIS:
            for topic in body.topics:
                if topic.name in self.topics:
                    self.topics[topic.name] = self.topics[topic.name]._replace(replicas=-1)

    def record_deletion(self, topic: str) -> None:
        """Record that a topic is about to be deleted."""
        self.topics.pop(topic, None)

    def record_response(self, api: str, step: int, body: Container, response: Container) -> None:
        """Record the response to a request."""
        if api != "CreateTopics" or body.get("validate_only"):
            return
        accepted = {each.name for each in response.topics if not each.error_code}
        for topic in body.topics:
            if topic.name in accepted:
                placed = {len(each.broker_ids) for each in topic.assignments or ()}
                replicas = placed.pop() if len(placed) == 1 else topic.replication_factor
                settings = {each.name: each.value for each in topic.configs or () if each.value}
                self.topics[topic.name] = Created(replicas if not placed else -1, settings, step)


async def check_settings(
    created: Mapping[str, Created], ids: IdMap, cluster: Cluster, findings: Findings
) -> None:
    """Compare replicas and settings with those of the target; brokers may know them later."""
    wanted = {
        name: each
        for name, each in created.items()
        if ("topic", ids.names.captured_topic(name)) not in ids.foreign
        and (each.replicas > 0 or each.settings)
    }
    if not wanted:
        return

    async def differing() -> list[_Other]:
        described = await cluster.request(None, "Metadata", metadata_request(wanted))
        settings = await _settings(cluster, wanted)
        return [*_other_replicas(wanted, described), *_other_settings(wanted, settings)]

    for name, path, captured, replayed in await ask_until(
        cluster, differing, lambda each: not each
    ):
        at = f"topics[{ids.names.captured_topic(name)}].{path}"
        findings.add(wanted[name].step, at, captured, replayed)


def _other_replicas(wanted: Mapping[str, Created], body: Container) -> Iterator[_Other]:
    for topic in body.topics:
        expected = wanted[topic.name].replicas if topic.name in wanted else -1
        counts = {len(each.replica_nodes) for each in topic.partitions if not each.error_code}
        if expected > 0 and not topic.error_code and counts - {expected}:
            found = f"{', '.join(map(str, sorted(counts)))} at the end (Metadata)"
            yield topic.name, "replication_factor", str(expected), found


async def _settings(cluster: Cluster, topics: Mapping[str, Created]) -> Container | None:
    asked = [
        {
            "resource_type": _TOPIC_TYPE,
            "resource_name": name,
            "configuration_keys": sorted(each.settings),
        }
        for name, each in topics.items()
        if each.settings
    ]
    if not asked or KEYS["DescribeConfigs"] not in cluster.versions:
        return None
    body = {"resources": asked, "include_synonyms": False, "include_documentation": False}
    return await cluster.request(None, "DescribeConfigs", body)


def _other_settings(wanted: Mapping[str, Created], body: Container | None) -> Iterator[_Other]:
    for result in body.results if body is not None else ():
        expected = wanted[result.resource_name].settings if result.resource_name in wanted else {}
        known = {each.name: each.value for each in result.configs or ()}
        for name, value in expected.items() if not result.error_code else ():
            if name in known and known[name] is not None and not _are_alike(value, known[name]):
                found = f"{known[name]} at the end (DescribeConfigs)"
                yield result.resource_name, f"configs[{name}]", value, found


def _are_alike(asked: Any, found: Any) -> bool:
    """Return whether two texts are the same value, as brokers parse it."""
    texts = ["".join(str(each).split()).casefold() for each in (asked, found)]
    if texts[0] == texts[1]:
        return True
    try:
        return float(texts[0]) == float(texts[1])
    except ValueError:
        return False
