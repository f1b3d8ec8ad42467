"""The broker that is probed: what it offers, whom else it knows, and how it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Self

from conform.probe.line import Line
from conform.probe.said import Said
from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS, api
from dissector.protocol.error_codes import error_name
from dissector.protocol.facts import Facts, collect
from replay.auth import Security
from replay.cluster import Coordinated, address

ABOUT = {"client_software_name": "kafkashark", "client_software_version": "conform"}
"""What ApiVersions wants to know of a client."""

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
"""Errors of a broker that will know better in a moment."""

_PAUSE_S = 0.1
_LONGEST_WAIT_FOR_END_S = 3.0
_MOST_SILENCES = 3


class NotJudged(Exception):
    """What a probe wants to know can't be found out here; the text says why."""


class Target:
    """
    The broker at one address, made by `Target.connect`, and those that it tells of.

    Attributes:
        shown: The address as it was given.
        security: How connections are encrypted and authenticated.
        timeout_s: How long an answer may take.
        allow_writes: Whether topics, groups and transactions of our own may be made.
        offered: API key -> lowest and highest version.
        nodes: Node id -> host and port, as Metadata tells.
        silences: How often it did not answer, since whoever asks set it to 0.
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
        self.silences = 0
        self._place = address(target)
        self._lines: dict[int | None, Line] = {}
        self._coordinators: dict[tuple[int, str], int] = {}

    @classmethod
    async def connect(
        cls, target: str, security: Security, timeout_s: float, allow_writes: bool
    ) -> Self:
        """
        Ask a broker for what it offers and whom it knows.

        Raises:
            UsageError: The target is no address.
            ReplayError: It can't be reached, or is no broker.
        """
        self = cls(target, security, timeout_s, allow_writes)
        await self._negotiate()
        if KEYS["Metadata"] in self.offered:
            await self._meet()
        return self

    def close(self) -> None:
        """Close the connections that are the target's own."""
        for line in self._lines.values():
            line.close()
        self._lines.clear()

    @property
    def end_patience_s(self) -> float:
        """How long to wait for the end of a connection."""
        return min(self.timeout_s, _LONGEST_WAIT_FOR_END_S)

    def versions(self, name: str, since: int = 0, until: int = 32767) -> range:
        """Return the versions of an API, in some bounds, that are offered and declared."""
        found = api(KEYS[name])
        low, high = self.offered.get(KEYS[name], (0, -1))
        assert found is not None
        known = found.request.versions
        return range(max(low, known.low, since), min(high, known.high, until) + 1)

    def newest(self, name: str, since: int = 0, until: int = 32767) -> int:
        """
        Return the newest version of an API, in some bounds, that is offered and declared.

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
        Open a connection of one's own; the caller closes it.

        Args:
            node: To this broker; None: to the address that was given.
            authenticated: Whether to authenticate where the security says how.

        Raises:
            ReplayError: It can't be reached.
        """
        host, port = self._place if node is None else self.nodes.get(node, self._place)
        security = self.security if authenticated else Security(self.security.tls)
        return await Line.open(host, port, security, self.timeout_s, self.offered)

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
        Ask on a connection that is kept, again while the broker says that it is not ready yet.

        Args:
            name: Of the API.
            fields: Of any version.
            version: The newest by default.
            node: Whom to ask; None: the address that was given.
            patient: Whether to ask again.

        Raises:
            NotJudged: The API is not offered.
            ReplayError: The broker can't be reached.
        """
        number = self.newest(name) if version is None else version
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout_s
        while True:
            said = await (await self._kept(node)).ask(name, number, fields)
            if said.nothing:
                self._lines.pop(node).close()
                self._note_silence(said)
            if not (patient and errors_of(said) & NOT_YET) or loop.time() > deadline:
                return said
            await asyncio.sleep(_PAUSE_S)

    def _note_silence(self, said: Said) -> None:
        """Give up a rule whose questions are not answered: each costs the whole timeout."""
        if said.is_silence:
            self.silences += 1
            if self.silences > _MOST_SILENCES:
                raise NotJudged(f"the broker was silent {_MOST_SILENCES} times before")

    async def coordinator(self, kind: Coordinated, key: str) -> int:
        """
        Return who coordinates a group or a transactional id.

        Raises:
            NotJudged: The broker does not say.
        """
        known = self._coordinators.get((kind, key))
        if known is not None:
            return known
        since = 1 if kind is Coordinated.TRANSACTION else 0
        version = self.newest("FindCoordinator", since)
        fields = {"key": key, "key_type": int(kind), "coordinator_keys": [key]}
        said = await self.ask("FindCoordinator", fields, version)
        found = (said.at("coordinators") or [said.body])[0]
        if found is None or found.error_code:
            why = said.nothing or error_name(found.error_code if found else -1)
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
        """Ask for the versions in v3, in what the refusal offers, or in v0."""
        line = await self.line(authenticated=False)
        try:
            said = await line.ask("ApiVersions", 3, ABOUT)
            if said.at("error_code") == 35 or said.body is None:
                line.close()
                line = await self.line(authenticated=False)
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
        said = await self.ask("Metadata", {"topics": []})
        self.nodes = {each.node_id: (each.host, each.port) for each in said.at("brokers") or ()}


def errors_of(said: Said) -> set[str]:
    """Name the errors in an answer."""
    facts = Facts()
    message = said.answer
    if message is not None and message.schema is not None and message.body is not None:
        collect(message.schema, message.api_version or 0, message.body, facts)
    return set(facts.errors)
