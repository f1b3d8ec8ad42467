"""A target on 127.0.0.1 that sends its clients to another host, 127.0.0.2."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from dissector.protocol.messages import Message
from tests.replay.support.scripted_broker import Answer, Scripted, scripted, single_broker

NEAR, FAR = "127.0.0.1", "127.0.0.2"
_NOT_COORDINATOR = 16


@dataclass
class HostileTarget:
    """
    A running target of two brokers.

    Attributes:
        is_redirecting: Whether it names the broker on the other host, for everything.
        redirects_later: Whether it begins with that at the second Heartbeat.
    """

    is_redirecting: bool = True
    redirects_later: bool = False
    brokers: list[Scripted] = field(default_factory=list)
    beats: int = 0

    @property
    def address(self) -> str:
        return f"{NEAR}:{self.brokers[0].port}"

    @property
    def far_address(self) -> str:
        return f"{FAR}:{self.brokers[1].port}"

    @property
    def seen_far(self) -> list[str | None]:
        """APIs of the requests that the other host got."""
        return [each.api for each in self.brokers[1].requests]

    def metadata(self, message: Message) -> Answer:
        leader = 2 if self.is_redirecting else 1
        known: dict[str, Any] = {"leader_id": leader, "replica_nodes": [1], "isr_nodes": [1]}
        wanted = (message.body or {}).get("topics") or ()
        topics = [{"name": each.name, "partitions": [known]} for each in wanted]
        brokers = [{"node_id": 1, "host": NEAR, "port": self.brokers[0].port}]
        brokers += [{"node_id": 2, "host": FAR, "port": self.brokers[1].port}] * (leader - 1)
        return {"brokers": brokers, "controller_id": leader, "topics": topics}

    def coordinator(self, message: Message) -> Answer:
        node = 2 if self.is_redirecting else 1
        found = {"key": "g", "node_id": node, "host": FAR, "port": self.brokers[1].port}
        return {**found, "coordinators": [found]}

    def beat(self, message: Message) -> Answer:
        self.beats += 1
        if not self.redirects_later or self.beats == 1:
            return {}
        self.is_redirecting = True
        return {"error_code": _NOT_COORDINATOR}


@contextlib.asynccontextmanager
async def hostile(redirects_later: bool = False) -> AsyncIterator[HostileTarget]:
    """Run the target until the block ends."""
    target = HostileTarget(not redirects_later, redirects_later)
    answers = single_broker([0]) | {
        "Metadata": target.metadata,
        "FindCoordinator": target.coordinator,
        "Heartbeat": target.beat,
        "SaslHandshake": lambda _: {},
        "SaslAuthenticate": lambda _: {},
    }
    far = {**answers, "Heartbeat": lambda _: {}}
    async with scripted(answers) as first, scripted(far, host=FAR) as second:
        target.brokers += [first, second]
        yield target
