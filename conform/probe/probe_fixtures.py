"""The probes' own topics, groups and transactional ids, removed after the probes."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from uuid import UUID

from cluster.client.cluster import CoordinatorType
from conform.probe.probe_target import NotJudged, Target, require_response
from conform.probe.raw_exchange import RawExchange
from dissector.errors import ReplayError
from dissector.protocol.error_codes import error_code, error_name

NO_ID = UUID(int=0)

ABSENT_ERRORS = frozenset(
    error_code(name)
    for name in ("NONE", "UNKNOWN_TOPIC_OR_PARTITION", "GROUP_ID_NOT_FOUND", "UNKNOWN_TOPIC_ID")
)
"""Error codes of a deletion that prove the object's absence."""

_NOT_LED_ERRORS = frozenset(
    error_code(name) for name in ("UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER")
)
"""Error codes of a leader without its new partition."""

_EARLIEST = -2
_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class Topic:
    """
    A topic of the probes with one partition, 0.

    Attributes:
        name: Its name.
        topic_id: Topic id; zeros if the broker returns none.
        leader_id: Node id of the leader.
    """

    name: str
    topic_id: UUID
    leader_id: int | None


class Fixtures:
    """
    The probes' own objects on a target.

    Attributes:
        prefix: The unique prefix of their names.
        topics: Names of topics that may have been created.
        groups: Ids of groups that may have been created.
        transactional_ids: Transactional ids in use; only the broker removes them, by expiry.
        filled_topics: Names of topics that already hold the expected records.
    """

    def __init__(self, target: Target) -> None:
        self.prefix = f"kafkashark-conform-{secrets.token_hex(4)}-"
        self.topics: dict[str, None] = {}
        self.groups: dict[str, None] = {}
        self.transactional_ids: dict[str, None] = {}
        self.filled_topics: set[str] = set()
        self._target = target
        self._created: dict[str, Topic] = {}
        self._generation = 1
        self._create_failure = ""

    def forget_topics(self) -> None:
        """Discard created topics, which the broker may have lost: the next use creates new ones."""
        self._created.clear()
        self._generation += 1

    def absent_name(self, suffix: str) -> str:
        """Return a name of an object that is never created, for requests about unknown objects."""
        return self.prefix + suffix

    def topic_name(self, suffix: str) -> str:
        """Return a name for a topic, and record it for removal."""
        self.topics[self.prefix + suffix] = None
        return self.prefix + suffix

    def group_id(self, suffix: str) -> str:
        """Return an id for a group, and record it for removal."""
        self.groups[self.prefix + suffix] = None
        return self.prefix + suffix

    def transactional_id(self, suffix: str) -> str:
        """Return a transactional id, and record that it is used."""
        self.transactional_ids[self.prefix + suffix] = None
        return self.prefix + suffix

    async def topic(self, suffix: str, configs: Mapping[str, str] | None = None) -> Topic:
        """
        Return a topic of one partition with a leader; the first call creates it.

        Raises:
            NoResponse: The broker does not respond.
            NotJudged: The broker does not create it.
        """
        if suffix not in self._created:
            full_name = self.topic_name(
                suffix if self._generation == 1 else f"{suffix}-{self._generation}"
            )
            if self._target.versions("CreateTopics"):
                await self._create(full_name, configs or {})
            elif configs:
                raise NotJudged("the broker offers no CreateTopics")
            self._created[suffix] = await self._wait_for_leader(full_name)
        return self._created[suffix]

    async def _create(self, name: str, configs: Mapping[str, str]) -> None:
        if self._create_failure:
            raise NotJudged(self._create_failure)
        version = self._target.newest_version("CreateTopics")
        topic = {
            "name": name,
            "num_partitions": 1,
            # Before v4 the number of replicas was mandatory (KIP-464).
            "replication_factor": -1 if version >= 4 else 1,
            "configs": [{"name": key, "value": value} for key, value in configs.items()],
        }
        exchange = await self._target.request(
            "CreateTopics", {"topics": [topic], "timeout_ms": int(self._target.timeout_s * 1000)}
        )
        if exchange.is_timeout:  # each further rule would wait for the timeout
            self._create_failure = f"{exchange}: {exchange.failure}"
        error = require_response(exchange).field("topics[0].error_code", -1)
        if error:
            raise NotJudged(f"the broker does not create the topic: {error_name(error)}")

    async def _wait_for_leader(self, name: str) -> Topic:
        """Wait for a topic's leader; without CreateTopics, the Metadata request creates it."""
        fields = {
            "topics": [{"topic_id": NO_ID, "name": name}],
            "allow_auto_topic_creation": not self._target.versions("CreateTopics"),
        }
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._target.timeout_s
        while loop.time() < deadline:
            exchange = require_response(await self._target.request("Metadata", fields))
            leader = exchange.field("topics[0].partitions[0].leader_id", -1)
            if leader >= 0 and not exchange.field("topics[0].error_code"):
                for broker in exchange.field("brokers") or ():
                    self._target.nodes.setdefault(broker.node_id, (broker.host, broker.port))
                topic = Topic(name, exchange.field("topics[0].topic_id") or NO_ID, leader)
                if await self._leader_serves(topic):
                    return topic
            await asyncio.sleep(_PAUSE_S)
        raise NotJudged(f"the created topic got no leader in {self._target.timeout_s:g} s")

    async def _leader_serves(self, topic: Topic) -> bool:
        """Return whether the leader itself serves the topic, possibly after a moment."""
        versions = self._target.versions("ListOffsets", since=1)
        if not versions:
            return True
        partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": _EARLIEST}
        fields = {"replica_id": -1, "topics": [{"name": topic.name, "partitions": [partition]}]}
        exchange = await self._target.request("ListOffsets", fields, versions[-1], topic.leader_id)
        return exchange.field("topics[0].partitions[0].error_code") not in _NOT_LED_ERRORS

    def list_leftovers(self, reason: str) -> list[str]:
        """Return all objects as leftovers, where none can be removed."""
        names = [f"group {name}" for name in self.groups] + [f"topic {n}" for n in self.topics]
        return [f"{leftover}: {reason}" for leftover in names]

    async def remove(self) -> list[str]:
        """Remove all objects; return the remaining ones with reasons."""
        leftovers: list[str] = []
        for group in self.groups:
            await self._try_removal(leftovers, f"group {group}", self._remove_group(group))
        for topic in self.topics:
            await self._try_removal(leftovers, f"topic {topic}", self._remove_topic(topic))
        return leftovers

    async def _try_removal(self, leftovers: list[str], name: str, removal: Awaitable[str]) -> None:
        try:
            error = await removal
        except (NotJudged, ReplayError) as exception:
            leftovers.append(f"{name}: {exception}")
        else:
            if error:
                leftovers.append(f"{name}: {error}")

    async def _remove_topic(self, name: str) -> str:
        version = self._target.newest_version("DeleteTopics")
        exchange = await self._target.request(
            "DeleteTopics",
            {
                "topic_names": [name],
                "topics": [{"name": name, "topic_id": NO_ID}],
                "timeout_ms": int(self._target.timeout_s * 1000),
            },
            version,
        )
        return _removal_error(exchange, "responses[0].error_code")

    async def _remove_group(self, name: str) -> str:
        self._target.newest_version("DeleteGroups")
        node = await self._target.coordinator(CoordinatorType.GROUP, name)
        exchange = await self._target.request("DeleteGroups", {"groups_names": [name]}, node=node)
        return _removal_error(exchange, "results[0].error_code")


def _removal_error(exchange: RawExchange, path: str) -> str:
    if exchange.failure:
        return exchange.failure
    error = exchange.field(path, -1)
    return "" if error in ABSENT_ERRORS else error_name(error)
