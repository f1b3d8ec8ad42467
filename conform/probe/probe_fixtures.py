"""Topics, groups and transactional ids of our own, created for probes and removed after them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from uuid import UUID

from conform.probe.probe_target import NotJudged, Target, answered
from conform.probe.raw_exchange import Said
from dissector.errors import ReplayError
from dissector.protocol.error_codes import error_code, error_name
from replay.client.cluster import Coordinated

NO_ID = UUID(int=0)

GONE = frozenset(
    error_code(name)
    for name in ("NONE", "UNKNOWN_TOPIC_OR_PARTITION", "GROUP_ID_NOT_FOUND", "UNKNOWN_TOPIC_ID")
)
_UNKNOWN = frozenset(
    error_code(name) for name in ("UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER")
)
_EARLIEST = -2
_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class Topic:
    """
    A topic of ours with one partition, 0.

    Attributes:
        name: Its name.
        topic_id: Its id; zeros where the broker returns none.
        node: Node id of the leader.
    """

    name: str
    topic_id: UUID
    node: int | None


class Own:
    """
    Our objects on a target.

    Attributes:
        prefix: The prefix of all our names, which no one else uses.
        topics: Names of topics that may have been created.
        groups: Ids of groups that may have been created.
        transactional_ids: Transactional ids in use; only the broker removes them, by expiry.
        filled: Names of topics that already hold the records that probes expect there.
    """

    def __init__(self, target: Target) -> None:
        self.prefix = f"kafkashark-conform-{secrets.token_hex(4)}-"
        self.topics: dict[str, None] = {}
        self.groups: dict[str, None] = {}
        self.transactional_ids: dict[str, None] = {}
        self.filled: set[str] = set()
        self._target = target
        self._made: dict[str, Topic] = {}
        self._lives = 1
        self._refusal = ""

    def renew(self) -> None:
        """Create new topics at the next use: the broker may have lost the old ones."""
        self._made.clear()
        self._lives += 1

    def name(self, what: str) -> str:
        """Return a name of an object that is never created, for requests about unknown objects."""
        return self.prefix + what

    def new_topic(self, what: str) -> str:
        """Return a name for a topic that may be created."""
        self.topics[self.prefix + what] = None
        return self.prefix + what

    def group(self, what: str) -> str:
        """Return a name for a group that may be created."""
        self.groups[self.prefix + what] = None
        return self.prefix + what

    def transactional_id(self, what: str) -> str:
        """Return a transactional id that may be used."""
        self.transactional_ids[self.prefix + what] = None
        return self.prefix + what

    async def topic(self, what: str, configs: Mapping[str, str] | None = None) -> Topic:
        """
        Return a topic of one partition with a leader; the first call creates it.

        Raises:
            Unanswered: The broker does not respond.
            NotJudged: The broker does not create it.
        """
        if what not in self._made:
            name = self.new_topic(what if self._lives == 1 else f"{what}-{self._lives}")
            if self._target.versions("CreateTopics"):
                await self._create(name, configs or {})
            elif configs:
                raise NotJudged("the broker offers no CreateTopics")
            self._made[what] = await self._led(name)
        return self._made[what]

    async def _create(self, name: str, configs: Mapping[str, str]) -> None:
        if self._refusal:
            raise NotJudged(self._refusal)
        version = self._target.newest("CreateTopics")
        wanted = {
            "name": name,
            "num_partitions": 1,
            # Before v4 the number of replicas was mandatory (KIP-464).
            "replication_factor": -1 if version >= 4 else 1,
            "configs": [{"name": key, "value": value} for key, value in configs.items()],
        }
        said = await self._target.ask(
            "CreateTopics", {"topics": [wanted], "timeout_ms": int(self._target.timeout_s * 1000)}
        )
        if said.is_silence:  # each further rule would wait for the timeout
            self._refusal = f"{said}: {said.nothing}"
        error = answered(said).at("topics[0].error_code", -1)
        if error:
            raise NotJudged(f"the broker makes no topic: {error_name(error)}")

    async def _led(self, name: str) -> Topic:
        """Wait for a topic's leader; without CreateTopics, the Metadata request creates it."""
        wanted = {
            "topics": [{"topic_id": NO_ID, "name": name}],
            "allow_auto_topic_creation": not self._target.versions("CreateTopics"),
        }
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._target.timeout_s
        while loop.time() < deadline:
            said = answered(await self._target.ask("Metadata", wanted))
            leader = said.at("topics[0].partitions[0].leader_id", -1)
            if leader >= 0 and not said.at("topics[0].error_code"):
                for each in said.at("brokers") or ():
                    self._target.nodes.setdefault(each.node_id, (each.host, each.port))
                topic = Topic(name, said.at("topics[0].topic_id") or NO_ID, leader)
                if await self._leads(topic):
                    return topic
            await asyncio.sleep(_PAUSE_S)
        raise NotJudged(f"the topic that was made got no leader in {self._target.timeout_s:g} s")

    async def _leads(self, topic: Topic) -> bool:
        """Return whether the leader itself knows the topic, which may take a moment longer."""
        versions = self._target.versions("ListOffsets", since=1)
        if not versions:
            return True
        partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": _EARLIEST}
        fields = {"replica_id": -1, "topics": [{"name": topic.name, "partitions": [partition]}]}
        said = await self._target.ask("ListOffsets", fields, versions[-1], topic.node)
        return said.at("topics[0].partitions[0].error_code") not in _UNKNOWN

    def all_left(self, why: str) -> list[str]:
        """Return everything of ours as left behind, where nothing can be removed."""
        named = [f"group {name}" for name in self.groups] + [f"topic {n}" for n in self.topics]
        return [f"{what}: {why}" for what in named]

    async def remove(self) -> list[str]:
        """Remove everything of ours; return what is left behind, and why."""
        left: list[str] = []
        for group in self.groups:
            await self._try(left, f"group {group}", self._remove_group(group))
        for topic in self.topics:
            await self._try(left, f"topic {topic}", self._remove_topic(topic))
        return left

    async def _try(self, left: list[str], what: str, removal: Awaitable[str]) -> None:
        try:
            error = await removal
        except (NotJudged, ReplayError) as why:
            left.append(f"{what}: {why}")
        else:
            if error:
                left.append(f"{what}: {error}")

    async def _remove_topic(self, name: str) -> str:
        version = self._target.newest("DeleteTopics")
        said = await self._target.ask(
            "DeleteTopics",
            {
                "topic_names": [name],
                "topics": [{"name": name, "topic_id": NO_ID}],
                "timeout_ms": int(self._target.timeout_s * 1000),
            },
            version,
        )
        return _refusal(said, "responses[0].error_code")

    async def _remove_group(self, name: str) -> str:
        self._target.newest("DeleteGroups")
        node = await self._target.coordinator(Coordinated.GROUP, name)
        said = await self._target.ask("DeleteGroups", {"groups_names": [name]}, node=node)
        return _refusal(said, "results[0].error_code")


def _refusal(said: Said, path: str) -> str:
    if said.nothing:
        return said.nothing
    error = said.at(path, -1)
    return "" if error in GONE else error_name(error)
