"""Whom a replay talks to, under which names, and what it takes for the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dissector.errors import UsageError
from replay.auth import Security
from replay.names import Names
from replay.noise import Noise
from replay.offsets import Policy
from replay.stage import Manner

MOCK = "mock"
"""In the place of an address: the embedded broker."""


@dataclass(frozen=True, slots=True)
class Setting:
    """
    All that is to be said of a replay but what is played.

    Attributes:
        to: `HOST:PORT[,...]`, or `MOCK`.
        security: How connections to it are encrypted and authenticated.
        topic_map: Topics with names of their own on the target.
        prefix: Put before the names of topics, groups and transactional ids.
        offsets: What is sent for an offset that nothing is known of.
        create_topics: Whether topics that the target lacks are created.
        manner: How fast, how often, how long.
        noise: Differences that do not count.
        show_secrets: Whether secrets are compared and shown.
    """

    to: str
    security: Security = Security()  # noqa: RUF009 (frozen)
    topic_map: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    offsets: Policy = "kept"
    create_topics: bool = False
    manner: Manner = Manner()  # noqa: RUF009 (frozen)
    noise: Noise = field(default_factory=Noise)
    show_secrets: bool = False

    def names(self, copy: int) -> Names:
        """Return the names of a pass."""
        return Names(self.topic_map, self.prefix, copy)

    def live_topics(self, captured: Mapping[str, int]) -> dict[str, int]:
        """
        Return topics with their partitions by the names that they have in all passes.

        Raises:
            UsageError: Two topics would have the same name.
        """
        found: dict[str, int] = {}
        for names in map(self.names, range(self.manner.loop)):
            live = {names.topic(topic): count for topic, count in captured.items()}
            if len(live) < len(captured):
                raise UsageError("two captured topics would have the same name on the target")
            found |= live
        return found
