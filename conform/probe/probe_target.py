"""The probed broker: its offered versions, its cluster, and the dispatch of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Self

from conform.probe.raw_connection import Line
from conform.probe.raw_exchange import Said
from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS, api
from dissector.protocol.error_codes import error_name
from dissector.protocol.facts import Facts, collect
from replay.client.auth import Security
from replay.client.cluster import Coordinated, address, first_coordinator

ABOUT = {"client_software_name": "kafkashark", "client_software_version": "conform"}
"""Fields of ApiVersions about the client."""

NOT_YET = frozenset(
    {
        "COORDINATOR_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_COORDINATOR",
        "CONCURRENT_TRANSACTIONS",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_OR_FOLLOWER",
    }
)
"""Transient errors, which a retry may resolve."""

OF_CONTROLLER = frozenset(
    {
        "CreateTopics",
        "DeleteTopics",
        "CreatePartitions",
        "AlterConfigs",
        "IncrementalAlterConfigs",
        "ElectLeaders",
        "AlterPartitionReassignments",
        "ListPartitionReassignments",
        "AlterClientQuotas",
        "AlterUserScramCredentials",
        "UpdateFeatures",
    }
)
"""
APIs for the controller; other brokers may reject them. Since KIP-590 any broker of Kafka forwards
them, and Metadata names one of the brokers as the controller.
"""

_NOT_CONTROLLER = "NOT_CONTROLLER"
RETURNS_IN = 3
"""How many timeouts a broker that went away has to come back."""

_PAUSE_S = 0.1
_LONGEST_WAIT_FOR_END_S = 3.0
_MOST_SILENCES = 3


class NotJudged(Exception):
    """A case can't be judged here; the text gives the reason."""


class Unanswered(NotJudged):
    """
    There was no response to a request on which the rest of a probe depends.

    Attributes:
        said: The request.
    """

    def __init__(self, said: Said) -> None:
        super().__init__(f"{said}: {said.nothing}")
        self.said = said


def answered(said: Said) -> Said:
    """
    Return an exchange on which the rest of a probe depends.

    Raises:
        Unanswered: There was no response.
    """
    if said.nothing:
        raise Unanswered(said)
    return said


class Gone(NotJudged):
    """The broker went away, and did not come back in time."""


