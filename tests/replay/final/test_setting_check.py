"""Replicas and settings that CreateTopics asked for are those of the target at the end."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from construct import Container

from cluster.client.cluster import Cluster
from dissector.protocol.apis import KEYS
from replay.final.findings import Findings
from replay.final.setting_check import CreatedTopics, check_settings
from replay.mapping.id_map import IdMap

TOPIC, GROUP = 2, 32


class Target:
    """A target with one topic."""

    timeout_s = 0.0

    def __init__(self, replicas: int = 2, error: int = 0, **settings: str | None) -> None:
        self.versions = {KEYS["DescribeConfigs"]: (1, 4)}
        self._replicas, self._error = replicas, error
        self._settings = {name.replace("_", "."): value for name, value in settings.items()}

    async def request(self, node: int | None, name: str, body: dict[str, Any]) -> Container:
        if name == "Metadata":
            nodes = list(range(self._replicas))
            partition = Container(error_code=0, replica_nodes=nodes)
            return Container(topics=[Container(error_code=0, name="made", partitions=[partition])])
        (resource,) = body["resources"]
        wanted = resource["configuration_keys"]
        known = self._settings.items()
        configs = [Container(name=key, value=value) for key, value in known if key in wanted]
        result = Container(error_code=self._error, resource_name="made", configs=configs)
        return Container(results=[result])


def created(replicas: int = 2, error: int = 0, **more: Any) -> CreatedTopics:
    settings = {"cleanup.policy": "compact, delete", "min.cleanable.dirty.ratio": "0.50"}
    configs = [Container(name=name, value=value) for name, value in settings.items()]
    topic = Container(name="made", replication_factor=replicas, assignments=[], configs=configs)
    request = Container(topics=[topic], **more)
    topics = CreatedTopics()
    topics.record_request("CreateTopics", request)
    response = Container(topics=[Container(name="made", error_code=error)])
    topics.record_response("CreateTopics", 1, request, response)
    return topics


def paths(topics: CreatedTopics, target: Target) -> list[str]:
    findings = Findings()
    asyncio.run(check_settings(topics.topics, IdMap(), cast(Cluster, target), findings))
    return [each.difference.path for each in findings.differences]


HONEST = {"cleanup_policy": "compact,delete"}


def test_what_was_asked_for_is_there() -> None:
    assert not paths(created(), Target(**HONEST))
    assert not paths(created(replicas=-1), Target(3, **HONEST))
    assert not paths(created(), Target(error=29, cleanup_policy="delete"))
    assert not paths(created(), Target(cleanup_policy=None))


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (Target(1, **HONEST), "topics[made].replication_factor"),
        (Target(cleanup_policy="delete"), "topics[made].configs[cleanup.policy]"),
    ],
)
def test_what_the_target_dropped_is_found(target: Target, path: str) -> None:
    assert paths(created(), target) == [path]


def test_values_are_alike_as_brokers_parse_them() -> None:
    ratio = {"min_cleanable_dirty_ratio": "0.5"}
    assert not paths(created(), Target(**HONEST, **ratio))
    (path,) = paths(created(), Target(**HONEST, min_cleanable_dirty_ratio="0.6"))
    assert path == "topics[made].configs[min.cleanable.dirty.ratio]"


def test_nothing_is_expected_of_what_may_have_changed() -> None:
    assert not created(error=36).topics
    assert not created(validate_only=True).topics
    topics = created()
    other = Container(resource_type=GROUP, resource_name="made")
    topics.record_request("AlterConfigs", Container(resources=[other]))
    assert paths(topics, Target(1)) == ["topics[made].replication_factor"]
    own = Container(resource_type=TOPIC, resource_name="made")
    topics.record_request("IncrementalAlterConfigs", Container(resources=[own]))
    assert not paths(topics, Target(cleanup_policy="delete"))
    topics.record_request("AlterPartitionReassignments", Container(topics=[Container(name="made")]))
    assert not paths(topics, Target(1))
    topics.record_deletion("made")
    assert not topics.topics
