"""What a capture shows of its cluster: brokers, controllers, replicas, the cluster's id."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from construct import Container

from dissector.protocol.apis import KEYS
from dissector.protocol.facts import NO_ID
from dissector.protocol.messages import Message
from replay.plan.planned_steps import PlannedSteps

_VOTE = KEYS["Vote"]
"""The key of Vote, which only controllers offer (KIP-595)."""

_LONGEST_SOFTWARE = 100
"""Maximum length of a client's software name and version, in characters."""


class ShownCluster:
    """
    Records in a plan what exchanges show of the captured cluster.

    Attributes:
        controllers: The addresses of controllers.
    """

    def __init__(self, plan: PlannedSteps) -> None:
        self._plan = plan
        self.controllers: set[str] = set()

    def record(
        self, broker: str, request: Message, response: Message, name: Callable[[UUID], str | None]
    ) -> None:
        """
        Record what an exchange shows of the cluster.

        Args:
            broker: The address of the broker.
            request: The request, readable.
            response: The response, readable.
            name: Returns the name of a topic id.
        """
        plan, asked, answer = self._plan, request.body, response.body
        if answer is None:
            return
        if request.api == "ApiVersions":
            if any(each.api_key == _VOTE for each in answer.api_keys or ()):
                self.controllers.add(broker)
            if asked is not None and not answer.error_code and asked.get("cluster_id"):
                plan.cluster_id = plan.cluster_id or asked.cluster_id
                if asked.node_id >= 0:
                    plan.connected[broker] = asked.node_id
        elif request.api == "Metadata":
            plan.cluster_id = answer.get("cluster_id") or plan.cluster_id
            for each in answer.brokers:
                host = f"[{each.host}]" if ":" in each.host else each.host
                plan.brokers[f"{host}:{each.port}"] = each.node_id
            for topic in answer.topics:
                title = topic.get("name") or name(topic.get("topic_id", NO_ID))
                if title:
                    self._record_replicas(title, topic)

    def _record_replicas(self, title: str, topic: Container) -> None:
        """Record which brokers had a topic's partitions when they were first seen."""
        known = self._plan.replicas.setdefault(title, {})
        for each in topic.partitions:
            if each.leader_id >= 0:
                others = [node for node in each.replica_nodes if node != each.leader_id]
                known.setdefault(each.partition_index, [each.leader_id, *others])


def software_of(request: Message) -> str:
    """Return a client's software name and version, in ApiVersions v3 or later (KIP-511)."""
    body = request.body if request.api == "ApiVersions" else None
    if body is None or not body.get("client_software_name"):
        return ""
    software = f"{body.client_software_name} {body.client_software_version}".strip()
    return software[:_LONGEST_SOFTWARE]