class Target:
    """
    The broker at one address, created by `Target.connect`, and the brokers in its metadata.

    Attributes:
        shown: The address as it was given.
        security: How connections are encrypted and authenticated.
        timeout_s: How long a response may take.
        allow_writes: Whether topics, groups and transactions of our own may be created.
        offered: API key -> lowest and highest version.
        nodes: Node id -> host and port, from Metadata.
        controller: Node id of the controller, from Metadata; None where that is unknown.
        silences: Number of requests without a response since `begin`.
        losses: Number of connections that the brokers ended since `begin`.
        sent: The last data sent since `begin`.
    """

    def __init__(
        self, target: str, security: Security, timeout_s: float, allow_writes: bool
    ) -> None:
        self.shown = target
        self.security = security
        self.timeout_s = timeout_s
        self.allow_writes = allow_writes
        self.offered: dict[int, tuple[int, int]] = {}
        self.nodes: dict[int, tuple[str, int]] = {}
        self.controller: int | None = None
        self.silences = self.losses = 0
        self.sent = b""
        self._hello = 3
        self._place = address(target)
        self._lines: dict[int | None, Line] = {}
        self._coordinators: dict[tuple[int, str], int] = {}

    @classmethod
    async def connect(
        cls, target: str, security: Security, timeout_s: float, allow_writes: bool
    ) -> Self:
        """
        Connect to a broker, and request its versions and the brokers of its cluster.

        Raises:
            UsageError: The target is not an address.
            ReplayError: It can't be reached, or is not a broker.
        """
        self = cls(target, security, timeout_s, allow_writes)
        await self._negotiate()
        if KEYS["Metadata"] in self.offered:
            await self._meet()
        return self

    def close(self) -> None:
        """Close the target's own connections."""
        for line in self._lines.values():
            line.close()
        self._lines.clear()

    def begin(self) -> None:
        """Reset the counters before the next rule."""
        self.silences = self.losses = 0
        self.sent = b""

    async def why_gone(self) -> str:
        """Return why the broker no longer serves anyone; empty: it responds on a new connection."""
        try:
            host, port = self._place
            line = await Line.open(host, port, Security(self.security.tls), self.timeout_s)
        except ReplayError as error:
            return f"it {error.what}"
        try:
            said = await line.ask("ApiVersions", self._hello, ABOUT)
        finally:
            line.close()
        return f"{said} on a new connection: {said.nothing}" if said.nothing else ""

    async def comes_back(self) -> bool:
        """Wait for a broker that went away, and renew its metadata; return whether it came back."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + RETURNS_IN * self.timeout_s
        self.close()
        self._coordinators.clear()
        while await self.why_gone():
            if loop.time() > deadline:
                return False
            await asyncio.sleep(_PAUSE_S)
        await self._meet()
        return True

    @property
    def end_patience_s(self) -> float:
        """How long to wait for the end of a connection."""
        return min(self.timeout_s, _LONGEST_WAIT_FOR_END_S)

    def versions(self, name: str, since: int = 0, until: int = 32767) -> range:
        """Return the versions of an API, within bounds, that are both offered and declared."""
        found = api(KEYS[name])
        low, high = self.offered.get(KEYS[name], (0, -1))
        assert found is not None
        known = found.request.versions
        return range(max(low, known.low, since), min(high, known.high, until) + 1)

    def newest(self, name: str, since: int = 0, until: int = 32767) -> int:
        """
        Return the newest version of an API, within bounds, that is both offered and declared.

        Raises:
            NotJudged: There is none.
        """
        versions = self.versions(name, since, until)
        if not versions:
            bounds = "" if (since, until) == (0, 32767) else " of a version that is wanted"
            raise NotJudged(f"the broker offers no {name}{bounds}")
        return versions[-1]

    async def line(self, node: int | None = None, *, authenticated: bool = True) -> Line:
        """
        Open a separate connection; the caller closes it.

        Args:
            node: The broker to connect to; None: the address that was given.
            authenticated: Whether to authenticate where the security has a mechanism.

        Raises:
            ReplayError: It can't be reached.
        """
        host, port = self._place if node is None else self.nodes.get(node, self._place)
        security = self.security if authenticated else Security(self.security.tls)
        line = await Line.open(host, port, security, self.timeout_s, self.offered)
        line.on_sent, line.on_lost = self._note_sent, self._note_loss
        return line

    def _note_sent(self, data: bytes) -> None:
        self.sent = data

    def _note_loss(self) -> None:
        self.losses += 1

    async def ask(
        self,
        name: str,
        fields: Mapping[str, Any],
        version: int | None = None,
        node: int | None = None,
        *,
        patient: bool = True,
    ) -> Said:
        """
        Send a request on a kept connection; retry while the broker returns a transient error.

        Args:
            name: Name of the API.
            fields: Fields of any version.
            version: The newest by default.
            node: The broker to send to; None: the controller for its APIs, else the address that
                was given.
            patient: Whether to retry.

        Raises:
            NotJudged: The API is not offered.
            ReplayError: The broker can't be reached.
        """
        number = self.newest(name) if version is None else version
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout_s
        is_routed = node is None and name in OF_CONTROLLER
        while True:
            whom = self.controller if is_routed else node
            said = await (await self._kept(whom)).ask(name, number, fields)
            if said.nothing:
                self._lines.pop(whom).close()
                self._note_silence(said)
            errors = errors_of(said)
            if is_routed and _NOT_CONTROLLER in errors and loop.time() < deadline:
                await self._meet()
                if self.controller != whom:
                    continue
            if not (patient and errors & NOT_YET) or loop.time() > deadline:
                return said
            await asyncio.sleep(_PAUSE_S)

    def _note_silence(self, said: Said) -> None:
        """Give up a rule after several missing responses: each costs the whole timeout."""
        if said.is_silence:
            self.silences += 1
            if self.silences > _MOST_SILENCES:
                raise NotJudged(f"the broker was silent {_MOST_SILENCES} times before")

    async def coordinator(self, kind: Coordinated, key: str) -> int:
        """
        Return the node id of the coordinator of a group or a transactional id.

        Raises:
            Unanswered: The broker does not respond.
            NotJudged: The broker names none.
        """
        known = self._coordinators.get((kind, key))
        if known is not None:
            return known
        since = 1 if kind is Coordinated.TRANSACTION else 0
        version = self.newest("FindCoordinator", since)
        fields = {"key": key, "key_type": int(kind), "coordinator_keys": [key]}
        said = await self.ask("FindCoordinator", fields, version)
        answered(said)
        found = None if said.body is None else first_coordinator(said.body)
        if found is None or found.error_code:
            why = error_name(found.error_code) if found is not None else "the answer names none"
            raise NotJudged(f"there is no coordinator of a {kind.name.lower()}: {why}")
        self._coordinators[kind, key] = found.node_id
        self.nodes.setdefault(found.node_id, (found.host, found.port))
        return int(found.node_id)

    async def _kept(self, node: int | None) -> Line:
        line = self._lines.get(node)
        if line is None or line.lost:
            line = self._lines[node] = await self.line(node)
        return line

    async def _negotiate(self) -> None:
        """Request the offered versions in v3; in v0 where v3 is rejected or unreadable."""
        line = await self.line(authenticated=False)
        try:
            said = await line.ask("ApiVersions", self._hello, ABOUT)
            if said.at("error_code") == 35 or said.body is None:
                line.close()
                line = await self.line(authenticated=False)
                self._hello = 0
                said = await line.ask("ApiVersions", 0, ABOUT)
        finally:
            line.close()
        if said.body is None or said.body.error_code:
            why = said.nothing or ", ".join(errors_of(said)) or "what it answers can't be read"
            raise ReplayError(line.address, f"ApiVersions failed: {why}")
        self.offered = {
            each.api_key: (each.min_version, each.max_version) for each in said.body.api_keys
        }

    async def _meet(self) -> None:
        """Request the brokers of the cluster and its controller."""
        said = await self.ask("Metadata", {"topics": []})
        self.nodes = {each.node_id: (each.host, each.port) for each in said.at("brokers") or ()}
        controller = said.at("controller_id")
        self.controller = controller if controller in self.nodes else None


def errors_of(said: Said) -> set[str]:
    """Return the names of the errors in a response."""
    facts = Facts()
    message = said.answer
    if message is not None and message.schema is not None and message.body is not None:
        collect(message.schema, message.api_version or 0, message.body, facts)
    return set(facts.errors)
